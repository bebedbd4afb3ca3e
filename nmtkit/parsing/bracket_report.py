"""EVALB's report, letter by letter: a row a sentence, their sums, a summary."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nmtkit.parsing.bracket_counts import Counts
from nmtkit.parsing.brackets import Comparison

_RULE = "=" * 76
HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag",
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
    _RULE,
)


def row(number: int, comparison: Comparison) -> str:
    """Return the row of a sentence.

    Args:
        number: of the sentence, from 1.
        comparison: what there is to say of it.
    """
    one = comparison
    return (
        f"{number:4d}  {one.length:3d}    {one.status}  "
        f"{one.recall:6.2f} {one.precision:6.2f}   "
        f"{one.matched:3d}    {one.gold:3d}  {one.parsed:3d}    {one.crossing:3d}   "
        f"{one.words:4d}  {one.correct_tags:4d}   {one.tagging_accuracy:6.2f}"
    )


def as_object(comparison: Comparison) -> dict[str, Any]:
    """Return what to write of a sentence as JSON."""
    figures = {"recall": comparison.recall, "precision": comparison.precision}
    return {**asdict(comparison), **figures, "tagging_accuracy": comparison.tagging_accuracy}


def end(counts: Counts, short: Counts, cutoff_length: int) -> list[str]:
    """Return what follows the rows.

    Args:
        counts: of all sentences.
        short: of those that are at most `cutoff_length` long.
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
    # C writes so what it divides by zero.
    f1 = f"{counts.f1:6.2f}" if counts.matched else "  -nan"
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
        f"Complete match            = {counts.complete_match:6.2f}",
        f"Average crossing          = {counts.average_crossing:6.2f}",
        f"No crossing               = {counts.without_crossing:6.2f}",
        f"2 or less crossing        = {counts.with_few_crossing:6.2f}",
        f"Tagging accuracy          = {counts.tagging_accuracy:6.2f}",
    ]
