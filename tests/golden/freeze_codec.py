"""Freeze a codec of version 2: sides of different kinds, tokenised by Moses.

Run once, as `python -m tests.golden.freeze_codec`; see freeze.py.
"""

import json
from pathlib import Path

from nmtkit.text.codec import TextCodec
from nmtkit.text.moses import Moses
from nmtkit.text.subword import Subword
from nmtkit.text.tokenized import Tokenized, tokenize
from nmtkit.text.words import Words

FROZEN = Path(__file__).parent / "formats-3"
LINES = (
    "the cat's mat, a dog (and a cat).",
    "<bt> it isn't a dog: 5,000 cats!",
    "",
    "\u00df \u201ea\u201c",
)


def main() -> None:
    """Write the example; what stands there is an error."""
    tokens = [tokenize(Moses("en"), line) for line in LINES]
    codec = TextCodec(
        source_lang="en",
        target_lang="de",
        source=Tokenized(Subword.train(tokens, "bpe", 320, "x", ["<bt>"]), "en"),
        target=Tokenized(Words(["the", "cat", ",", "a", "(", ")", ".", '"', "<bt>"]), "de"),
        is_shared=False,
    )
    (FROZEN / "codec").mkdir(parents=True)
    codec.save(FROZEN / "codec")
    target = [codec.encode_target(line) for line in LINES]
    expected = {
        "source": [codec.encode_source(line) for line in LINES],
        "target": target,
        "decoded": [codec.decode_target(ids) for ids in target],
    }
    text = json.dumps(expected, indent=1) + "\n"
    (FROZEN / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
