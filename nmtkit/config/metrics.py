"""The sections of a recipe that scoring against references has; see schema.py for the rest."""

from dataclasses import dataclass

from nmtkit.config.setting import setting

TEXT_METRICS = ("bleu", "chrf", "chrf++", "ter", "moses-bleu", "paper-bleu")
BRACKETS = "brackets"
"""What compares trees."""
METRICS = (*TEXT_METRICS, BRACKETS)
MOSES_METRICS = ("moses-bleu", "paper-bleu")
"""Those whose words are Moses' of the target language."""


@dataclass(frozen=True, kw_only=True)
class MetricsConfig:
    """How translations are compared with a reference."""

    metric: str = setting(
        "bleu",
        f"One or more, separated by commas: {', '.join(TEXT_METRICS)}, which is the BLEU of "
        f'"Attention Is All You Need"; or {BRACKETS}, which is EVALB\'s F1 of trees.',
        metavar="LIST",
    )
    tokenize: str = setting(
        "auto",
        "What BLEU takes for words, in sacreBLEU's terms; auto: what --language-pair suggests, "
        "or else 13a.",
        choices=("auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores200", "none"),
    )
    lowercase: bool = setting(False, "Ignore case in BLEU and chrF; TER always does.")
    test_set: str = setting(
        "",
        "Take the references of a test set that sacreBLEU knows, such as wmt17; needs "
        "--language-pair.",
        metavar="NAME",
    )
    language_pair: str = setting(
        "",
        "Such as en-de: for --test-set, and for BLEU whose words depend on the target language, as "
        "those of moses-bleu and paper-bleu do.",
        metavar="SOURCE-TARGET",
    )
    prm: str = setting(
        "",
        "A parameter file of EVALB's, for brackets; without one, COLLINS.prm is what counts.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class SignificanceConfig:
    """How sure the scores are."""

    confidence: bool = setting(False, "95 % confidence intervals, by the bootstrap.")
    paired_bs: bool = setting(
        False, "Test each system against the first one, by the paired bootstrap."
    )
    paired_ar: bool = setting(False, "Test likewise, by approximate randomisation.")
    resamples: int = setting(1000, "Texts that the bootstrap draws.", minimum=2)
    trials: int = setting(10_000, "Trials of approximate randomisation.", minimum=1)


@dataclass(frozen=True, kw_only=True)
class BreakdownConfig:
    """What the scores consist of."""

    sentence: bool = setting(
        False, "Score line by line, instead of the text as a whole; brackets as EVALB prints them."
    )
    by_length: bool = setting(False, "Also score short and long sentences apart.")
    by_frequency: str = setting(
        "",
        "Also tell how well rare and frequent words are translated, by how often they are in this "
        "text: that of training, in the target language.",
        metavar="FILE",
    )


def metric_names(config: MetricsConfig) -> list[str]:
    """Return the metrics that are asked for, each once."""
    return list(dict.fromkeys(name.strip() for name in config.metric.split(",")))
