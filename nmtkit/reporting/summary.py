"""Results and costs: a row per run."""

from collections.abc import Sequence

from nmtkit.config.metrics import METRICS, NLL, cost
from nmtkit.progress.records import ValidationRecord
from nmtkit.reporting.document import NOTHING, Cell, Section, Table
from nmtkit.reporting.runs import Run, have_one_vocabulary, validated_metrics
from nmtkit.units import duration

_PROGRESS = ("run", "updates", "epoch", "time", "best dev nll", "perplexity")
_COSTS = ("tokens/s", "skipped", "device-hours", "FLOPs", "FLOPs by time")
_NOTES = (
    "time: in training, all sessions together, with validation; tokens/s: source and target "
    "tokens, without validation; skipped: updates whose gradients were not finite",
    "device-hours: the time, times the processes that trained together",
    "FLOPs: of matrix products, forward and backward, counted from the model's shape",
    "FLOPs by time: the count of the paper, device-hours x sustained rate of a device; CPUs have "
    "no known rate",
)

_SECONDS_AN_HOUR = 3600


def summary(runs: Sequence[Run]) -> Section:
    """Return the table of results and costs; of several runs, the best results stand out."""
    is_contest = len(runs) > 1
    metrics = validated_metrics(runs)
    labels = [f"best {METRICS[metric].label}" for metric in metrics]
    nlls = _bests(NLL, runs, is_contest and have_one_vocabulary(runs))
    scores = [_bests(metric, runs, is_contest) for metric in metrics]
    results = zip(map(_progress, runs), nlls, *scores, map(_cost, runs), strict=True)
    rows = [
        [Cell(run.name), *(cell for part in parts for cell in part)]
        for run, parts in zip(runs, results, strict=True)
    ]
    notes = ["bold: the best of the runs", *_NOTES] if is_contest else _NOTES
    return Section("Summary", Table((*_PROGRESS, *labels, *_COSTS), rows), notes)


def _progress(run: Run) -> list[Cell]:
    last = run.last
    return [Cell(f"{last.update:,}"), Cell(f"{last.epoch:,}"), Cell(duration(last.elapsed_s))]


def _bests(metric: str, runs: Sequence[Run], is_contest: bool) -> list[list[Cell]]:
    """Return the cells of each run's best validation by a metric."""
    bests = [run.best(metric) for run in runs]
    costs = [cost(metric, best.nll, best.scores) for best in bests if best]

    def cells(best: ValidationRecord | None) -> list[Cell]:
        if best is None:
            return [NOTHING] * (2 if metric == NLL else 1)
        stands_out = is_contest and cost(metric, best.nll, best.scores) == min(costs)
        value = f"{best.nll:.4f}" if metric == NLL else f"{best.scores[metric]:.2f}"
        found = [Cell(f"{value} at {best.update:,}", stands_out)]
        return [*found, Cell(f"{best.perplexity:,.2f}", stands_out)] if metric == NLL else found

    return [cells(best) for best in bests]


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
        Cell(f"{device_seconds / _SECONDS_AN_HOUR:.2f}"),
        operations_cell(run.operations),
        operations_cell(run.paper_operations),
    ]


def operations_cell(operations: float | None) -> Cell:
    """Write floating-point operations; None is not known."""
    return NOTHING if operations is None else Cell(f"{operations:.1e}")
