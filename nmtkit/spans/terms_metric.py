"""Translated terms as a metric of `nmtkit score`: the share of a glossary's terms that are kept.

Each term of the glossary that occurs in the source must have one of its target terms in the
translation, as whole words and as often as in the source. Terms with the same target terms are
counted together. The score is the percentage of these occurrences that the translations have;
without any, nothing is missing. References do not count.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from nmtkit.config.metrics import MetricInfo, MetricsConfig
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metric import Metric, Result, Statistics, marks_of_test_set
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.spans.glossary import Glossary, target_finder

Targets = tuple[str, ...]
"""The target terms that may translate a source term."""


def make_terms_metric(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    """Return the metric of the glossary of `config`.

    Raises:
        ConfigError, DataError: see `Glossary.read`.
    """
    # Only making a metric imports sacreBLEU.
    from nmtkit.evaluation.summed_metric import summed_metric

    glossary = Glossary.read(Path(config.glossary), is_case_sensitive=config.glossary_case)
    marks = {
        "glossary": glossary.fingerprint(),
        "case": "mixed" if config.glossary_case else "lc",
        **marks_of_test_set(config),
    }
    metric = summed_metric(info, info.label, _count, _score, marks)
    return [replace(metric, replace=partial(_counted, glossary, config.glossary))]


def _counted(glossary: Glossary, path: str, texts: Texts, on_score: Callable[[], object]) -> Texts:
    """Replace each line of systems by two numbers: its terms, and how many the source demands.

    Raises:
        ConfigError: the source is unknown.
        DataError: the source has no terms.
    """
    if texts.source is None:
        raise ConfigError(
            "metric terms compares translations with their source, which is missing; give --source"
        )
    demanded = [
        Counter(term.targets for term in glossary.find(line)) for line in texts.source.lines
    ]
    if not any(demanded):
        raise DataError(
            f"{texts.source.name} has none of the {len(glossary)} source terms of {path}; give a "
            "glossary whose first column is of the language of --source"
        )

    find_targets = target_finder(is_case_sensitive=glossary.is_case_sensitive)

    def counts(line: str, demand: Counter[Targets]) -> str:
        on_score()
        found = sum(
            min(number, len(find_targets(targets, line))) for targets, number in demand.items()
        )
        return f"{found} {demand.total()}"

    def counted(system: Text) -> Text:
        return Text(system.name, [*map(counts, system.lines, demanded)])

    return Texts([*map(counted, texts.systems)], texts.references, texts.source)


def _count(lines: Iterable[str], _references: Sequence[Sequence[str]]) -> Statistics:
    return [[*map(int, line.split())] for line in lines]


def _score(sums: Sequence[int | float]) -> Result:
    found, total = map(int, sums)
    score = 100 * found / total if total else 100.0
    return score, f"(found = {found} terms = {total})", {"found": found, "terms": total}
