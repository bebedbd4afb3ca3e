"""The data of the page, for its script: texts once, scores as lists of numbers."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from nmtkit.evaluation.compare import Comparison
from nmtkit.evaluation.ngrams import MIN_DIFFERENCE

_DIGITS = 2
"""Decimal places of sentence scores, as `--sentence-level` prints them."""


@dataclass(frozen=True)
class PageData:
    """What the script of the page reads.

    Attributes:
        systems: short names of the systems.
        metric: name of the metric of `scores`.
        is_higher_better: false for an error rate.
        second: index of the system that is compared with the first one at the beginning.
        source: lines of the source; None = unknown.
        reference: lines of the reference.
        translations: per system, its lines.
        scores: per system, the score of each line.
        lengths: names of the classes of length.
        length_of: per line, the index of its class.
        ngrams: words joined by spaces, their number, matches per system, occurrences in the
            reference.
        min_difference: matches that a system has more than the other one in `ngrams` of both.
    """

    systems: Sequence[str]
    metric: str
    is_higher_better: bool
    second: int
    source: Sequence[str] | None
    reference: Sequence[str]
    translations: Sequence[Sequence[str]]
    scores: Sequence[Sequence[float]]
    lengths: Sequence[str]
    length_of: Sequence[int]
    ngrams: Sequence[tuple[str, int, Sequence[int]]]
    min_difference: int

    def to_json(self) -> str:
        """Return the data as compact JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def page_data(comparison: Comparison, labels: Sequence[str]) -> PageData:
    """Return the data of a comparison.

    Args:
        comparison: the comparison.
        labels: short names of the systems.
    """
    texts = comparison.texts
    length_of = [0] * len(texts.references[0].lines)
    for number, one in enumerate(comparison.lengths):
        for index in one.indices:
            length_of[index] = number
    metric = comparison.line_metric
    return PageData(
        labels,
        metric.name,
        metric.is_higher_better,
        _best_other(comparison),
        None if comparison.texts.source is None else comparison.texts.source.lines,
        texts.references[0].lines,
        [system.lines for system in texts.systems],
        [[round(score, _DIGITS) for score in scores] for scores in comparison.line_scores],
        [one.label for one in comparison.lengths],
        length_of,
        [
            (" ".join(one.words), len(one.words), [*one.num_matches, one.num_reference])
            for one in comparison.ngrams
        ],
        MIN_DIFFERENCE,
    )


def _best_other(comparison: Comparison) -> int:
    """Return the index of the best system except the first one; without one, of the reference."""
    scores = comparison.evaluation.scores[0]
    sign = 1 if scores[0].is_higher_better else -1
    others = range(1, len(scores))
    return max(others, key=lambda index: sign * scores[index].score, default=len(scores))
