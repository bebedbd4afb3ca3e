"""EVALB's F1 as a metric of `nmtkit score`: its maker, EVALB's report, warnings about input."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields, replace
from functools import cache, partial
from typing import Any

from nmtkit.config.metrics import MetricInfo, MetricsConfig
from nmtkit.evaluation.metric import (
    LineReport,
    Metric,
    Output,
    Result,
    Statistics,
    check_one_reference,
)
from nmtkit.evaluation.texts import Texts, line_warnings, untranslated_warnings
from nmtkit.parsing.evalb.comparison import (
    Comparison,
    Counts,
    compare,
    compare_lines,
    leaves,
    read_sentence,
    within_max_error,
)
from nmtkit.parsing.evalb.parameters import COLLINS, Parameters, parameters_of
from nmtkit.parsing.treebank import UNCLEAN_ROOTS
from nmtkit.progress.counting import WorkReporter
from nmtkit.version import __version__

_RULE = "=" * 76
_HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag",
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
    _RULE,
)
_COUNTS_OF_SENTENCE = (
    *("matched", "gold", "parsed", "crossing", "words", "correct_tags"),
    *("all_gold", "all_parsed"),
)
_OUTER_BRACKET = re.compile(r"\s*\(([^\s()]*)")


def make_bracket_metrics(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    """Return the metrics F1 and strict F1.

    Raises:
        ConfigError, DataError: see `parameters_of`.
    """
    # Only making a metric imports sacreBLEU.
    from nmtkit.evaluation.summed_metric import summed_metric

    def words(line: str) -> str:
        return " ".join(leaves(line, parameters))

    parameters = parameters_of(config.prm)
    # Each pair of trees is compared once for both metrics.
    count = partial(_count, parameters, cache(partial(compare, parameters=parameters)))
    marks = _signature_entries(parameters)
    f1 = summed_metric(info, "F1", count, partial(_score, parameters.cutoff_length), marks)
    strict = summed_metric(info, "strict F1", count, _score_strictly, marks)
    return [replace(one, text_of=words) for one in (f1, strict)]


def _count(
    parameters: Parameters,
    compare_pair: Callable[[str, str], Comparison],
    parses: Iterable[str],
    references: Sequence[Sequence[str]],
) -> Statistics:
    """Return per sentence its counts, then the same again if it is short, otherwise zeros."""
    check_one_reference(references, "trees", "brackets")
    pairs = zip(references[0], parses, strict=True)
    statistics: Statistics = []
    for one in within_max_error((compare_pair(*pair) for pair in pairs), parameters):
        counts = one.for_sums()
        short = counts if one.length <= parameters.cutoff_length else Counts()
        statistics.append([*map(int, (*astuple(counts), *astuple(short)))])
    return statistics


def _totals(sums: Sequence[int | float]) -> tuple[Counts, Counts]:
    """Return the counts of all sentences and of short ones."""
    numbers, num_fields = [*map(int, sums)], len(fields(Counts))
    return Counts(*numbers[:num_fields]), Counts(*numbers[num_fields:])


def _score(cutoff_length: int, sums: Sequence[int | float]) -> Result:
    counts, short = _totals(sums)
    figures = counts.figures()
    details = (
        f"recall = {counts.recall:.2f} precision = {counts.precision:.2f} "
        f"complete = {figures['complete_match']:.2f} "
        f"crossing = {figures['average_crossing']:.2f} "
        f"tagging = {counts.tagging_accuracy:.2f} (sentences = {counts.sentences} "
        f"errors = {counts.errors} skipped = {counts.skipped} "
        f"F1<={cutoff_length} = {short.f1:.2f})"
    )
    return counts.f1, details, {**figures, "short": short.figures()}


def _score_strictly(sums: Sequence[int | float]) -> Result:
    counts, _ = _totals(sums)
    return counts.strict_f1, "", {}


def evalb_report(config: MetricsConfig) -> LineReport:
    """Return the function that reports on texts in EVALB's format, or as one object per line.

    Raises:
        ConfigError, DataError: see `parameters_of`; from the function, there are several systems or
            references, or more errors than `max_error` permits.
    """
    return partial(_report, parameters_of(config.prm))


def _report(
    parameters: Parameters, texts: Texts, as_json: bool, reporter: WorkReporter
) -> Iterator[Output]:
    system, gold = texts.only_system(), texts.references[0].lines
    check_one_reference(texts.references, "trees", "brackets")
    counts, short = [], [Counts()]
    yield Output([] if as_json else _HEAD)
    comparisons = compare_lines(gold, system.lines, parameters)
    with (
        system.named_in_errors(),
        reporter.track(comparisons, "scored", "trees", len(gold)) as compared,
    ):
        for number, one in enumerate(compared, 1):
            problems = [f"{number} : {problem}" for problem in one.problems]
            line = json.dumps(_object(one)) if as_json else _row(number, one)
            yield Output([line], problems)
            counts.append(one.for_sums())
            if one.length <= parameters.cutoff_length:
                short.append(counts[-1])
    if not as_json:
        yield Output(_report_end(total(counts), total(short), parameters.cutoff_length))
    # The signature of a score with one reference, as sacreBLEU would write it.
    signature = "|".join(f"{key}:{value}" for key, value in _signature_entries(parameters).items())
    yield Output([], [f"F1: nrefs:1|{signature}"])


def total(counts: Iterable[Counts]) -> Counts:
    """Return the sums of counts."""
    return Counts(*map(sum, zip(*map(astuple, counts), strict=True)))


def _row(number: int, comparison: Comparison) -> str:
    """Return the row of a sentence in the report.

    Args:
        number: of the sentence, from 1.
        comparison: result for the sentence.
    """
    one = comparison.counts
    return (
        f"{number:4d}  {comparison.length:3d}    {comparison.status}  "
        f"{one.recall:6.2f} {one.precision:6.2f}   "
        f"{one.matched:3d}    {one.gold:3d}  {one.parsed:3d}    {one.crossing:3d}   "
        f"{one.words:4d}  {one.correct_tags:4d}   {one.tagging_accuracy:6.2f}"
    )


def _object(comparison: Comparison) -> dict[str, Any]:
    """Return the result for a sentence as an object for JSON."""
    counts = comparison.counts
    return {
        "length": comparison.length,
        "status": comparison.status,
        "problems": comparison.problems,
        "num_gold_problems": comparison.num_gold_problems,
        **{name: vars(counts)[name] for name in _COUNTS_OF_SENTENCE},
        "recall": counts.recall,
        "precision": counts.precision,
        "tagging_accuracy": counts.tagging_accuracy,
    }


def _report_end(counts: Counts, short: Counts, cutoff_length: int) -> list[str]:
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


def parse_warnings(texts: Texts) -> Iterator[str]:
    """Yield warnings about malformed gold trees, outer brackets that differ, missing parses."""
    gold = texts.references[0].lines
    yield from line_warnings(
        texts.references[0],
        lambda line, _: bool(read_sentence(line, COLLINS, ()).problems),
        "a malformed gold tree, which EVALB leaves out of F1 as an error; correct its brackets",
    )

    def is_unclean(line: str, index: int) -> bool:
        labels = {match[1] for match in map(_OUTER_BRACKET.match, (line, gold[index])) if match}
        return len(labels) == 2 and not labels.isdisjoint(UNCLEAN_ROOTS)  # unlike TOP, they count

    for system in texts.systems:
        yield from line_warnings(
            system,
            is_unclean,
            "another outer bracket than the gold tree, so it counts on one side only; clean both "
            "sides with `nmtkit trees clean`",
        )
        yield from untranslated_warnings(system, gold)


def _signature_entries(parameters: Parameters) -> Mapping[str, str]:
    # xx: for words without a tag in the parse, the tag in the gold tree decides whether they count.
    return {"prm": parameters.name(), "xx": "gold", "version": f"nmtkit-{__version__}"}
