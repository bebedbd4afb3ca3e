"""The interface of all metrics: a metric with its settings, and the scores that it returns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nmtkit.config.metrics import MetricsConfig
from nmtkit.errors import ConfigError
from nmtkit.evaluation.texts import Texts
from nmtkit.progress.counting import WorkReporter

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric
    from sacrebleu.metrics.base import Signature


@dataclass(frozen=True)
class Interval:
    """A 95 % confidence interval, estimated by bootstrap resampling.

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
        name: label of the metric, such as BLEU.
        is_higher_better: false for an error rate.
        score: 0 to 100, except TER, which has no upper bound.
        signature: every setting that the score depends on, and sacreBLEU's version.
        details: components such as BLEU's precisions, brevity penalty and lengths; "" = none.
        interval: None unless requested.
        p_value: probability of a difference at least as large under the null hypothesis that this
            system and the first one are equal. None for the first system and unless requested.
        figures: further figures for JSON, by name.
    """

    name: str
    is_higher_better: bool = field(repr=False)
    score: float
    signature: str
    details: str
    interval: Interval | None = None
    p_value: float | None = field(default=None, repr=False)
    figures: Mapping[str, Any] = field(default_factory=dict, repr=False)


Statistics = list[list[int | float]]
"""Per line: what a score is computed from, such as matches and lengths."""

Result = tuple[float, str, Mapping[str, Any]]
"""A score with its details and figures, as in `Score`."""


def marks_of_test_set(config: MetricsConfig) -> Mapping[str, str]:
    """Return the entries of a signature that name the test set, if one is given."""
    return {"test": config.test_set, "lang": config.language_pair} if config.test_set else {}


def check_one_reference(references: Sequence[object], compared: str, name: str) -> None:
    """Raise ConfigError if there is more than one reference.

    Args:
        references: at least one.
        compared: what a metric compares, such as alignments.
        name: name of the metric.
    """
    if len(references) > 1:
        raise ConfigError(
            f"{compared} are compared with one reference, and there are {len(references)}; give "
            f"one [metric {name}]"
        )


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric with its settings.

    Attributes:
        name, is_higher_better: see `Score`.
        scorer: sacreBLEU's metric.
        line_scorer: sacreBLEU's metric for single lines, which are too short for some n-grams.
        marks: entries that replace those of sacreBLEU's signature.
        prepare: applied to each line before sacreBLEU gets it.
        text_of: text of a line whose words are counted for its length.
        describe: returns details and figures of a result of `scorer`, as in `Score`.
        replace: returns texts to score in place of others: a program replaces the lines of systems
            by their scores, and its second argument is called for each; None = `prepare` applies.
    """

    name: str
    is_higher_better: bool
    scorer: "SacreMetric"
    line_scorer: "SacreMetric"
    marks: Mapping[str, str]
    prepare: Callable[[str], str] = str
    text_of: Callable[[str], str] = str
    describe: Callable[[Any], tuple[str, Mapping[str, Any]]] = lambda _: ("", {})
    replace: Callable[[Texts, Callable[[], object]], Texts] | None = None

    def count(self, hypotheses: Iterable[str], references: Sequence[Sequence[str]]) -> Statistics:
        """Return the statistics of prepared lines.

        This and `score` are the halves of sacreBLEU's `corpus_score`.

        Args:
            hypotheses: the translations; read once, line by line.
            references: one or more references, each with the same number of lines.
        """
        statistics: Statistics = self.scorer._extract_corpus_statistics(
            hypotheses,  # type: ignore[arg-type]  # it needs no sequence
            references,
        )
        return statistics

    def score(self, statistics: Statistics, resamples: int) -> Score:
        """Score a text by its statistics, immediately after `count`.

        Args:
            statistics: of all lines.
            resamples: bootstrap samples for the confidence interval; 0 = no interval.
        """
        result = self.scorer._aggregate_and_compute(statistics)
        interval = None
        if resamples:
            from sacrebleu.significance import _bootstrap_resample

            self.scorer.n_bootstrap = resamples  # for the signature, as the seed
            self.scorer.seed, samples = _bootstrap_resample(statistics, self.scorer, resamples)
            result.estimate_ci(samples)
            interval = Interval(
                float(result._mean), float(result._ci)
            )  # of NumPy, in single precision
        details, figures = self.describe(result)
        return Score(
            self.name,
            self.is_higher_better,
            result.score,
            self.with_marks(self.scorer.get_signature()),
            details,
            interval,
            figures=figures,
        )

    def score_sums(self, sums: Sequence[int | float]) -> float:
        """Score a text by the sums of the statistics of its lines."""
        return float(self.scorer._compute_score_from_stats(list(sums)).score)

    def score_line(self, hypothesis: str, references: Sequence[str]) -> float:
        """Score one prepared line."""
        return float(self.line_scorer.sentence_score(hypothesis, references).score)

    def line_signature(self) -> str:
        """Return the signature of `score_line`; call it after the first line is scored."""
        return self.with_marks(self.line_scorer.get_signature())

    def with_marks(self, signature: "Signature") -> str:
        """Add the marks of this metric to a signature of sacreBLEU, and format it."""
        for key, value in self.marks.items():
            signature.update(key, value)
        return str(signature)


@dataclass(frozen=True)
class Output:
    """Output of `nmtkit score --sentence-level`, for one or more lines.

    Attributes:
        lines: for standard output.
        remarks: for standard error.
    """

    lines: Sequence[str]
    remarks: Sequence[str] = ()


LineReport = Callable[[Texts, bool, WorkReporter], Iterator[Output]]
"""Reports on each line of texts: as JSON or not, and with a progress."""
