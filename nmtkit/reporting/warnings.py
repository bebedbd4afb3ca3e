"""Warnings about runs and about comparing them.

A module of its own: report.py only chooses sections.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile

from nmtkit.config.metrics import METRICS
from nmtkit.progress.records import ValidationRecord
from nmtkit.reporting.comparing import differences
from nmtkit.reporting.document import Section
from nmtkit.reporting.runs import Run, signatures, validated_metrics
from nmtkit.units import SECONDS_PER_MINUTE, duration

_MIN_RISES = 3
"""Fewer rises of nll in a row may be noise."""


def warnings(runs: Sequence[Run]) -> Section:
    """Return the section of warnings."""
    texts = [f"{run.name}: {text}" for run in runs for text in _about(run)]
    return Section("Warnings", None, [*texts, *differences(runs)] or ["none"])


def _about(run: Run) -> Iterator[str]:
    rise = _final_rise(run.validations)
    if len(rise) > _MIN_RISES:
        yield (
            f"dev nll has been rising for {len(rise) - 1} validations, from {rise[0].nll:.4f} at "
            f"update {rise[0].update:,} to {rise[-1].nll:.4f} at update {rise[-1].update:,}"
        )
    if run.last.skipped_updates:
        yield f"updates skipped because gradients were not finite: {run.last.skipped_updates:,}"
    unfit = [record.update for record in run.training if not math.isfinite(record.loss)]
    if unfit:
        yield f"training loss is not finite in {len(unfit):,} records, first at update {unfit[0]:,}"
    for metric in validated_metrics([run]):
        if len(signatures([run], metric)) > 1:
            yield (
                f"the signature of {METRICS[metric].label} changed between validations, so they "
                f"cannot be compared: {' and '.join(signatures([run], metric))}"
            )
    if not _is_finished(run):
        yield (
            f"not finished: {run.last.update:,} of {run.recipe.training.max_updates:,} updates at "
            f"the last record, after {duration(run.last.elapsed_s)}; if it is not training now, "
            "run the same nmtkit train command to resume it"
        )


def _final_rise(validations: Sequence[ValidationRecord]) -> Sequence[ValidationRecord]:
    """Return the last validations, from the one since which nll has only risen."""
    start = len(validations) - 1
    while start > 0 and validations[start - 1].nll < validations[start].nll:
        start -= 1
    return validations[start:]


def _is_finished(run: Run) -> bool:
    """Return whether the records of a run show that its recipe's end is reached."""
    training, validation, last = run.recipe.training, run.recipe.validation, run.last
    # A run ends with a validation: one at the last update shows that the epoch is complete.
    is_validated = not validation.validate_every or last.update == _last_validated(run)
    return (
        last.update >= training.max_updates
        or 0 < training.max_minutes * SECONDS_PER_MINUTE <= last.elapsed_s
        or (0 < training.max_epochs <= last.epoch and is_validated)
        or 0 < validation.patience <= _num_stale(run)
    )


def _last_validated(run: Run) -> int:
    return run.validations[-1].update if run.validations else 0


def _num_stale(run: Run) -> int:
    """Count the validations since the last new best."""
    stale = takewhile(lambda one: not one.is_best, reversed(run.validations))
    return sum(1 for _ in stale)
