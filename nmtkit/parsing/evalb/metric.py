"""EVALB's F1 as a metric of `nmtkit score`: its maker, its report on lines, doubts about texts."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from nmtkit.config.metrics import MetricInfo, MetricsConfig
from nmtkit.evaluation.doubts import missing, warning
from nmtkit.evaluation.metric import Metric, Output
from nmtkit.evaluation.texts import Texts
from nmtkit.parsing.evalb.comparison import (
    Comparison,
    check_one_reference,
    compare_lines,
    leaves,
)
from nmtkit.parsing.evalb.parameters import Parameters, parameters_of
from nmtkit.parsing.evalb.report import HEAD, Counts, as_object, counts_of, end, row, total
from nmtkit.version import __version__

_OUTER_BRACKET = re.compile(r"\s*\(([^\s()]*)")
_UNCLEAN_ROOTS = ("", "ROOT", "S1")
"""Outer brackets of treebanks and of other tools, which count unless they are named TOP."""


def make_bracket_metrics(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    """Make F1 and strict F1.

    Raises:
        ConfigError, DataError: see `parameters_of`.
    """
    # sacreBLEU is imported when a metric is made.
    from nmtkit.parsing.evalb.scorer import make_bracket_scorers

    def words(line: str) -> str:
        return " ".join(leaves(line, parameters))

    def describe(result: Any) -> tuple[str, Mapping[str, Any]]:
        return result.details, result.figures

    parameters = parameters_of(config.prm)
    return [
        Metric(
            name=scorer.name,
            is_higher_better=info.is_higher_better,
            scorer=scorer,
            line_scorer=scorer,
            marks=_marks(parameters),
            text_of=words,
            describe=describe,
        )
        for scorer in make_bracket_scorers(parameters)
    ]


def bracket_signature(parameters: Parameters) -> str:
    """Return the signature of scores with one reference, without scoring."""
    entries = {"nrefs": "1", **_marks(parameters)}
    return "|".join(f"{key}:{value}" for key, value in entries.items())


def evalb_report(config: MetricsConfig) -> Callable[[Texts, bool], Iterator[Output]]:
    """Return the function that compares texts in EVALB's format, or as an object per line.

    Raises:
        ConfigError, DataError: see `parameters_of`; from the function, see `compare_trees`.
    """
    return partial(_report, parameters_of(config.prm))


def _report(parameters: Parameters, texts: Texts, as_json: bool) -> Iterator[Output]:
    comparisons = compare_trees(texts, parameters)
    counts, short = [], [Counts()]
    yield Output([] if as_json else HEAD)
    for number, one in enumerate(comparisons, 1):
        problems = [f"{number} : {problem}" for problem in one.problems]
        yield Output([json.dumps(as_object(one)) if as_json else row(number, one)], problems)
        counts.append(counts_of(one))
        if one.length <= parameters.cutoff_length:
            short.append(counts[-1])
    if not as_json:
        yield Output(end(total(counts), total(short), parameters.cutoff_length))
    yield Output([], [f"F1: {bracket_signature(parameters)}"])


def compare_trees(texts: Texts, parameters: Parameters) -> Iterator[Comparison]:
    """Return EVALB's comparison of each line of a system with the gold tree.

    Args:
        texts: checked.
        parameters: what counts.

    Raises:
        ConfigError: immediately; there are several systems, or several references.
        DataError: as the lines are compared; see `compare_lines`.
    """
    system = texts.only_system()
    check_one_reference(len(texts.references))
    gold = texts.references[0]

    def comparisons() -> Iterator[Comparison]:
        with system.blamed():
            yield from compare_lines(gold.lines, system.lines, parameters)

    return comparisons()


def parse_doubts(texts: Texts) -> Iterator[str]:
    """Yield warnings about parses and gold trees."""
    gold = texts.references[0].lines

    def is_unclean(line: str, index: int) -> bool:
        parsed, right = map(_OUTER_BRACKET.match, (line, gold[index]))
        if not parsed or not right or parsed[1] == right[1]:
            return False
        return parsed[1] in _UNCLEAN_ROOTS or right[1] in _UNCLEAN_ROOTS

    for system in texts.systems:
        yield from warning(
            system,
            is_unclean,
            "another outer bracket than the gold tree, and one of the two counts: clean both sides "
            "with `nmtkit trees clean`",
        )
        yield from missing(system, gold)


def _marks(parameters: Parameters) -> Mapping[str, str]:
    # xx: a word without a tag in the parse counts or not by its tag in the gold tree.
    return {"prm": parameters.name(), "xx": "gold", "version": f"nmtkit-{__version__}"}
