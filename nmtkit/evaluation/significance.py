"""Confidence intervals of scores and significance tests between systems, by sacreBLEU.

Source: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation" (bootstrap);
Riezler and Maxwell 2005, "On Some Pitfalls in Automatic Evaluation and Significance Testing for MT"
(approximate randomisation). sacreBLEU's seed is 12345, or the environment variable SACREBLEU_SEED;
the same texts and seed always give the same figures.
"""

import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, overload

from nmtkit.config.metrics import SignificanceConfig
from nmtkit.errors import ConfigError
from nmtkit.evaluation.metric import Interval, Metric, Score
from nmtkit.evaluation.texts import Texts
from nmtkit.progress.counting import SILENT, WorkReporter

_LONG_RESAMPLING = 10_000_000
"""Lines drawn by resampling that takes seconds."""

if TYPE_CHECKING:
    from sacrebleu.significance import Result


def score_systems(
    metric: Metric, texts: Texts, config: SignificanceConfig, reporter: WorkReporter = SILENT
) -> list[Score]:
    """Score one or more systems by one metric.

    Args:
        metric: the metric.
        texts: lines after `metric.prepare`; the first system is the baseline of tests.
        config: the requested intervals and tests.
        reporter: receives the progress of scoring, and a message before long resampling.

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
    scores = []
    for system in texts.systems:
        with system.named_in_errors():
            _announce(resamples, len(system.lines), metric, reporter)
            verb = f"scored {system.name} by {metric.name}:"
            with closing(_Watched(system.lines, reporter, verb)) as lines:
                scores.append(metric.score(lines, references, resamples))
    if is_paired:
        draws = config.resamples if config.paired_bs else config.trials
        _announce(draws, len(texts.systems) * len(references[0]), metric, reporter)
    return _tested(metric, scores, texts, config) if is_paired else scores


class _Watched(Sequence[str]):
    """Lines whose iterations are counted; sacreBLEU scores a text line by line."""

    def __init__(self, lines: Sequence[str], reporter: WorkReporter, verb: str) -> None:
        self._lines = lines
        self._reporter = reporter
        self._verb = verb
        self._iteration = self._watched()

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[str]:
        self._iteration = self._watched()
        return self._iteration

    def close(self) -> None:
        """End the last iteration, which sacreBLEU leaves open when it fails."""
        self._iteration.close()

    def _watched(self) -> Generator[str]:
        with self._reporter.track(self._lines, self._verb, "lines", len(self)) as lines:
            yield from lines


def _announce(draws: int, num_lines: int, metric: Metric, reporter: WorkReporter) -> None:
    """Report resampling that takes seconds."""
    if draws * num_lines >= _LONG_RESAMPLING:
        reporter.message(f"resampling {draws:,} times for {metric.name}")


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
