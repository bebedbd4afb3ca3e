"""Whether a translation depends on what should not matter: batches, order, n-best, devices.

    python -m benchmarks.invariance --model MODEL --source FILE --lines 500

Translates the lines as `nmtkit translate` does without options, and again in batches of 1 and 7,
in another order, with n-best lists and on two processes. A line whose translation differs is listed
with the difference of the two scores: sums of floating-point numbers in another order may decide
between two translations that are all but equal, and nothing else may.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.common import print_json, print_table
from nmtkit.config.schema import RuntimeConfig, TranslateRecipe
from nmtkit.config.translation import OutputConfig, TranslationConfig
from nmtkit.decoding.answers import Answer, Request, Translation
from nmtkit.decoding.workers import open_translator
from nmtkit.text.lines import decode_lines, numbered_chunks, open_bytes

NEAR = 1e-4
"""Scores that differ by less are all but equal."""

DEFAULT = TranslateRecipe()


@dataclass(frozen=True)
class Way:
    """One way to translate the same lines."""

    name: str
    recipe: TranslateRecipe
    is_shuffled: bool = False


def ways(runtime: RuntimeConfig) -> list[Way]:
    """List the ways; the first is what the others are compared with."""
    plain = replace(DEFAULT, runtime=runtime)
    n_best = OutputConfig(n_best=4, output_format="json")
    return [
        Way("batches of 64", plain),
        *(
            Way(
                f"batches of {size}", replace(plain, translation=TranslationConfig(batch_size=size))
            )
            for size in (1, 7)
        ),
        Way("another order", plain, is_shuffled=True),
        Way("4 best", replace(plain, output=n_best)),
        Way("2 processes", replace(plain, translation=TranslationConfig(devices=2))),
    ]


def main() -> None:
    """Translate in every way, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True, help="text, maybe gzipped")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    with open_bytes(options.source) as stream:
        lines = list(decode_lines(stream, str(options.source), print))[: options.lines]
    runtime = RuntimeConfig(device=options.device)
    (first, expected), *others = (
        (way, translate(options.model, way, lines)) for way in ways(runtime)
    )
    rows = []
    for way, found in others:
        differing = [
            (number, abs(one.score - other.score))
            for number, (one, other) in enumerate(zip(expected, found, strict=True), 1)
            if one.text != other.text
        ]
        largest = max(
            abs(one.score - other.score) for one, other in zip(expected, found, strict=True)
        )
        rows.append((way.name, len(lines) - len(differing), largest, differing))
    cells = [
        (
            name,
            f"{equal} of {len(lines)}",
            f"{largest:.1e}",
            ", ".join(f"{n} ({d:.1e})" for n, d in differing),
        )
        for name, equal, largest, differing in rows
    ]
    print_table([(f"against {first.name}", "equal", "score differs by", "lines"), *cells])
    print_json({name: {"equal": equal, "largest": largest} for name, equal, largest, _ in rows})
    strays = [n for *_, differing in rows for n, difference in differing if difference >= NEAR]
    if strays:
        parser.exit(1, f"lines {strays} differ by more than rounding\n")


def translate(model: Path, way: Way, lines: Sequence[str]) -> list[Translation]:
    """Return the best translation of each line, in the lines' order."""
    order = list(range(len(lines)))
    if way.is_shuffled:
        random.Random(1).shuffle(order)
    translator = open_translator([model], way.recipe, print, print)
    requests = [Request(lines[index]) for index in order]
    results = translator.answer_all(numbered_chunks(requests, way.recipe.translation.chunk_lines))
    answers: list[Answer] = [answer for result in results for answer in result.answers]
    by_index = dict(zip(order, answers, strict=True))
    return [by_index[index].translation for index in range(len(lines))]


if __name__ == "__main__":
    main()
