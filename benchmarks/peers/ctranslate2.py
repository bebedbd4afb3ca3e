"""CTranslate2 as a peer; it decodes a model that `nmtkit export` wrote.

python -m benchmarks.decode --shape small --save MODEL && nmtkit export MODEL ctranslate2 FOLDER
python -m benchmarks.peers.ctranslate2 decode --corpus CORPUS --model FOLDER
"""

import ctranslate2  # type: ignore[import-not-found,import-untyped,unused-ignore]

from benchmarks.peers.workload import FIRST_WORD_ID, decode, print_speed, read_options


def main() -> None:
    """Decode by CTranslate2."""
    options = read_options()
    translator = ctranslate2.Translator(
        str(options.model),
        compute_type=options.precision,
        inter_threads=1,
        intra_threads=options.threads,
    )

    def search(sentences: list[list[int]]) -> object:
        words = [[f"w{word - FIRST_WORD_ID:05d}" for word in ids[:-1]] for ids in sentences]
        return translator.translate_batch(
            [[*line, "</s>"] for line in words],
            beam_size=options.beam,
            min_decoding_length=options.length,
            max_decoding_length=options.length,
        )

    print_speed("CTranslate2", options, decode(options, search), "sent/s")


if __name__ == "__main__":
    main()
