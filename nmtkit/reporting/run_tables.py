"""The tables of a report: results and costs, settings that differ, validations by update."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.metrics import METRICS, NLL, cost
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import literal
from nmtkit.reporting.comparing import comparable_by
from nmtkit.reporting.curves import split_evenly
from nmtkit.reporting.document import NOTHING, Cell, Section, Table
from nmtkit.reporting.runs import Run, signatures, validated_metrics
from nmtkit.units import duration

_PROGRESS = ("run", "updates", "epoch", "time", "best dev nll", "perplexity")
_COSTS = ("tokens/s", "skipped", "device-hours", "FLOPs", "FLOPs by time")
_NOTES = (
    "time: of all sessions, validation included; tokens/s: source and target tokens, "
    "without validation; skipped: updates whose gradients were not finite",
    "device-hours: time x number of ranks",
    "FLOPs: matrix products, forward and backward, counted from the model's shape",
    "FLOPs by time: the paper's count, device-hours x sustained rate of a device; no rate is "
    "known for CPUs",
)

_SECONDS_PER_HOUR = 3600
_FEW_HOURS = 0.01

_MAX_ROWS = 12
"""Rows of the table of validations; the best of several runs may need more."""


def summary(runs: Sequence[Run]) -> Section:
    """Return the table of results and costs; the best of comparable results are bold."""
    metrics = validated_metrics(runs)
    labels = [f"best {METRICS[metric].label}" for metric in metrics]
    bests = [_bests(metric, runs) for metric in (NLL, *metrics)]
    results = zip(map(_progress, runs), *bests, map(_cost, runs), strict=True)
    rows = [
        [Cell(run.name), *(cell for part in parts for cell in part)]
        for run, parts in zip(runs, results, strict=True)
    ]
    notes = [*_bold("bold: the best of the runs that can be compared", rows), *_NOTES]
    return Section("Summary", Table((*_PROGRESS, *labels, *_COSTS), rows), notes)


def settings(runs: Sequence[Run]) -> Section:
    """Return the table of the settings that differ between runs."""
    values = [values_of(run.recipe) for run in runs]
    rows = [
        [Cell(f"{field.section}.{name}"), *(Cell(literal(field, one[name])) for one in values)]
        for name, field in fields_of(TrainRecipe).items()
        if any(one[name] != values[0][name] for one in values)
    ]
    if not rows:
        return Section("Settings that differ", None, ["all settings are equal"])
    headers = ["setting", *(run.name for run in runs)]
    return Section("Settings that differ", Table(headers, rows), [])


def validations(runs: Sequence[Run]) -> Section:
    """Return the table of validations, at most about _MAX_ROWS of them; the best are bold."""
    times = Counter(record.update for run in runs for record in run.validations)
    if not times:
        return Section("Validations", None, ["none yet"])
    updates = _shown(times, {update for run in runs for update in _required(run)})
    columns = [("update", [Cell(f"{update:,}") for update in updates])]
    for run in runs:
        columns += _columns(run, updates, f"{run.name}: " if len(runs) > 1 else "")
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    sentences = _bold("bold: the best of a run", rows)
    for metric in validated_metrics(runs):
        label = METRICS[metric].label
        sentences += [f"{label}: {signature}" for signature in signatures(runs, metric)]
    if len(updates) < len(times):
        sentences.append(f"{len(updates)} of {len(times):,} validated updates are shown")
    return Section("Validations", Table([header for header, _ in columns], rows), sentences)


def samples(runs: Sequence[Run]) -> list[Section]:
    """Return the table of translated lines of each run's best validation; none without samples.

    Runs with the same validation text share its rows.
    """
    hypotheses: dict[tuple[int, str, str], list[tuple[str, str]]] = {}
    for run in runs:
        record = run.best_with_samples
        if record is None:
            continue
        for sample in record.samples:
            texts = sample.shown()
            line = sample.line, texts["source"], texts["reference"]
            of_run = f"{run.name} at {record.update:,}", texts["hypothesis"]
            hypotheses.setdefault(line, []).append(of_run)
    rows = [
        [Cell(f"{line:,}"), Cell(name), Cell(text)]
        for (line, source, reference), found in sorted(hypotheses.items())
        for name, text in [("source", source), ("reference", reference), *found]
    ]
    table = Table(("line", "of", "text"), rows, has_sentences=True)
    note = "of the best validation of each run that has samples, by its --best-metric"
    return [Section("Samples", table, [note])] if rows else []


def operations_cell(operations: float | None) -> Cell:
    """Return the cell of a number of floating-point operations; None = unknown."""
    return NOTHING if operations is None else Cell(f"{operations:.1e}")


def _progress(run: Run) -> list[Cell]:
    last = run.last
    return [Cell(f"{last.update:,}"), Cell(f"{last.epoch:,}"), Cell(duration(last.elapsed_s))]


def _bold(note: str, rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the note if a cell of the rows is bold."""
    return [note] if any(cell.is_best for row in rows for cell in row) else []


def _bests(metric: str, runs: Sequence[Run]) -> list[list[Cell]]:
    """Return the cells of each run's best validation by a metric."""
    winners = {run.name for group in comparable_by(metric, runs) for run in _winners(metric, group)}

    def cells(run: Run) -> list[Cell]:
        best, is_best = run.best(metric), run.name in winners
        if best is None:
            return [NOTHING] * (2 if metric == NLL else 1)
        value = f"{best.nll:.4f}" if metric == NLL else f"{best.scores[metric]:.2f}"
        found = [Cell(f"{value} at {best.update:,}", is_best)]
        return [*found, Cell(f"{best.perplexity:,.2f}", is_best)] if metric == NLL else found

    return [cells(run) for run in runs]


def _winners(metric: str, group: Sequence[Run]) -> list[Run]:
    """Return the runs with the best result of comparable runs; none if just one has a result."""
    costs = [
        (cost(metric, best.nll, best.scores), run) for run in group if (best := run.best(metric))
    ]
    lowest = min((one for one, _ in costs), default=math.inf)
    return [run for one, run in costs if one == lowest < math.inf] if len(costs) > 1 else []


def _cost(run: Run) -> list[Cell]:
    counts = [record.num_source_tokens + record.num_target_tokens for record in run.training]
    seconds = sum(
        count / record.tokens_per_second
        for count, record in zip(counts, run.training, strict=True)
        if record.tokens_per_second
    )
    num_tokens = sum(counts)
    starts = [0.0, *(record.elapsed_s for record in run.training)]
    device_seconds = sum(
        (record.elapsed_s - start) * record.ranks
        for start, record in zip(starts, run.training, strict=False)
    )
    return [
        Cell(f"{num_tokens / seconds:,.0f}") if seconds else NOTHING,
        Cell(f"{run.last.skipped_updates:,}"),
        Cell(_hours(device_seconds)),
        operations_cell(run.operations),
        operations_cell(run.paper_operations),
    ]


def _hours(seconds: float) -> str:
    """Return hours with two decimals, or more if these were zeros."""
    hours = seconds / _SECONDS_PER_HOUR
    return f"{hours:.2f}" if hours >= _FEW_HOURS else f"{hours:.1g}"


def _columns(run: Run, updates: Sequence[int], prefix: str) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the header and cells of nll, then of each metric."""
    by_update = {record.update: record for record in run.validations}
    for metric in (NLL, *validated_metrics([run])):
        values = {
            update: record.nll if metric == NLL else record.scores[metric]
            for update, record in by_update.items()
            if metric == NLL or metric in record.scores
        }
        best = run.best(metric) if len({*values.values()}) > 1 else None
        digits = 4 if metric == NLL else 2
        cells = [
            Cell(f"{values[update]:.{digits}f}", by_update[update] is best)
            if update in values
            else NOTHING
            for update in updates
        ]
        yield f"{prefix}{'dev nll' if metric == NLL else METRICS[metric].label}", cells


def _shown(times: Mapping[int, int], required: Set[int]) -> list[int]:
    """Choose updates evenly: the required ones, else one that the most runs validated.

    Args:
        times: number of runs that validated, by update.
        required: updates that are always shown.
    """
    updates = sorted(times)
    if len(updates) <= _MAX_ROWS:
        return updates
    shown = []
    for bucket in split_evenly(updates, _MAX_ROWS):
        usual = max(bucket, key=lambda update: (times[update], update))
        shown += [update for update in bucket if update in required] or [usual]
    return shown


def _required(run: Run) -> Iterator[int]:
    """Yield the updates of the best validations and of the last one."""
    best = (run.best(metric) for metric in (NLL, *validated_metrics([run])))
    yield from (record.update for record in best if record)
    yield from (record.update for record in run.validations[-1:])
