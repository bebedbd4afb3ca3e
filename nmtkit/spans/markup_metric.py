"""Markup of translations as metrics of `nmtkit score`: Structure, Spans, WellFormed, in per cent.

Lines without a tag or mark in translation and reference do not count.

Structure: lines with the same tags as the reference, each within the same tag. The order of
siblings does not count, as translations reorder words. Tags are compared with their attributes.

Spans: elements of the reference that the translation has, with the same opening tag around the same
text. If both lines have the same plain text, it must be the same words of it, too; words have no
common numbers otherwise. Spaces count as one space, and each element is found once.

WellFormed: lines in which every tag has its partner, among those with such a reference.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nmtkit.config.metrics import MetricInfo, MetricsConfig
from nmtkit.errors import DataError
from nmtkit.evaluation.metric import Metric, Result, Statistics, check_one_reference
from nmtkit.evaluation.texts import Texts, line_warnings, untranslated_warnings
from nmtkit.spans.markup import marked_words, read_markup, structure

Count = tuple[int, int]
"""How many lines or elements of a translation are right, and how many there are."""


@dataclass(frozen=True)
class Share:
    """A score of markup: a percentage of lines or elements.

    Attributes:
        label: its name in scores and reports.
        count: counts in a translation, given its reference and the markup language.
        right, all: what is counted, in details and figures.
    """

    label: str
    count: Callable[[str, str, str], Count]
    right: str
    all: str


def make_markup_metrics(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    """Return the metrics Structure, Spans and WellFormed."""
    # Only making a metric imports sacreBLEU.
    from nmtkit.evaluation.summed_metric import summed_metric

    def plain_text(line: str) -> str:
        return read_markup(line, config.markup).text

    marks, metrics = {"markup": config.markup}, []
    for one in SHARES:
        count, score = partial(_count, one, config.markup), partial(_score, one)
        metrics.append(summed_metric(info, one.label, count, score, marks))
    return [replace(one, text_of=plain_text) for one in metrics]


def markup_warnings(texts: Texts, config: MetricsConfig) -> Iterator[str]:
    """Yield warnings about references with mistakes, and missing translations.

    Raises:
        DataError: a line begins a document, or a reference has no markup.
    """
    for text in (*texts.references, *texts.systems):
        text.each(lambda line: read_markup(line, config.markup))
    for reference in texts.references:
        if not any(structure(line, config.markup).tags for line in reference.lines):
            raise DataError(
                f"{reference.name} has no tags of {config.markup}; give a reference with markup, "
                "or another --metric"
            )
        yield from line_warnings(
            reference,
            lambda line, _: not structure(line, config.markup).is_well_formed,
            f"a tag of {config.markup} without its partner, which translations must have too; "
            "correct the reference, or --markup",
        )
    for system in texts.systems:
        yield from untranslated_warnings(system, texts.references[0].lines)


def _count(
    share: Share, language: str, translations: Iterable[str], references: Sequence[Sequence[str]]
) -> Statistics:
    check_one_reference(references, "lines with markup", "markup")
    pairs = zip(translations, references[0], strict=True)
    return [[*share.count(*pair, language)] for pair in pairs]


def _score(share: Share, sums: Sequence[int | float]) -> Result:
    right, total = map(int, sums)
    details = f"({share.right} = {right} {share.all} = {total})"
    return 100 * right / total if total else 100.0, details, {share.right: right, share.all: total}


def _count_structures(translation: str, reference: str, language: str) -> Count:
    ours, theirs = structure(translation, language), structure(reference, language)
    is_same = (ours.nesting, ours.is_well_formed) == (theirs.nesting, theirs.is_well_formed)
    return _count_line(is_same, bool(ours.tags or theirs.tags))


def _count_well_formed(translation: str, reference: str, language: str) -> Count:
    ours, theirs = structure(translation, language), structure(reference, language)
    return _count_line(ours.is_well_formed, theirs.is_well_formed and bool(ours.tags + theirs.tags))


def _count_line(is_right: bool, counts: bool) -> Count:
    return int(is_right and counts), int(counts)


def _count_spans(translation: str, reference: str, language: str) -> Count:
    plain = [_single_spaced(read_markup(line, language).text) for line in (translation, reference)]
    ours, theirs = (
        Counter(
            (
                one.opening,
                _single_spaced(one.text),
                (one.words.start, one.words.stop) if plain[0] == plain[1] else None,
            )
            for one in marked_words(line, language)
        )
        for line in (translation, reference)
    )
    return (ours & theirs).total(), theirs.total()


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


SHARES = (
    Share("Structure", _count_structures, "same", "lines"),
    Share("Spans", _count_spans, "found", "elements"),
    Share("WellFormed", _count_well_formed, "well_formed", "lines"),
)
"""The scores; the first one is the main one, as it also compares a translation with its source."""
