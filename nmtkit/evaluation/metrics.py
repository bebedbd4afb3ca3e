"""Metrics: scores of translations against references, computed and named by sacreBLEU.

Two kinds of BLEU that sacreBLEU does not have are its BLEU over words that are cut here:
moses-bleu counts as multi-bleu.perl does over text of Moses' tokenizer.perl; paper-bleu splits
compounds as well, as "Attention Is All You Need" was scored. Of trees, EVALB's F1, as a metric of
sacreBLEU's kind. sacreBLEU and sacremoses are imported
when a metric is made, so that importing this module costs nothing.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nmtkit.config.metrics import BRACKETS, MOSES_METRICS, MetricsConfig, metric_names
from nmtkit.errors import ConfigError
from nmtkit.evaluation.brackets import leaves
from nmtkit.evaluation.prm import Parameters, parameters_of
from nmtkit.text.moses import Moses, split_compounds
from nmtkit.version import __version__

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric
    from sacrebleu.metrics.base import Signature

_LOWER_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""What multi-bleu.perl -lc does, which reads bytes."""


@dataclass(frozen=True)
class Interval:
    """What 95 % of the texts score that a bootstrap draws.

    Attributes:
        mean: of their scores.
        half_width: half the way from the lowest to the highest.
    """

    mean: float
    half_width: float


@dataclass(frozen=True)
class Score:
    """What one metric says of one system.

    Attributes:
        name: of the metric: BLEU, chrF2, chrF2++, TER, moses-BLEU, paper-BLEU, F1, strict F1.
        score: 0 to 100, but for TER, which has no upper end and where lower is better.
        signature: every setting that the score depends on, and sacreBLEU's version.
        details: of BLEU, the precisions, the brevity penalty and the lengths; of F1, what it
            consists of.
        interval: if it was asked for.
        p_value: how probable so large a difference from the first system is if there is none;
            None for the first system, and where that was not asked for.
        figures: of F1, EVALB's figures by their names, and under "short" those of sentences up to
            its cut-off length.
    """

    name: str
    score: float
    signature: str
    details: str
    interval: Interval | None = None
    p_value: float | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """A metric with its settings.

    Attributes:
        name: see `Score`.
        scorer: sacreBLEU's metric.
        line_scorer: likewise, for single lines, which are too short for some n-grams.
        prepare: what is done to each line before sacreBLEU sees it.
        marks: entries of the signature that are not as sacreBLEU has them.
        text_of: what is in a prepared line to be counted in words.
    """

    name: str
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
            references: the references, one or more; each has as many lines.
            resamples: texts to draw for a confidence interval; 0 for none.
        """
        # Less than 2 is none to sacreBLEU.
        result = self.scorer.corpus_score(hypotheses, references, n_bootstrap=resamples)
        interval = Interval(result._mean, result._ci) if resamples else None
        signature = self.signed(self.scorer.get_signature())
        return Score(
            self.name, result.score, signature, _details(result), interval, figures=_figures(result)
        )

    def score_line(self, hypothesis: str, references: Sequence[str]) -> float:
        """Score one prepared line."""
        return float(self.line_scorer.sentence_score(hypothesis, references).score)

    def line_signature(self) -> str:
        """Return the signature of the lines' scores, once there is one."""
        return self.signed(self.line_scorer.get_signature())

    def signed(self, signature: "Signature") -> str:
        """Return a signature of sacreBLEU's with this metric's own marks."""
        for key, value in self.marks.items():
            signature.update(key, value)
        return str(signature)


def make_metrics(config: MetricsConfig) -> list[Metric]:
    """Make the metrics that are asked for, in their order.

    Args:
        config: checked.

    Raises:
        ConfigError: a tokeniser needs a package or a file that is not there, or the file of prm
            cannot be read.
    """
    if BRACKETS in metric_names(config):
        return _make_bracket_metrics(config)
    marks = {"test": config.test_set, "lang": config.language_pair} if config.test_set else {}
    return [_make_metric(name, config, marks) for name in metric_names(config)]


def score_corpus(
    metrics: Sequence[Metric], hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> list[Score]:
    """Score the translations of one system; one score a metric.

    Args:
        metrics: the result is in their order.
        hypotheses: the translations, one a line, as plain text: the metric tokenises.
        references: what they should have been: one or more references, each of as many lines.
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
    """Return the signature that scores of trees have, for one reference, without scoring any."""
    entries = {"nrefs": "1", **_bracket_marks(parameters)}
    return "|".join(f"{key}:{value}" for key, value in entries.items())


def _make_metric(name: str, config: MetricsConfig, marks: Mapping[str, str]) -> Metric:
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if name in MOSES_METRICS:
        return _make_moses_metric(name, config, marks)
    if name == "bleu":
        return _make_bleu(config, marks)
    if name == "ter":
        scorer: CHRF | TER = TER()
        return Metric("TER", scorer, scorer, _as_it_is, marks, _as_it_is)
    word_order = 2 if name == "chrf++" else 0
    scorer = CHRF(word_order=word_order, lowercase=config.lowercase)
    return Metric("chrF2" + "+" * word_order, scorer, scorer, _as_it_is, marks, _as_it_is)


def _make_bleu(config: MetricsConfig, marks: Mapping[str, str]) -> Metric:
    from sacrebleu.metrics.bleu import BLEU

    def make(effective_order: bool) -> BLEU:
        # force: no warnings about tokenised text in the middle of training.
        return BLEU(
            lowercase=config.lowercase,
            tokenize=None if config.tokenize == "auto" else config.tokenize,
            trg_lang=_target_lang(config) if config.tokenize == "auto" else "",
            effective_order=effective_order,
            force=True,
        )

    try:
        return Metric("BLEU", make(False), make(True), _as_it_is, marks, _as_it_is)
    except (RuntimeError, OSError) as error:
        raise ConfigError(
            f"tokenize ({config.tokenize!r}) cannot be used here: {' '.join(str(error).split())}; "
            "or take another, such as intl or char [metrics.tokenize]"
        ) from error


def _make_moses_metric(name: str, config: MetricsConfig, marks: Mapping[str, str]) -> Metric:
    """Make BLEU as multi-bleu.perl counts it: over words as they are, without smoothing."""
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
        if is_split:
            tokens = split_compounds(tokens)
        return tokens.translate(_LOWER_ASCII) if config.lowercase else tokens

    lang = _target_lang(config)
    moses, is_split = Moses(lang), name == "paper-bleu"
    marks = {**marks, "tok": f"moses-{lang}" + "+compounds" * is_split}
    if config.lowercase:
        marks["case"] = "lc-ascii"
    name = "paper-BLEU" if is_split else "moses-BLEU"
    return Metric(name, make(False), make(True), prepare, marks, _as_it_is)


def _make_bracket_metrics(config: MetricsConfig) -> list[Metric]:
    from nmtkit.evaluation.bracket_scorer import make_bracket_scorers

    def words(line: str) -> str:
        return " ".join(leaves(line, parameters))

    parameters = parameters_of(config.prm)
    return [
        Metric(scorer.name, scorer, scorer, _as_it_is, _bracket_marks(parameters), words)
        for scorer in make_bracket_scorers(parameters)
    ]


def _bracket_marks(parameters: Parameters) -> Mapping[str, str]:
    # xx: where a parse does not tell a word's tag, the gold tree's decides whether it counts.
    return {"prm": parameters.name(), "xx": "gold", "version": f"nmtkit-{__version__}"}


def _target_lang(config: MetricsConfig) -> str:
    return config.language_pair.rpartition("-")[2]


def _as_it_is(line: str) -> str:
    return line


def _details(result: Any) -> str:
    """Return what is told of BLEU and F1 beside the score; nothing for other metrics."""
    from sacrebleu.metrics.bleu import BLEUScore

    from nmtkit.evaluation.bracket_scorer import BracketScore

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
    from nmtkit.evaluation.bracket_scorer import BracketScore

    return result.figures if isinstance(result, BracketScore) else {}
