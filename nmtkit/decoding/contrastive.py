"""Contrastive suites: does a model prefer a right translation to wrong ones?

A line of a suite has tab-separated columns: source, right translation, one or more wrong ones,
category. The model is right where its log-probability of the right translation is above that of
each wrong one. Source: Sennrich 2017, "How Grammatical is Character-level Neural Machine
Translation? Assessing MT Quality with Contrastive Translation Pairs".

Without torch: a suite is checked before the model is loaded.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmtkit.errors import DataError
from nmtkit.text.lines import FIRST_CHUNK_LINES, numbered_chunks, read_lines

if TYPE_CHECKING:
    from nmtkit.decoding.scorer import ScoredLine, Scorer

MIN_COLUMNS = 4

CHUNK_EXAMPLES = 1024
"""Largest number of examples that are read ahead and scored together."""

NORMAL_QUANTILE = 1.959963984540054
"""The standard normal distribution is below it with probability 0.975."""


@dataclass(frozen=True)
class Example:
    """A line of a suite.

    Attributes:
        source: the text to translate.
        right: its right translation.
        wrong: one or more wrong translations.
        category: what the wrong translations test.
        place: file and line, for messages.
    """

    source: str
    right: str
    wrong: tuple[str, ...]
    category: str
    place: str


@dataclass(frozen=True)
class Judgement:
    """Natural log-probabilities that a model gives to the translations of an example.

    Translations with the same tokens have the same one.
    """

    example: Example
    log_prob: float
    wrong_log_probs: tuple[float, ...]

    @property
    def is_right(self) -> bool:
        """Whether the right translation is more probable than each wrong one."""
        return self.log_prob > max(self.wrong_log_probs)


@dataclass(frozen=True)
class Accuracy:
    """How often a model is right.

    Attributes:
        category: category of the examples; None = all.
        num_examples: 1 or more.
        num_right: those in which the model is right.
    """

    category: str | None
    num_examples: int
    num_right: int

    @property
    def percent(self) -> float:
        """The share of examples in which the model is right, 0 to 100."""
        return 100 * self.num_right / self.num_examples

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of `percent`."""
        lower, upper = wilson_interval(self.num_right, self.num_examples)
        return 100 * lower, 100 * upper


class Tally:
    """Counts judgements by category."""

    def __init__(self) -> None:
        self._examples: Counter[str] = Counter()
        self._right: Counter[str] = Counter()

    def add(self, judgements: Iterable[Judgement]) -> None:
        """Count judgements."""
        for one in judgements:
            self._examples[one.example.category] += 1
            self._right[one.example.category] += one.is_right

    def accuracies(self) -> list[Accuracy]:
        """Return the accuracy of each category, in order of appearance, and then of all."""
        by_category = [
            Accuracy(category, number, self._right[category])
            for category, number in self._examples.items()
        ]
        return [*by_category, Accuracy(None, self._examples.total(), self._right.total())]


def read_examples(path: Path) -> Iterator[Example]:
    """Yield the examples of a suite.

    Raises:
        ConfigError: the file cannot be opened.
        DataError: a line is no example, is too long or invalid UTF-8, or there are no lines.
    """
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        yield _read_example(line, f"{path}:{number}")
    if not number:
        raise DataError(
            f"{path}: has no lines; give lines of source, right translation, wrong translation "
            "and category, separated by tabs"
        )


def judge(
    scorer: "Scorer", examples: Iterable[Example], on_batch: Callable[[int, int], None]
) -> Iterator[list[Judgement]]:
    """Score the translations of examples lazily; yield the judgements of each chunk.

    Args:
        scorer: the model.
        examples: read chunk by chunk.
        on_batch: see `Scorer.score_chunk`.

    Raises:
        DataError: a text is too long for the model, or malformed.
        DamagedError: the model's logits are not numbers.
    """
    for _, chunk in numbered_chunks(examples, CHUNK_EXAMPLES, FIRST_CHUNK_LINES):
        texts = [(one, text) for one in chunk for text in (one.right, *one.wrong)]
        pairs = [(one.source, text) for one, text in texts]
        lines = iter(scorer.score_named(pairs, [one.place for one, _ in texts], on_batch))
        yield [_judgement(one, next(lines), [next(lines) for _ in one.wrong]) for one in chunk]


def wilson_interval(num_right: int, number: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a proportion, 0 to 1.

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference".

    Args:
        num_right: successes.
        number: trials, 1 or more.
    """
    share, square = num_right / number, NORMAL_QUANTILE**2
    centre = share + square / (2 * number)
    spread = math.sqrt(share * (1 - share) * square / number + (square / (2 * number)) ** 2)
    scale = 1 + square / number
    lower, upper = (centre - spread) / scale, (centre + spread) / scale
    return max(0.0, min(share, lower)), min(1.0, max(share, upper))  # against rounding


def _read_example(line: str, place: str) -> Example:
    columns = line.split("\t")
    if len(columns) < MIN_COLUMNS:
        raise DataError(
            f"{place}: {len(columns)} of at least {MIN_COLUMNS} columns; write source, right "
            "translation, one or more wrong ones and category, separated by tabs"
        )
    for number, column in enumerate(columns, 1):
        if not column.strip():
            raise DataError(f"{place}: column {number} is blank; fill it in, or remove the line")
    source, right, *wrong, category = columns
    # White space inside a line does not matter to most codecs.
    if right.split() in map(str.split, wrong):
        number = 3 + [*map(str.split, wrong)].index(right.split())
        raise DataError(
            f"{place}: the wrong translation in column {number} equals the right one; fix it, or "
            "remove the line"
        )
    return Example(source, right, tuple(wrong), category, place)


def _judgement(example: Example, right: "ScoredLine", wrong: Sequence["ScoredLine"]) -> Judgement:
    """Return the judgement of scored translations.

    The same tokens may get other last digits in another batch; that is no difference.
    """
    log_probs = [right.log_prob if one.tokens == right.tokens else one.log_prob for one in wrong]
    return Judgement(example, right.log_prob, tuple(log_probs))
