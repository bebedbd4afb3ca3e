"""Warnings about runs, and about comparing them."""

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile

from nmtkit.config.metrics import METRICS
from nmtkit.progress.records import ValidationRecord
from nmtkit.reporting.document import Section
from nmtkit.reporting.runs import Run, have_one_vocabulary, signatures, validated_metrics
from nmtkit.units import SECONDS_A_MINUTE, duration

_MANY_RISES = 3
"""Fewer validations in a row, each worse than the one before, may be noise."""


def warnings(runs: Sequence[Run]) -> Section:
    """Return the section of warnings."""
    texts = [f"{run.name}: {text}" for run in runs for text in _about(run)]
    return Section("Warnings", None, [*texts, *_about_comparing(runs)] or ["none"])


def _about(run: Run) -> Iterator[str]:
    rise = _final_rise(run.validations)
    if len(rise) > _MANY_RISES:
        yield (
            f"dev nll has been rising for {len(rise) - 1} validations, from {rise[0].nll:.4f} at "
            f"update {rise[0].update:,} to {rise[-1].nll:.4f} at update {rise[-1].update:,}"
        )
    if run.last.skipped_updates:
        yield f"updates skipped, for want of finite gradients: {run.last.skipped_updates:,}"
    unfit = [record.update for record in run.training if not math.isfinite(record.loss)]
    if unfit:
        yield f"training loss not finite in {len(unfit):,} records, first at update {unfit[0]:,}"
    if not _is_finished(run):
        yield (
            f"is not finished: {run.last.update:,} of {run.recipe.training.max_updates:,} updates "
            f"at its last record, after {duration(run.last.elapsed_s)}; unless it is being trained "
            "now, the same nmtkit train command continues it"
        )


def _about_comparing(runs: Sequence[Run]) -> Iterator[str]:
    if not have_one_vocabulary(runs):
        yield (
            "the vocabularies differ: nll and perplexity are per token and cannot be compared "
            "between these runs; scores of translations can"
        )
    for metric in validated_metrics(runs):
        if len(signatures(runs, metric)) > 1:
            yield (
                f"{METRICS[metric].label} was computed in different ways, so that it cannot be "
                "compared between these runs: the signatures differ"
            )


def _final_rise(validations: Sequence[ValidationRecord]) -> Sequence[ValidationRecord]:
    """Return the last validations as far back as nll has only been rising."""
    start = len(validations) - 1
    while start > 0 and validations[start - 1].nll < validations[start].nll:
        start -= 1
    return validations[start:]


def _is_finished(run: Run) -> bool:
    """Return whether a run has reached an end of its recipe, by its records."""
    training, validation, last = run.recipe.training, run.recipe.validation, run.last
    # A run ends with a validation, which shows that its last epoch is complete.
    is_validated = not validation.validate_every or last.update == _last_validated(run)
    return (
        last.update >= training.max_updates
        or 0 < training.max_minutes * SECONDS_A_MINUTE <= last.elapsed_s
        or (0 < training.max_epochs <= last.epoch and is_validated)
        or 0 < validation.patience <= _num_stale(run)
    )


def _last_validated(run: Run) -> int:
    return run.validations[-1].update if run.validations else 0


def _num_stale(run: Run) -> int:
    """Count the validations since the last that was a new best."""
    stale = takewhile(lambda one: not one.is_best, reversed(run.validations))
    return sum(1 for _ in stale)
