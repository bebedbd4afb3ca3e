"""Metrics: scores of translations against references, computed by sacreBLEU.

`MAKERS` has a function for each metric of `nmtkit.config.metrics.METRICS`. moses-bleu counts as
multi-bleu.perl does over text tokenized by Moses; paper-bleu splits compounds too, as
"Attention Is All You Need" was scored. brackets is EVALB's F1 of trees. sacreBLEU and sacremoses
are imported when a metric is made, so that importing this module is cheap.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nmtkit.config.metrics import METRICS, MetricInfo, MetricsConfig, metric_names
from nmtkit.errors import ConfigError
from nmtkit.parsing.evalb.comparison import leaves
from nmtkit.parsing.evalb.parameters import Parameters, parameters_of
from nmtkit.text.moses import Moses, split_compounds
from nmtkit.version import __version__

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric
    from sacrebleu.metrics.base import Signature

_LOWER_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Lowercasing of multi-bleu.perl -lc, which reads bytes."""


@dataclass(frozen=True)
class Interval:
    """The 95 % confidence interval of a bootstrap.

    Attributes:
        mean: mean score of the resampled texts.
        half_width: half the distance between the lower and the upper bound.
    """

    mean: float
    half_width: float


@dataclass(frozen=True)
class Score:
    """The score of one system by one metric.

    Attributes:
        name: label of the metric, such as BLEU; brackets has two, F1 and strict F1.
        is_higher_better: false for an error rate.
        score: 0 to 100, except TER, which has no upper bound.
        signature: every setting that the score depends on, and sacreBLEU's version.
        details: BLEU's precisions, brevity penalty and lengths; recall, precision and more of F1.
        interval: None unless requested.
        p_value: probability of a difference from the first system at least as large, if there is
            none; None for the first system and unless requested.
        figures: EVALB's figures by their names for F1; "short" has those of sentences up to its
            cutoff length.
    """

    name: str
    is_higher_better: bool
    score: float
    signature: str
    details: str
    interval: Interval | None = None
    p_value: float | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric with its settings.

    Attributes:
        name, is_higher_better: see `Score`.
        scorer: sacreBLEU's metric.
        line_scorer: sacreBLEU's metric for single lines, which are too short for some n-grams.
        prepare: applied to each line before sacreBLEU sees it.
        marks: entries of the signature that differ from sacreBLEU's.
        text_of: the words of a prepared line, for counting them.
    """

    name: str
    is_higher_better: bool
    scorer: "SacreMetric"
    line_scorer: "SacreMetric"
    prepare: Callable[[str], str]
    marks: Mapping[str, str]
    text_of: Callable[[str], str]

    def score(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], resamples: int
    ) -> Score:
        """Score prepared lines.

        Args:
            hypotheses: the translations.
            references: one or more references, each with the same number of lines.
            resamples: resampled texts for a confidence interval; 0 = no interval.
        """
        # Less than 2 is none to sacreBLEU.
        result = self.scorer.corpus_score(hypotheses, references, n_bootstrap=resamples)
        interval = Interval(result._mean, result._ci) if resamples else None
        return Score(
            self.name,
            self.is_higher_better,
            result.score,
            self.signed(self.scorer.get_signature()),
            _details(result),
            interval,
            figures=_figures(result),
        )

    def score_line(self, hypothesis: str, references: Sequence[str]) -> float:
        """Score one prepared line."""
        return float(self.line_scorer.sentence_score(hypothesis, references).score)

    def line_signature(self) -> str:
        """Return the signature of the scores of single lines, after the first of them."""
        return self.signed(self.line_scorer.get_signature())

    def signed(self, signature: "Signature") -> str:
        """Return a signature of sacreBLEU with the marks of this metric."""
        for key, value in self.marks.items():
            signature.update(key, value)
        return str(signature)


def make_metrics(config: MetricsConfig) -> list[Metric]:
    """Make the metrics of `config.metric` in their order; brackets makes two.

    Raises:
        ConfigError: a tokenizer needs a package or a file that is missing, or the parameter file
            cannot be read.
    """
    names = metric_names(config.metric)
    return [made for name in names for made in MAKERS[name](METRICS[name], config)]


def score_corpus(
    metrics: Sequence[Metric], hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> list[Score]:
    """Score the translations of one system by each metric, in their order.

    Args:
        metrics: one or more.
        hypotheses: the translations as plain text, one per line.
        references: one or more references, each with the same number of lines.
    """
    assert all(len(lines) == len(hypotheses) > 0 for lines in references), "equally many lines"
    return [
        metric.score(
            [metric.prepare(line) for line in hypotheses],
            [[metric.prepare(line) for line in reference] for reference in references],
            resamples=0,
        )
        for metric in metrics
    ]


def bracket_signature(parameters: Parameters) -> str:
    """Return the signature of brackets with one reference, without scoring."""
    entries = {"nrefs": "1", **_bracket_marks(parameters)}
    return "|".join(f"{key}:{value}" for key, value in entries.items())


def _make_bleu(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    from sacrebleu.metrics.bleu import BLEU

    def make(effective_order: bool) -> BLEU:
        # force: no warnings about tokenized text in the middle of training.
        return BLEU(
            lowercase=config.lowercase,
            tokenize=None if config.tokenize == "auto" else config.tokenize,
            trg_lang=_target_lang(config) if config.tokenize == "auto" else "",
            effective_order=effective_order,
            force=True,
        )

    try:
        return [_text_metric(info, config, make(False), make(True))]
    except (RuntimeError, OSError) as error:
        raise ConfigError(
            f"tokenize ({config.tokenize!r}) cannot be used here: {' '.join(str(error).split())}; "
            "or take another, such as intl or char [metrics.tokenize]"
        ) from error


def _make_chrf(info: MetricInfo, config: MetricsConfig, *, word_order: int) -> list[Metric]:
    from sacrebleu.metrics.chrf import CHRF

    scorer = CHRF(word_order=word_order, lowercase=config.lowercase)
    return [_text_metric(info, config, scorer, scorer)]


def _make_ter(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    from sacrebleu.metrics.ter import TER

    scorer = TER()
    return [_text_metric(info, config, scorer, scorer)]


def _make_moses_bleu(
    info: MetricInfo, config: MetricsConfig, *, splits_compounds: bool
) -> list[Metric]:
    """Make the BLEU of multi-bleu.perl over Moses' tokens, without smoothing."""
    from sacrebleu.metrics.bleu import BLEU

    def make(effective_order: bool) -> BLEU:
        return BLEU(
            tokenize="none",
            smooth_method="none",
            effective_order=effective_order,
            force=True,
        )

    def prepare(line: str) -> str:
        tokens = moses.tokenise(line)
        if splits_compounds:
            tokens = split_compounds(tokens)
        return tokens.translate(_LOWER_ASCII) if config.lowercase else tokens

    lang = _target_lang(config)
    moses = Moses(lang)
    marks = {"tok": f"moses-{lang}" + "+compounds" * splits_compounds}
    if config.lowercase:
        marks["case"] = "lc-ascii"
    metric = _text_metric(info, config, make(False), make(True))
    return [replace(metric, prepare=prepare, marks={**metric.marks, **marks})]


def _make_brackets(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
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
            prepare=_unchanged,
            marks=_bracket_marks(parameters),
            text_of=words,
        )
        for scorer in make_bracket_scorers(parameters)
    ]


Maker = Callable[[MetricInfo, MetricsConfig], list[Metric]]
MAKERS: dict[str, Maker] = {
    "bleu": _make_bleu,
    "chrf": partial(_make_chrf, word_order=0),
    "chrf++": partial(_make_chrf, word_order=2),
    "ter": _make_ter,
    "moses-bleu": partial(_make_moses_bleu, splits_compounds=False),
    "paper-bleu": partial(_make_moses_bleu, splits_compounds=True),
    "brackets": _make_brackets,
}
"""The functions that make the metrics of `METRICS`; the first metric of each is its main one."""


def _text_metric(
    info: MetricInfo, config: MetricsConfig, scorer: "SacreMetric", line_scorer: "SacreMetric"
) -> Metric:
    """Make a metric of plain text; the signature names the test set, if there is one."""
    marks = {"test": config.test_set, "lang": config.language_pair} if config.test_set else {}
    return Metric(
        name=info.label,
        is_higher_better=info.is_higher_better,
        scorer=scorer,
        line_scorer=line_scorer,
        prepare=_unchanged,
        marks=marks,
        text_of=_unchanged,
    )


def _bracket_marks(parameters: Parameters) -> Mapping[str, str]:
    # xx: a word without a tag in the parse counts or not by its tag in the gold tree.
    return {"prm": parameters.name(), "xx": "gold", "version": f"nmtkit-{__version__}"}


def _target_lang(config: MetricsConfig) -> str:
    return config.language_pair.rpartition("-")[2]


def _unchanged(line: str) -> str:
    return line


def _details(result: Any) -> str:
    """Return the details of BLEU and F1, or nothing for other metrics."""
    from sacrebleu.metrics.bleu import BLEUScore

    from nmtkit.parsing.evalb.scorer import BracketScore

    if isinstance(result, BracketScore):
        return result.details
    if not isinstance(result, BLEUScore):
        return ""
    precisions = "/".join(f"{precision:.1f}" for precision in result.precisions)
    return (
        f"{precisions} (BP = {result.bp:.3f} ratio = {result.ratio:.3f} "
        f"hyp_len = {result.sys_len} ref_len = {result.ref_len})"
    )


def _figures(result: Any) -> Mapping[str, Any]:
    from nmtkit.parsing.evalb.scorer import BracketScore

    return result.figures if isinstance(result, BracketScore) else {}
