"""The alignment error rate, with precision and recall.

Alignments A are compared with gold links, sure S and possible P, which include the sure ones.
Precision is |A & P| / |A|, recall |A & S| / |S|, and AER = 1 - (|A & S| + |A & P|) / (|A| + |S|);
all in per cent, over the whole text. Without links on either side, nothing is wrong.

Source: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section
6.
"""

from collections.abc import Iterable, Sequence

from nmtkit.evaluation.metric import Result, Statistics, check_one_reference
from nmtkit.text.links import parse_links


def count_links(
    gold_base: int, alignments: Iterable[str], references: Sequence[Sequence[str]]
) -> Statistics:
    """Count the links of each line.

    Args:
        gold_base: number of the first word in gold links; alignments count from 0.
        alignments: one line per sentence.
        references: the gold links, as the only reference.

    Returns:
        Per line: found sure links, found possible links, all found links, all sure links.

    Raises:
        ConfigError: there are several references.
        DataError: a line has something else than links.
    """
    check_one_reference(references, "alignments", "aer")
    statistics: Statistics = []
    for line, gold_line in zip(alignments, references[0], strict=True):
        found = parse_links(line).sure
        gold = parse_links(gold_line, gold_base)
        statistics.append(
            [len(found & gold.sure), len(found & gold.possible), len(found), len(gold.sure)]
        )
    return statistics


def score_links(sums: Sequence[int | float]) -> Result:
    """Return the error rate of a text from the sums of its statistics."""
    found_sure, found_possible, found, sure = map(int, sums)
    precision, recall = _percent(found_possible, found), _percent(found_sure, sure)
    details = f"precision = {precision:.2f} recall = {recall:.2f} (links = {found} sure = {sure})"
    figures = {"precision": precision, "recall": recall, "links": found, "sure": sure}
    return 100 - _percent(found_sure + found_possible, found + sure), details, figures


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 100.0
