"""Metrics by their names, and the settings of scoring against references.

`METRICS` holds the facts about each metric; `MAKERS` in nmtkit/evaluation/metrics.py makes them,
under the same names.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from nmtkit.config.setting import GIVEN, common, setting
from nmtkit.config.translation import MARKUPS

TargetType = Literal["text", "trees"]
"""Type of the target's lines."""

ComparedType = Literal["text", "trees", "alignments", "markup"]
"""Type of the lines that metrics compare."""


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """Facts about a metric.

    Attributes:
        label: its name in scores and reports.
        compares: the type of lines that it compares.
        settings: settings of `MetricsConfig` that change the score; others are refused.
        needs_languages: it needs --language-pair.
        needs_source: it compares translations with their source, which only `nmtkit score` reads.
        is_higher_better: false for an error rate.
    """

    label: str
    compares: ComparedType = "text"
    settings: tuple[str, ...] = ()
    needs_languages: bool = False
    needs_source: bool = False
    is_higher_better: bool = True


METRICS: dict[str, MetricInfo] = {
    "bleu": MetricInfo(label="BLEU", settings=("tokenize", "lowercase")),
    "chrf": MetricInfo(label="chrF2", settings=("lowercase",)),
    "chrf++": MetricInfo(label="chrF2++", settings=("lowercase",)),
    "ter": MetricInfo(label="TER", is_higher_better=False),
    "moses-bleu": MetricInfo(label="moses-BLEU", settings=("lowercase",), needs_languages=True),
    "paper-bleu": MetricInfo(label="paper-BLEU", settings=("lowercase",), needs_languages=True),
    "brackets": MetricInfo(label="F1", compares="trees", settings=("prm",)),
    "aer": MetricInfo(
        label="AER", compares="alignments", settings=("gold_base",), is_higher_better=False
    ),
    "terms": MetricInfo(label="Terms", settings=("glossary", "glossary_case"), needs_source=True),
    "markup": MetricInfo(label="Structure", compares="markup", settings=("markup",)),
}

SCORE_KEYS = ("system", "by_length", "by_frequency")
"""Keys of the objects of `nmtkit score --json` other than the labels of metrics."""

NLL = "nll"
"""The validation metric that needs no translation."""

AUTO, NONE = "auto", "none"
"""Values of validate_metrics: the default metric of the target's type, or no translation.

NONE is also a value of metric: only the programs of metric_command score.
"""

TYPE_SETTINGS: Mapping[ComparedType, tuple[str, ...]] = {
    "text": ("test_set", "language_pair", "by_length", "by_frequency"),
    "trees": ("by_length",),
    "alignments": (),
    "markup": ("by_length",),
}
"""Settings of scoring that have an effect with every metric of a type of lines."""

CONSTRAINT_SETTINGS: Mapping[TargetType, Mapping[str, str]] = {
    "text": dict.fromkeys(
        ("markup", "placeholders", "placeholder_pattern", "glossary", "glossary_case"),
        "the model is a parser, whose words are those of the source",
    ),
    "trees": {"malformed_trees": "the model is no parser"},
}
"""Settings of `ConstraintsConfig` that have an effect on one type of target only.

Each has the reason why it has none on other types.
"""

DEFAULT_METRICS: Mapping[TargetType, str] = {"text": "bleu", "trees": "brackets"}


CHINESE, JAPANESE, KOREAN = ("zh", "zho", "chi", "cmn", "yue", "lzh"), ("ja", "jpn"), ("ko", "kor")
_BY_CHARACTER = ("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur")
_TOKENIZERS = {
    **dict.fromkeys(CHINESE, "zh"),
    **dict.fromkeys(JAPANESE, "ja-mecab"),
    **dict.fromkeys(KOREAN, "ko-mecab"),
    **dict.fromkeys(_BY_CHARACTER, "char"),
}
"""Tokenizers of BLEU by ISO 639 codes."""

GENERAL_TOKENIZER = "13a"
"""The tokenizer of all other languages: that of mteval-v13a.pl."""


def base_language(code: str) -> str:
    """Return a language without script and country: `zh` for `zh_CN` or `zh-Hans`."""
    return re.split("[-_]", code)[0].lower()


def tokenizer_of(config: "TuningConfig") -> str:
    """Return the tokenizer of BLEU: the given one, or that of the target language."""
    target = base_language(config.language_pair.rpartition("-")[2])
    return (
        _TOKENIZERS.get(target, GENERAL_TOKENIZER) if config.tokenize == "auto" else config.tokenize
    )


def metric_names(text: str) -> list[str]:
    """Return the names in a comma-separated list, without repetitions; "none" has none."""
    return [] if text == NONE else list(dict.fromkeys(name.strip() for name in text.split(",")))


def metrics_of(compares: ComparedType, *, needs_source: bool = False) -> list[str]:
    """Return the names of the metrics for a type of lines: those without source, or with it."""
    return [
        name
        for name, info in METRICS.items()
        if (info.compares, info.needs_source) == (compares, needs_source)
    ]


OTHER_LANGUAGE = "other-language"
"""The share of validation outputs in another language, in points above that of the references."""


def base_metric(name: str) -> str:
    """Return the metric of a score, such as bleu of `bleu:en-sv`, that of one direction."""
    return name.partition(":")[0]


def label_of(name: str) -> str:
    """Return the name of a score in reports, such as `BLEU en-sv`."""
    base, _, direction = name.partition(":")
    return f"{METRICS[base].label if base in METRICS else base} {direction}".rstrip()


def cost(metric: str, nll: float, scores: Mapping[str, float]) -> float:
    """Return a validation result as a cost: smaller is better, NaN becomes infinite.

    Args:
        metric: NLL or a key of `scores`, also of one direction, such as `bleu:en-sv`.
        nll: negative log-likelihood of the validation set, per token.
        scores: the scores, by the names of metrics.
    """
    value = nll if metric == NLL else scores[metric]
    base = base_metric(metric)
    sign = -1 if base in METRICS and METRICS[base].is_higher_better else 1
    return math.inf if math.isnan(value) else sign * value


def not_validated(best_metric: str, validated: Sequence[str]) -> str:
    """Return the error message for a best_metric that is not validated."""
    return (
        f"best_metric ({best_metric!r}) is not among the validated metrics "
        f"({', '.join(validated) or NONE}); give --validate-metrics "
        f"{','.join([*validated, best_metric])}, or --best-metric {NLL}"
    )


@dataclass(frozen=True, kw_only=True)
class TuningConfig:
    """Tuning, with --tune."""

    metric: str = common(
        "bleu",
        f"Metric to tune for. One of {', '.join(metrics_of('text'))}; none: the first program of "
        "--metric-command.",
        metavar="NAME",
    )
    metric_command: tuple[str, ...] = common(
        (),
        "Program as a metric, run by the shell; may be repeated. It reads lines of source, "
        "translation and references, separated by tabs, and writes a number for each, higher is "
        "better.",
        metavar="NAME=COMMAND",
        in_recipes=False,
    )
    tokenize: str = setting(
        "auto",
        "Tokenizer of bleu, as sacreBLEU names it; auto = that of the target language, or 13a.",
        choices=("auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores200", "none"),
    )
    lowercase: bool = setting(False, "Ignore case in BLEU and chrF; TER always ignores it.")
    language_pair: str = setting(
        "",
        "Languages, such as en-de; for moses-bleu, paper-bleu and --tokenize auto. --tokenize and "
        "--language-pair also choose the words of mbr:bleu, without --tune too.",
        metavar="SOURCE-TARGET",
    )


@dataclass(frozen=True, kw_only=True)
class MetricsConfig(TuningConfig):
    """Metrics against a reference."""

    metric: str = common(
        "bleu",
        f"Comma-separated metrics of text ({', '.join(metrics_of('text'))}), of trees "
        f"({', '.join(metrics_of('trees'))}), of word alignments "
        f"({', '.join(metrics_of('alignments'))}) or of lines with tags "
        f"({', '.join(metrics_of('markup'))}). paper-bleu: as in "
        '"Attention Is All You Need"; brackets: F1 of EVALB; aer: alignment error rate; terms, of '
        "text with --source and --glossary: translated terms; markup, with --markup: kept tags; "
        "none: only --metric-command.",
        metavar="LIST",
    )
    language_pair: str = setting(
        "",
        "Languages, such as en-de; for --test-set, moses-bleu, paper-bleu and --tokenize auto.",
        metavar="SOURCE-TARGET",
    )
    test_set: str = common(
        "",
        "Test set of sacreBLEU as reference, such as wmt17; needs --language-pair.",
        metavar="NAME",
    )
    prm: str = setting(
        "", "Parameter file of EVALB for brackets.  [default: COLLINS.prm]", metavar="FILE"
    )
    gold_base: str = setting(
        NONE,
        "Number of the first word in the reference, for aer; alignments count from 0.",
        choices=(NONE, "0", "1"),
    )
    glossary: str = setting(
        "",
        "Glossary of the metric terms: per line a term, a tab, its translations separated by |.",
        metavar="FILE",
    )
    glossary_case: bool = setting(False, "Compare terms with their case.")
    markup: str = setting(
        NONE, "Markup of the lines that the metric markup compares.", choices=MARKUPS
    )


_OF_TEXTS = {"sentence_level": (False,)}
_of_texts = partial(common, only_with=_OF_TEXTS)


@dataclass(frozen=True, kw_only=True)
class SignificanceConfig:
    """Significance."""

    confidence: bool = _of_texts(
        False,
        "Print 95 % confidence intervals by the bootstrap.",
        only_with={**_OF_TEXTS, "paired_bs": (False,)},
    )
    paired_bs: bool = _of_texts(
        False,
        "Test each system against the first one by the paired bootstrap, and print intervals.",
    )
    paired_ar: bool = _of_texts(
        False, "Test each system against the first one by approximate randomisation."
    )
    resamples: int = setting(1000, "Number of bootstrap samples.", minimum=2, maximum=1_000_000)
    trials: int = setting(
        10_000,
        "Number of trials of approximate randomisation.",
        minimum=1,
        maximum=1_000_000,
        only_with={"paired_ar": GIVEN},
    )


@dataclass(frozen=True, kw_only=True)
class BreakdownConfig:
    """Breakdown."""

    sentence_level: bool = common(
        False, "Score each line instead of the whole text; brackets in the format of EVALB."
    )
    by_length: bool = setting(False, "Also print scores by sentence length.", only_with=_OF_TEXTS)
    by_frequency: str = setting(
        "",
        "Also print the F1 of words by frequency in this text, such as the training target.",
        metavar="FILE",
        only_with=_OF_TEXTS,
    )


def uses_source(config: MetricsConfig) -> bool:
    """Return whether metrics or programs get the source."""
    names = metric_names(config.metric)
    needs_source = any(METRICS[name].needs_source for name in names if name in METRICS)
    return needs_source or bool(config.metric_command)


def metric_commands(entries: Sequence[str]) -> dict[str, str]:
    """Return the commands of entries NAME=COMMAND of --metric-command, by name.

    `nmtkit/evaluation/metric_command.py` runs them.
    """
    parts = (entry.partition("=") for entry in entries)
    return {name.strip(): command.strip() for name, _, command in parts}
