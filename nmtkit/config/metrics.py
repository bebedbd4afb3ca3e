"""Metrics by their names, and the settings of scoring against references; see also schema.py.

`METRICS` holds the facts about each metric. `MAKERS` in nmtkit/evaluation/metrics.py has the
functions that make them, under the same names.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nmtkit.config.setting import setting

TargetType = Literal["text", "trees"]
"""Type of the lines of a target."""


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """Facts about a metric.

    Attributes:
        label: its name in scores and reports.
        compares: the lines that it compares.
        settings: settings of `MetricsConfig` that change the score; others are refused.
        needs_languages: it cannot be computed without the languages.
        is_higher_better: false for an error rate.
    """

    label: str
    compares: TargetType = "text"
    settings: tuple[str, ...] = ()
    needs_languages: bool = False
    is_higher_better: bool = True


METRICS: dict[str, MetricInfo] = {
    "bleu": MetricInfo(label="BLEU", settings=("tokenize", "lowercase")),
    "chrf": MetricInfo(label="chrF2", settings=("lowercase",)),
    "chrf++": MetricInfo(label="chrF2++", settings=("lowercase",)),
    "ter": MetricInfo(label="TER", is_higher_better=False),
    "moses-bleu": MetricInfo(label="moses-BLEU", settings=("lowercase",), needs_languages=True),
    "paper-bleu": MetricInfo(label="paper-BLEU", settings=("lowercase",), needs_languages=True),
    "brackets": MetricInfo(label="F1", compares="trees", settings=("prm",)),
}

NLL = "nll"
"""The metric of validation that needs no translation."""

AUTO, NONE = "auto", "none"
"""Values of validate_metrics: by the type of the target, or no translation."""

TYPE_SETTINGS: Mapping[TargetType, tuple[str, ...]] = {
    "text": ("test_set", "language_pair", "by_frequency"),
    "trees": (),
}
"""Settings of scoring that have an effect on lines of a type, whatever metric compares them."""

DEFAULT_METRICS: Mapping[TargetType, str] = {"text": "bleu", "trees": "brackets"}


def metric_names(text: str) -> list[str]:
    """Return the names of a comma-separated list, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def metrics_of(compares: TargetType) -> list[str]:
    """Return the names of the metrics that compare such lines."""
    return [name for name, info in METRICS.items() if info.compares == compares]


def cost(metric: str, nll: float, scores: Mapping[str, float]) -> float:
    """Return a number that is smaller the better a validation is by a metric.

    Args:
        metric: NLL or a name of `scores`.
        nll: negative log-likelihood of the validation; NaN is the worst.
        scores: by the names of metrics.
    """
    value = nll if metric == NLL else scores[metric]
    sign = -1 if metric != NLL and METRICS[metric].is_higher_better else 1
    return math.inf if math.isnan(value) else sign * value


def not_validated(best_metric: str, validated: Sequence[str]) -> str:
    """Return the message that best_metric is not among the validated metrics."""
    return (
        f"best_metric ({best_metric!r}) is not among the validated metrics "
        f"({', '.join(validated) or NONE}); give --validate-metrics "
        f"{','.join([*validated, best_metric])}, or --best-metric {NLL} [validation.best_metric]"
    )


@dataclass(frozen=True, kw_only=True)
class MetricsConfig:
    """Metrics against a reference."""

    metric: str = setting(
        "bleu",
        f"Comma-separated metrics of text ({', '.join(metrics_of('text'))}) or of trees "
        f"({', '.join(metrics_of('trees'))}). paper-bleu is the BLEU of "
        '"Attention Is All You Need", brackets is the F1 of EVALB.',
        metavar="LIST",
    )
    tokenize: str = setting(
        "auto",
        "Tokenizer of bleu, by sacreBLEU's names; auto: the one for --language-pair, or 13a.",
        choices=("auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores200", "none"),
    )
    lowercase: bool = setting(False, "Ignore case in BLEU and chrF; TER always does.")
    test_set: str = setting(
        "",
        "Use the references of a test set of sacreBLEU, such as wmt17; needs --language-pair.",
        metavar="NAME",
    )
    language_pair: str = setting(
        "",
        "Languages, such as en-de: for --test-set, moses-bleu, paper-bleu and --tokenize auto.",
        metavar="SOURCE-TARGET",
    )
    prm: str = setting(
        "",
        "Parameter file of EVALB for brackets; without it, those of COLLINS.prm.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class SignificanceConfig:
    """Confidence of the scores."""

    confidence: bool = setting(False, "95 % confidence intervals by the bootstrap.")
    paired_bs: bool = setting(
        False, "Test each system against the first one by the paired bootstrap."
    )
    paired_ar: bool = setting(
        False, "Test each system against the first one by approximate randomisation."
    )
    resamples: int = setting(1000, "Resampled texts of the bootstrap.", minimum=2)
    trials: int = setting(10_000, "Trials of approximate randomisation.", minimum=1)


@dataclass(frozen=True, kw_only=True)
class BreakdownConfig:
    """Breakdown of the scores."""

    sentence: bool = setting(
        False, "Score line by line instead of the whole text; brackets in the format of EVALB."
    )
    by_length: bool = setting(False, "Also score sentences by length.")
    by_frequency: str = setting(
        "",
        "Also print the F1 of words by their frequency in this text, such as the target side of "
        "the training data.",
        metavar="FILE",
    )
