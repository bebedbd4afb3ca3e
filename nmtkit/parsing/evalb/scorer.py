"""EVALB's F1 as a sacreBLEU metric, so that sacreBLEU's intervals and tests work on trees.

Importing this imports sacreBLEU.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature

from nmtkit.parsing.evalb.comparison import (
    Comparison,
    check_one_reference,
    compare,
    within_max_error,
)
from nmtkit.parsing.evalb.parameters import Parameters
from nmtkit.parsing.evalb.report import Counts, count_sentence

F1, STRICT_F1 = "F1", "strict F1"
Statistics = list[list[int]]
"""Per sentence: its counts, then the same counts again if it is short, otherwise zeros."""
_NUM_COUNTS = len(Counts().as_list())


def make_bracket_scorers(parameters: Parameters) -> list["BracketScorer"]:
    """Return the scorers of F1 and of strict F1; each pair of trees is compared once for both."""
    compare_once = cache(partial(compare, parameters=parameters))
    return [BracketScorer(name, parameters, compare_once) for name in (F1, STRICT_F1)]


class BracketScore(Score):
    """A score of trees.

    Attributes:
        details: scores and counts as text.
        figures: scores and counts by name; those of short sentences are under "short".
    """

    def __init__(self, name: str, score: float, details: str, figures: Mapping[str, Any]) -> None:
        super().__init__(name, score)
        self.details, self.figures = details, figures


class BracketScorer(Metric):
    """Scores trees by EVALB's F1, or by strict F1, in which errors match no bracket."""

    _SIGNATURE_TYPE = Signature

    def __init__(
        self,
        name: str,
        parameters: Parameters,
        compare_pair: Callable[[str, str], Comparison],
    ) -> None:
        """Make a scorer.

        Args:
            name: F1 or STRICT_F1.
            parameters: of EVALB.
            compare_pair: `compare` with these parameters.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.name, self._parameters, self._compare = name, parameters, compare_pair

    def _extract_corpus_statistics(
        self, hypotheses: Iterable[str], references: Sequence[Sequence[str]] | None
    ) -> Statistics:
        """Return the counts of each sentence.

        Raises:
            ConfigError: there are several references.
            DataError: see `compare_lines`.
        """
        assert references, "references are always given"
        check_one_reference(len(references))
        self.num_refs = 1
        pairs = zip(hypotheses, references[0], strict=True)
        comparisons = (self._compare(gold, parsed) for parsed, gold in pairs)
        statistics = []
        for comparison in within_max_error(comparisons, self._parameters):
            counts = count_sentence(comparison)
            is_short = comparison.length <= self._parameters.cutoff_length
            short = counts if is_short else Counts()
            statistics.append([*counts.as_list(), *short.as_list()])
        return statistics

    def _aggregate_and_compute(self, stats: Sequence[Sequence[int]]) -> BracketScore:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: Sequence[int]) -> BracketScore:
        sums = [int(number) for number in stats]
        counts, short = Counts(*sums[:_NUM_COUNTS]), Counts(*sums[_NUM_COUNTS:])
        if self.name == STRICT_F1:
            return BracketScore(self.name, counts.strict_f1, "", {})
        details = (
            f"recall = {counts.recall:.2f} precision = {counts.precision:.2f} "
            f"complete = {counts.complete_match:.2f} crossing = {counts.average_crossing:.2f} "
            f"tagging = {counts.tagging_accuracy:.2f} (sentences = {counts.sentences} "
            f"errors = {counts.errors} skipped = {counts.skipped} "
            f"F1<={self._parameters.cutoff_length} = {short.f1:.2f})"
        )
        figures = {**counts.figures(), "short": short.figures()}
        return BracketScore(self.name, counts.f1, details, figures)

    # sacreBLEU would call these to read texts itself.

    def _preprocess_segment(self, sent: str) -> str:
        raise AssertionError(f"trees are compared unchanged: {sent}")

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        raise AssertionError(f"trees are compared text by text: {refs}")

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[Any]:
        raise AssertionError(f"trees are compared text by text: {hypothesis}, {ref_kwargs}")
