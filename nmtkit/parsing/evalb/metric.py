"""EVALB's F1 as a metric of `nmtkit score`: its maker, its report, warnings about input."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields, replace
from functools import cache, partial

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
    compare,
    compare_lines,
    leaves,
    read_sentence,
    within_max_error,
)
from nmtkit.parsing.evalb.parameters import COLLINS, Parameters, parameters_of
from nmtkit.parsing.evalb.report import (
    HEAD,
    Counts,
    as_object,
    count_sentence,
    format_row,
    format_summary,
    sum_counts,
)
from nmtkit.parsing.treebank import UNCLEAN_ROOTS
from nmtkit.progress.counting import WorkReporter
from nmtkit.version import __version__

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
        counts = count_sentence(one)
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
    yield Output([] if as_json else HEAD)
    comparisons = compare_lines(gold, system.lines, parameters)
    with (
        system.named_in_errors(),
        reporter.track(comparisons, "scored", "trees", len(gold)) as compared,
    ):
        for number, one in enumerate(compared, 1):
            problems = [f"{number} : {problem}" for problem in one.problems]
            line = json.dumps(as_object(one)) if as_json else format_row(number, one)
            yield Output([line], problems)
            counts.append(count_sentence(one))
            if one.length <= parameters.cutoff_length:
                short.append(counts[-1])
    if not as_json:
        yield Output(
            format_summary(sum_counts(counts), sum_counts(short), parameters.cutoff_length)
        )
    # The signature of a score with one reference, as sacreBLEU would write it.
    signature = "|".join(f"{key}:{value}" for key, value in _signature_entries(parameters).items())
    yield Output([], [f"F1: nrefs:1|{signature}"])


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
