"""EVALB's F1 as a metric of `nmtkit score`: its maker, its report, warnings about input."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from nmtkit.config.metrics import MetricInfo, MetricsConfig
from nmtkit.evaluation.input_checks import line_warnings, untranslated_warnings
from nmtkit.evaluation.metric import LineReport, Metric, Output
from nmtkit.evaluation.texts import Texts
from nmtkit.parsing.evalb.comparison import (
    Comparison,
    check_one_reference,
    compare_lines,
    leaves,
    read_sentence,
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
from nmtkit.progress.counting import WorkReporter
from nmtkit.version import __version__

_OUTER_BRACKET = re.compile(r"\s*\(([^\s()]*)")
_UNCLEAN_ROOTS = ("", "ROOT", "S1")
"""Outer brackets of treebanks and of other tools; unlike TOP, they count."""


def make_bracket_metrics(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    """Return the metrics F1 and strict F1.

    Raises:
        ConfigError, DataError: see `parameters_of`.
    """
    # Only making a metric imports sacreBLEU.
    from nmtkit.parsing.evalb.scorer import make_bracket_scorers

    def words(line: str) -> str:
        return " ".join(leaves(line, parameters))

    parameters = parameters_of(config.prm)
    return [
        Metric(
            name=scorer.name,
            is_higher_better=info.is_higher_better,
            scorer=scorer,
            line_scorer=scorer,
            marks=_signature_entries(parameters),
            text_of=words,
            describe=_describe,
        )
        for scorer in make_bracket_scorers(parameters)
    ]


def evalb_report(config: MetricsConfig) -> LineReport:
    """Return the function that reports on texts in EVALB's format, or as one object per line.

    Raises:
        ConfigError, DataError: see `parameters_of`; from the function, see `compare_trees`.
    """
    return partial(_report, parameters_of(config.prm))


def _report(
    parameters: Parameters, texts: Texts, as_json: bool, reporter: WorkReporter
) -> Iterator[Output]:
    comparisons, num_trees = compare_trees(texts, parameters), len(texts.references[0].lines)
    counts, short = [], [Counts()]
    yield Output([] if as_json else HEAD)
    with reporter.track(comparisons, "scored", "trees", num_trees) as compared:
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


def compare_trees(texts: Texts, parameters: Parameters) -> Iterator[Comparison]:
    """Return EVALB's comparison of each line of a system with the gold tree.

    Args:
        texts: with equally many lines.
        parameters: of EVALB.

    Raises:
        ConfigError: there are several systems or references; raised by the call.
        DataError: see `compare_lines`; raised while iterating.
    """
    system = texts.only_system()
    check_one_reference(len(texts.references))
    gold = texts.references[0]

    def comparisons() -> Iterator[Comparison]:
        with system.named_in_errors():
            yield from compare_lines(gold.lines, system.lines, parameters)

    return comparisons()


def parse_warnings(texts: Texts) -> Iterator[str]:
    """Yield warnings about malformed gold trees, outer brackets that differ, missing parses."""
    gold = texts.references[0].lines
    yield from line_warnings(
        texts.references[0],
        lambda line, _: bool(read_sentence(line, COLLINS, ()).problems),
        "a malformed gold tree, which EVALB leaves out of F1 as an error; correct its brackets",
    )

    def is_unclean(line: str, index: int) -> bool:
        parsed, right = map(_OUTER_BRACKET.match, (line, gold[index]))
        if not parsed or not right or parsed[1] == right[1]:
            return False
        return parsed[1] in _UNCLEAN_ROOTS or right[1] in _UNCLEAN_ROOTS

    for system in texts.systems:
        yield from line_warnings(
            system,
            is_unclean,
            "another outer bracket than the gold tree, so it counts on one side only; clean both "
            "sides with `nmtkit trees clean`",
        )
        yield from untranslated_warnings(system, gold)


def _describe(score: Any) -> tuple[str, Mapping[str, Any]]:
    return score.details, score.figures


def _signature_entries(parameters: Parameters) -> Mapping[str, str]:
    # xx: for words without a tag in the parse, the tag in the gold tree decides whether they count.
    return {"prm": parameters.name(), "xx": "gold", "version": f"nmtkit-{__version__}"}
