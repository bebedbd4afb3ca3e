"""Confidence intervals of scores and significance tests between systems, by sacreBLEU.

Source: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation" (bootstrap);
Riezler and Maxwell 2005, "On Some Pitfalls in Automatic Evaluation and Significance Testing for MT"
(approximate randomisation). sacreBLEU's seed is 12345, or the environment variable SACREBLEU_SEED;
the same texts and seed always give the same figures.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nmtkit.config.metrics import SignificanceConfig
from nmtkit.errors import ConfigError
from nmtkit.evaluation.metric import Interval, Metric, Score, Statistics
from nmtkit.evaluation.texts import Texts
from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.units import counted

_LONG_RESAMPLING = 10_000_000
"""Lines drawn by resampling that takes seconds."""

if TYPE_CHECKING:
    from sacrebleu.significance import Result


def score_systems(
    metric: Metric,
    texts: Texts,
    config: SignificanceConfig,
    reporter: WorkReporter = SILENT,
    subset: str = "",
) -> list[Score]:
    """Score one or more systems by one metric.

    Args:
        metric: the metric.
        texts: lines after `metric.prepare`; the first system is the baseline of tests.
        config: the requested intervals and tests.
        reporter: receives the progress of scoring, and a message before long resampling.
        subset: name of the subset of lines that the texts are, for the progress.

    Returns:
        One score per system, with interval and p-value as requested.

    Raises:
        ConfigError: SACREBLEU_SEED is not valid, or a test is requested for one system.
        DataError: texts that the metric cannot compare.
    """
    is_paired = config.paired_bs or config.paired_ar
    if is_paired or config.confidence:
        _check_seed()
    if is_paired and len(texts.systems) < 2:
        raise ConfigError(
            "a paired test needs at least two systems; give their files, the baseline first"
        )
    references = [reference.lines for reference in texts.references]
    resamples = config.resamples if config.confidence and not is_paired else 0
    by = f"by {metric.name}" + (f", {subset}" if subset else "")
    scores = []
    for system in texts.systems:
        with system.named_in_errors():
            verb, total = f"scored {system.name} {by}:", len(system.lines)
            with reporter.track(system.lines, verb, "lines", total) as lines:
                statistics = metric.count(lines, references)
        if resamples * len(system.lines) >= _LONG_RESAMPLING:
            reporter.message(f"resampling {system.name} {resamples:,} times {by}")
        scores.append(metric.score(statistics, resamples))
    if not is_paired:
        return scores
    draws = config.resamples if config.paired_bs else config.trials
    if draws * len(texts.systems) * len(references[0]) >= _LONG_RESAMPLING:
        reporter.message(f"testing {counted(len(texts.systems), 'systems')} {by}")
    return _tested(metric, scores, texts, config)


def _tested(
    metric: Metric, scores: Sequence[Score], texts: Texts, config: SignificanceConfig
) -> list[Score]:
    """Add p-values, intervals and the signature of a paired test to scores."""
    from sacrebleu.significance import PairedTest

    # -1 means no intervals to sacreBLEU; the paired bootstrap always returns them.
    resamples = config.resamples if config.confidence and config.paired_ar else -1
    test = PairedTest(
        [(system.name, system.lines) for system in texts.systems],
        {metric.name: metric.scorer},
        [reference.lines for reference in texts.references],
        test_type="bs" if config.paired_bs else "ar",
        n_samples=config.resamples if config.paired_bs else config.trials,
        n_ar_confidence=resamples,
    )
    signatures, results = test()
    (own_name,) = signatures
    signature = metric.with_marks(signatures[own_name])
    tested = []
    for score, result in zip(scores, results[own_name], strict=True):
        assert not isinstance(result, str), "the names of systems are in another column"
        # sacreBLEU counts only draws with a larger difference, so p of equal systems is too small.
        p_value = 1.0 if result.p_value and score.score == scores[0].score else result.p_value
        tested.append(
            replace(score, signature=signature, interval=_interval(result), p_value=p_value)
        )
    return tested


def paired_bootstrap(
    metric: Metric, first: Statistics, second: Statistics, num_resamples: int
) -> float:
    """Return the p-value of the paired bootstrap between two systems.

    It is that of `score_systems`, from statistics alone and without holding all resamples.

    Args:
        metric: the metric.
        first, second: the statistics of the same lines, as the metric counts them.
        num_resamples: number of bootstrap samples.

    Raises:
        ConfigError: SACREBLEU_SEED is not valid.
    """
    import numpy as np
    from sacrebleu.significance import _compute_p_value

    _check_seed()
    seed = os.environ.get("SACREBLEU_SEED", "12345")
    generator = np.random.default_rng(None if seed.lower() == "none" else int(seed))
    systems = [np.array(lines, dtype="float32") for lines in (first, second)]
    score = metric.scorer._compute_score_from_stats
    differences = []
    for _ in range(num_resamples):
        drawn = generator.choice(len(first), size=len(first))
        scores = [score(lines[drawn].sum(0)).score for lines in systems]
        differences.append(abs(scores[1] - scores[0]))
    real = [metric.scorer._aggregate_and_compute(lines).score for lines in (first, second)]
    sampled = np.array(differences)
    p_value: float = _compute_p_value(sampled - sampled.mean(), abs(real[1] - real[0]))
    return 1.0 if real[0] == real[1] else p_value  # as in `_tested`


def _interval(result: "Result") -> Interval | None:
    """Return the interval of sacreBLEU's result, or None."""
    if result.mean is None or result.ci is None:
        return None
    return Interval(float(result.mean), float(result.ci))


def _check_seed() -> None:
    seed = os.environ.get("SACREBLEU_SEED", "none")
    # sacreBLEU's paired tests treat 0 as no seed.
    if seed.lower() != "none" and not re.fullmatch("[1-9][0-9]*", seed):
        raise ConfigError(
            f"SACREBLEU_SEED ({seed!r}) must be a whole number of at least 1, or none; "
            "set such a value, or unset it"
        )
