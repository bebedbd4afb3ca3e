"""Corpus scores by sacreBLEU, with its default settings and signatures.

sacreBLEU is imported when a score is computed, so that importing this module costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError, DataError

METRICS = ("bleu", "chrf", "ter")


@dataclass(frozen=True)
class Score:
    """One metric's result.

    Attributes:
        name: what sacreBLEU calls it: BLEU, chrF2, TER.
        score: 0 to 100, but for TER, which has no upper end and where lower is better.
        signature: every setting that the score depends on, and sacreBLEU's version.
    """

    name: str
    score: float
    signature: str


def parse_metrics(text: str) -> list[str]:
    """Return the metrics that a comma-separated list names, each once; ConfigError for others."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in METRICS:
            raise ConfigError(f"no metric {name!r}; {suggestion(name, METRICS)} [--metric]")
    return names


def score_corpus(
    metrics: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> list[Score]:
    """Score translations, one a line, against one reference each.

    Args:
        metrics: names out of `METRICS`; the result is in their order.
        hypotheses: the translations, as plain text: the metric tokenises.
        references: what they should have been, equally many.

    Raises:
        DataError: there are no lines, or not equally many.
    """
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations and {len(references)} references; "
            "give one translation a reference, in the same order"
        )
    if not hypotheses:
        raise DataError("no translations to score; give at least one line")
    return [_score(metric, hypotheses, references) for metric in metrics]


def _score(metric: str, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    scorer: BLEU | CHRF | TER
    match metric:
        case "bleu":
            # force: no warnings about tokenised text in the middle of training.
            scorer = BLEU(force=True)
        case "chrf":
            scorer = CHRF()
        case _:
            scorer = TER()
    result = scorer.corpus_score(hypotheses, [references])
    return Score(result.name, result.score, str(scorer.get_signature()))
