"""A model with drafts: equal translations, accepted tokens, time per sentence.

    python -m benchmarks.drafts MODEL --draft student/ --draft other/ --source FILE

Greedy search of MODEL alone and with each draft, which proposes --tokens tokens at a time, in
batches of --batch-sizes sentences. All ways are interleaved; seconds are medians of the rounds.
Lines whose translation with a draft differs are printed with their scores and the number of their
first different token: the two must be equally likely up to rounding. A round is a step of the model
that verifies proposals.

    python -m benchmarks.drafts MODEL --steps 1 2 4 8 --source FILE

prints the time of a step of MODEL by the number of its tokens, in one sentence.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import torch

from benchmarks.common import print_json, print_table
from nmtkit.config.schema import RuntimeConfig, SearchConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.answers import Translation
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.translator import Translator
from nmtkit.model.transformer import Transformer
from nmtkit.packed import Packed, pack_sequences
from nmtkit.storage.model_folder import load_model
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.text.lines import read_lines

HEADER = (
    *("draft", "proposed", "batch", "ms/sentence", "speed", "equal"),
    *("accepted", "tokens/round", "draft steps/round"),
)
CPU = torch.device("cpu")
PREFIX = 12
"""Tokens that a sentence has when a step is timed."""


@dataclass
class Way:
    """Greedy search, alone or with a draft.

    Attributes:
        draft: name of the draft; "" = none.
        num_proposed: tokens that it proposes.
        batch_size: sentences per batch.
        translator: translates.
        seconds: the time of each round.
        translations: those of the last round.
    """

    draft: str
    num_proposed: int
    batch_size: int
    translator: Translator
    seconds: list[float] = field(default_factory=list)
    translations: list[Translation] = field(default_factory=list)

    def run(self, lines: Sequence[str]) -> None:
        """Translate once."""
        start = time.perf_counter()
        answers = self.translator.answer([Request(line) for line in lines], 1)
        self.seconds.append(time.perf_counter() - start)
        self.translations = [answer.translations[0] for answer in answers]


def main() -> None:
    """Measure all ways, or the steps of a model; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--draft", type=Path, action="append", default=[], metavar="MODEL")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--tokens", type=int, nargs="+", default=[4])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1])
    parser.add_argument("--steps", type=int, nargs="+", help="time steps of these sizes")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=0, help="0 = all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="compiled steps of all models")
    options = parser.parse_args()
    lines = list(read_lines(options.source))[: options.lines]
    if options.steps:
        show_steps(options, lines[0])
        return
    ways = list(ways_of(options))
    counts = {id(way): count_rows(way.translator) for way in ways}
    for way in ways:
        way.translator.answer([Request(line) for line in lines[:20]], 1)  # warms up
        counts[id(way)].clear()
    for _ in range(options.rounds):
        for way in ways:
            way.run(lines)
    plain = {way.batch_size: way for way in ways if not way.draft}
    rows = [row_of(way, plain[way.batch_size], counts[id(way)], len(lines)) for way in ways]
    print_table([HEADER, *rows])
    print_json({"lines": len(lines), "header": HEADER, "rows": rows})
    for way in ways:
        show_differences(way, plain[way.batch_size])


def ways_of(options: argparse.Namespace) -> list[Way]:
    """Load the model alone and with each draft."""
    drafts = [("", 0), *itertools.product(map(str, options.draft), options.tokens)]
    return [
        Way(Path(draft).name, count, size, load(options, draft, count or 1, size))
        for size in options.batch_sizes
        for draft, count in drafts
    ]


def load(options: argparse.Namespace, draft: str, num_proposed: int, batch_size: int) -> Translator:
    """Load a translator."""
    recipe = TranslateRecipe(
        search=SearchConfig(beam=1),
        translation=TranslationConfig(
            draft=draft,
            draft_tokens=num_proposed,
            batch_size=batch_size,
            compile="on" if options.compile else "off",
        ),
        runtime=RuntimeConfig(device="cpu", threads=options.threads),
    )
    return load_translator([options.model], recipe, print)


def count_rows(translator: Translator) -> dict[str, int]:
    """Count the rows that model and draft read, from now on, by name."""
    counts: dict[str, int] = {}
    steppers = {"model": translator._stepper, "draft": translator._draft}

    def counted(name: str, step: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def run(tokens: torch.Tensor, state: object) -> torch.Tensor:
            counts[name] = counts.get(name, 0) + len(tokens)
            return step(tokens, state)

        return run

    for name, stepper in steppers.items():
        if stepper is not None:
            stepper.step = counted(name, stepper.step)  # type: ignore[method-assign]
    return counts


def row_of(way: Way, plain: Way, counts: dict[str, int], num_lines: int) -> tuple[str, ...]:
    """Return the row of the table."""
    seconds = median(way.seconds)
    rounds = counts["model"] / len(way.seconds)
    num_tokens = sum(len(one.tokens) for one in way.translations)
    equal = sum(
        one.text == other.text
        for one, other in zip(way.translations, plain.translations, strict=True)
    )
    accepted = (num_tokens - rounds) / (rounds * way.num_proposed) if way.draft else 0.0
    return (
        way.draft or "none",
        str(way.num_proposed),
        str(way.batch_size),
        f"{1000 * seconds / num_lines:.1f}",
        f"{median(plain.seconds) / seconds:.2f}",
        f"{equal} of {num_lines}",
        f"{100 * accepted:.0f} %" if way.draft else "",
        f"{num_tokens / rounds:.2f}",
        f"{counts.get('draft', 0) / counts['model']:.2f}" if way.draft else "",
    )


def show_differences(way: Way, plain: Way) -> None:
    """Print the lines that a draft changed."""
    pairs = zip(way.translations, plain.translations, strict=True)
    for number, (one, other) in enumerate(pairs, 1):
        if one.text != other.text:
            tokens = zip(one.tokens, other.tokens, strict=False)
            place = next((i for i, (a, b) in enumerate(tokens, 1) if a != b), 0)
            print(
                f"{way.draft}, {way.num_proposed}: line {number}, token {place}: "
                f"log-probability {one.log_prob:.5f} with it, {other.log_prob:.5f} without"
            )


@torch.inference_mode()
def show_steps(options: argparse.Namespace, line: str) -> None:
    """Print the time of a step by its number of tokens."""
    if options.threads:
        torch.set_num_threads(options.threads)
    loaded = load_model(options.model, CPU)
    model = loaded.model
    model.prepare(torch.float32)
    source = pack_sequences([loaded.codec.encode_source(line)], CPU)
    times: dict[int, list[float]] = {count: [] for count in options.steps}
    for _ in range(options.rounds * 10):
        for count in options.steps:
            times[count].append(seconds_of_step(model, model.encode(source), count))
    first = median(times[options.steps[0]])
    rows = [
        (str(count), f"{1000 * median(found):.2f}", f"{median(found) / first:.2f}")
        for count, found in times.items()
    ]
    print_table([("tokens of a step", "ms", "of the first"), *rows])
    print_json({"rows": rows})


def seconds_of_step(model: Transformer, memory: Packed, num_tokens: int) -> float:
    """Return the time of a step after a prefix."""
    state = model.start(memory)
    model.step(torch.tensor([[BOS_ID, *[EOS_ID + 1] * (PREFIX - 1)]]), state)
    tokens = torch.full((1, num_tokens), EOS_ID + 1)
    model.step(tokens, state)  # warms up
    state.remove_last([num_tokens])
    start = time.perf_counter()
    model.step(tokens, state)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
