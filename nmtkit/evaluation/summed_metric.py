"""A metric of our own as one of sacreBLEU's, so that sacreBLEU's intervals and tests work on it.

Importing this imports sacreBLEU.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature

from nmtkit.config.metrics import MetricInfo
from nmtkit.evaluation import metric
from nmtkit.evaluation.metric import Result, Statistics
from nmtkit.version import __version__


class SummedScore(Score):
    """A score with its details and figures; see `Result`."""

    def __init__(self, name: str, score: float, details: str, figures: Mapping[str, Any]) -> None:
        super().__init__(name, score)
        self.details, self.figures = details, figures


def summed_metric(
    info: MetricInfo,
    name: str,
    count: Callable[[Iterable[str], Sequence[Sequence[str]]], Statistics],
    score: Callable[[Sequence[int | float]], Result],
    marks: Mapping[str, str],
) -> metric.Metric:
    """Return a metric of sums over lines.

    Args:
        info: its properties.
        name, count, score: see `SummedMetric`.
        marks: entries of its signature.
    """
    scorer = SummedMetric(name, count, score)
    return metric.Metric(
        name=name,
        is_higher_better=info.is_higher_better,
        scorer=scorer,
        line_scorer=scorer,
        marks=marks,
        describe=lambda score: (score.details, score.figures),
    )


class SummedMetric(Metric):
    """A metric whose score is computed from sums of what is counted line by line."""

    def __init__(
        self,
        name: str,
        count: Callable[[Iterable[str], Sequence[Sequence[str]]], Statistics],
        score: Callable[[Sequence[int | float]], Result],
    ) -> None:
        """Store the functions that define the metric.

        Args:
            name: label of the metric.
            count: returns the statistics of lines, given their references.
            score: returns the score of a text from the sums of the statistics of its lines.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.name, self._count, self._score = name, count, score

    def _extract_corpus_statistics(
        self, hypotheses: Iterable[str], references: Sequence[Sequence[str]] | None
    ) -> Statistics:
        assert references, "references are always given"
        self.num_refs = len(references)
        return self._count(hypotheses, references)

    def _aggregate_and_compute(self, stats: Statistics) -> SummedScore:
        sums = [math.fsum(column) for column in zip(*stats, strict=True)]
        return self._compute_score_from_stats(sums)

    def _compute_score_from_stats(self, stats: Sequence[int | float]) -> SummedScore:
        return SummedScore(self.name, *self._score(stats))

    def get_signature(self) -> Signature:
        """Return a signature with the version of nmtkit, which computes the score."""
        signature = super().get_signature()
        signature.update("version", f"nmtkit-{__version__}")
        return signature

    # sacreBLEU would call these to read texts itself.

    def _preprocess_segment(self, sent: str) -> str:
        raise AssertionError(f"lines are counted unchanged: {sent}")

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        raise AssertionError(f"`count` reads references: {refs}")

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[Any]:
        raise AssertionError(f"`count` reads lines: {hypothesis}, {ref_kwargs}")
