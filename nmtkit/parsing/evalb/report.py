"""EVALB: counts and scores of a text, and the report in EVALB's exact format."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from nmtkit.parsing.evalb.comparison import ERROR, SCORED, SKIPPED, Comparison, Matches, percent

_FEW_CROSSING = 2
_RULE = "=" * 76
HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag",
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
    _RULE,
)


@dataclass(frozen=True)
class Counts(Matches):
    """Sums over sentences; except `all_gold` and `all_parsed`, of those that are scored.

    Scores range from 0 to 100; they are 0 if nothing is counted.

    Attributes:
        sentences, errors, skipped: numbers of all sentences, of errors, of parses without words.
        complete: scored sentences in which all brackets of both trees match.
        no_crossing, few_crossing: scored ones with no crossing bracket, with at most two.
    """

    sentences: int = 0
    errors: int = 0
    skipped: int = 0
    complete: int = 0
    no_crossing: int = 0
    few_crossing: int = 0

    @property
    def valid(self) -> int:
        """Number of scored sentences."""
        return self.sentences - self.errors - self.skipped

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, without errors and skipped sentences."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def strict_f1(self) -> float:
        """F1 over all sentences; no bracket matches in errors and skipped sentences."""
        return percent(2 * self.matched, self.all_gold + self.all_parsed)

    def figures(self) -> dict[str, float]:
        """Return scores and numbers of sentences by name."""
        return {
            "f1": self.f1,
            "recall": self.recall,
            "precision": self.precision,
            "strict_f1": self.strict_f1,
            "complete_match": percent(self.complete, self.valid),
            "average_crossing": self.crossing / max(1, self.valid),
            "no_crossing": percent(self.no_crossing, self.valid),
            "two_or_less_crossing": percent(self.few_crossing, self.valid),
            "tagging_accuracy": self.tagging_accuracy,
            "sentences": self.sentences,
            "errors": self.errors,
            "skipped": self.skipped,
        }


def count_sentence(comparison: Comparison) -> Counts:
    """Return the counts of one sentence."""
    one, is_scored = comparison, comparison.status == SCORED
    counted = (
        one.matches() if is_scored else {"all_gold": one.all_gold, "all_parsed": one.all_parsed}
    )
    return Counts(
        **counted,
        sentences=1,
        errors=one.status == ERROR,
        skipped=one.status == SKIPPED,
        complete=is_scored and one.gold == one.parsed == one.matched,
        no_crossing=is_scored and one.crossing == 0,
        few_crossing=is_scored and one.crossing <= _FEW_CROSSING,
    )


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Return the sum of counts."""
    return Counts(*map(sum, zip(*map(astuple, counts), strict=True)))


def format_row(number: int, comparison: Comparison) -> str:
    """Return the row of a sentence in the report.

    Args:
        number: of the sentence, from 1.
        comparison: result for the sentence.
    """
    one = comparison
    return (
        f"{number:4d}  {one.length:3d}    {one.status}  "
        f"{one.recall:6.2f} {one.precision:6.2f}   "
        f"{one.matched:3d}    {one.gold:3d}  {one.parsed:3d}    {one.crossing:3d}   "
        f"{one.words:4d}  {one.correct_tags:4d}   {one.tagging_accuracy:6.2f}"
    )


def as_object(comparison: Comparison) -> dict[str, Any]:
    """Return the result for a sentence as an object for JSON."""
    one = comparison
    return {
        "length": one.length,
        "status": one.status,
        "problems": one.problems,
        "num_gold_problems": one.num_gold_problems,
        **one.matches(),
        "recall": one.recall,
        "precision": one.precision,
        "tagging_accuracy": one.tagging_accuracy,
    }


def format_summary(counts: Counts, short: Counts, cutoff_length: int) -> list[str]:
    """Return the lines of the report after the rows.

    Args:
        counts: of all sentences.
        short: of sentences of at most `cutoff_length` words.
        cutoff_length: in words.
    """
    brackets = ""
    if counts.gold and counts.parsed:
        brackets = (
            f"                {counts.recall:6.2f} {counts.precision:6.2f} {counts.matched:6d} "
            f"{counts.gold:5d} {counts.parsed:5d}  {counts.crossing:5d}"
        )
    tags = f"  {counts.words:5d} {counts.correct_tags:5d}   {counts.tagging_accuracy:6.2f}"
    return [
        _RULE,
        brackets + tags,
        "=== Summary ===",
        *_summary("All", counts),
        *_summary(f"len<={cutoff_length}", short),
    ]


def _summary(title: str, counts: Counts) -> Sequence[str]:
    # EVALB divides by zero here, which C prints so.
    f1 = f"{counts.f1:6.2f}" if counts.matched else "  -nan"
    figures = counts.figures()
    return [
        "",
        f"-- {title} --",
        f"Number of sentence        = {counts.sentences:6d}",
        f"Number of Error sentence  = {counts.errors:6d}",
        f"Number of Skip  sentence  = {counts.skipped:6d}",
        f"Number of Valid sentence  = {counts.valid:6d}",
        f"Bracketing Recall         = {counts.recall:6.2f}",
        f"Bracketing Precision      = {counts.precision:6.2f}",
        f"Bracketing FMeasure       = {f1}",
        f"Complete match            = {figures['complete_match']:6.2f}",
        f"Average crossing          = {figures['average_crossing']:6.2f}",
        f"No crossing               = {figures['no_crossing']:6.2f}",
        f"2 or less crossing        = {figures['two_or_less_crossing']:6.2f}",
        f"Tagging accuracy          = {counts.tagging_accuracy:6.2f}",
    ]
