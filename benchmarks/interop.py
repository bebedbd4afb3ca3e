"""A model exported to CTranslate2, compared with nmtkit: scores, translations, BLEU.

    PYTHON -m benchmarks.interop MODEL --source test.en --reference test.de

PYTHON is an interpreter with ctranslate2 and the requirements of nmtkit. Greedy search is the same
on both sides. Beam search is not: CTranslate2 divides the sum of log-probabilities by length^alpha,
nmtkit by ((5 + length) / 6)^alpha, and they stop by different rules.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import print_json, print_table
from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.decoding.answers import Request
from nmtkit.decoding.loading import load_translator
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.interop.conversion import export
from nmtkit.interop.ctranslate2 import open_peer
from nmtkit.interop.parity import Pair, import_extra, own_scores
from nmtkit.storage.model_folder import LoadedModel, load_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import read_lines

CPU = torch.device("cpu")
BATCH = 64
SEARCHES = {
    "greedy": (SearchConfig(beam=1), 0.0),
    "beam 4, both alpha 0.6": (SearchConfig(beam=4), 0.6),
    "beam 4, both alpha 1": (SearchConfig(beam=4, length_penalty=1.0), 1.0),
}
"""Settings of nmtkit's search, and the length penalty of CTranslate2."""


def main() -> None:
    """Export, compare, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=1000)
    options = parser.parse_args()
    loaded = load_model(options.model, CPU)
    sources = list(read_lines(options.source))[: options.lines]
    references = list(read_lines(options.reference))[: options.lines]
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "exported"
        export(options.model, "ctranslate2", exported, overwrite=False, report=print)
        difference = largest_difference(loaded, exported, sources, references)
        print(f"forced scores of {len(sources)} references: largest difference {difference:.1e}")
        rows = compare_searches(options.model, exported, sources, references)
    header = ("search", "lines", "equal", "BLEU nmtkit", "BLEU CTranslate2")
    print_table([header, *rows])
    print_json({"largest_difference": difference, "searches": [header, *rows]})


def largest_difference(
    loaded: LoadedModel, exported: Path, sources: Sequence[str], references: Sequence[str]
) -> float:
    """Return the largest difference of the scores of real pairs."""
    codec, peer = loaded.codec, open_peer(exported, loaded.codec)
    pairs = [
        Pair(source, target, codec.encode_source(source), codec.encode_target(target))
        for source, target in zip(sources, references, strict=True)
    ]
    batches = [pairs[first : first + BATCH] for first in range(0, len(pairs), BATCH)]
    return max(
        abs(own - other)
        for batch in batches
        for own, other in zip(own_scores(loaded.model, batch), peer.score(batch), strict=True)
    )


def compare_searches(
    model: Path, exported: Path, sources: Sequence[str], references: Sequence[str]
) -> list[tuple[str, ...]]:
    """Translate with both; return rows of the lines, the equal lines and both BLEU scores."""
    codec = load_model(model, CPU).codec
    library = import_extra("ctranslate2", "ctranslate2")
    peer = library.Translator(str(exported), device="cpu", compute_type="float32")
    rows = []
    for name, (search, alpha) in SEARCHES.items():
        translator = load_translator([model], TranslateRecipe(search=search), print)
        results = translator.answer_chunk([*map(Request, sources)], 1)
        own = [answer.translation.text for result in results for answer in result.answers]
        other = translate_by_peer(peer, codec, sources, search, alpha)
        num_equal = sum(one == another for one, another in zip(own, other, strict=True))
        bleus = (f"{bleu(lines, references):.2f}" for lines in (own, other))
        rows.append((name, str(len(own)), str(num_equal), *bleus))
    return rows


def translate_by_peer(
    peer: Any, codec: TextCodec, sources: Sequence[str], search: SearchConfig, alpha: float
) -> list[str]:
    """Translate lines with CTranslate2, under nmtkit's limit of length, which the source sets."""
    source, target = codec.source, codec.target
    ids = {target.piece(index): index for index in range(target.size)}
    pieces = [[source.piece(index) for index in source.encode(line)] for line in sources]
    places_by_length: dict[int, list[int]] = {}
    for place, of_line in enumerate(pieces):
        places_by_length.setdefault(len(of_line), []).append(place)
    translations = [""] * len(sources)
    for length, places in places_by_length.items():
        results = peer.translate_batch(
            [pieces[place] for place in places],
            beam_size=search.beam,
            length_penalty=alpha,
            max_decoding_length=length + search.max_length_offset,
            max_batch_size=BATCH,
        )
        for place, result in zip(places, results, strict=True):
            translations[place] = target.decode([ids[piece] for piece in result.hypotheses[0]])
    return translations


def bleu(lines: Sequence[str], references: Sequence[str]) -> float:
    """Score translations."""
    (score,) = score_corpus(make_metrics(MetricsConfig()), lines, [references])
    return score.score


if __name__ == "__main__":
    main()
