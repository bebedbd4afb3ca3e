"""How runs went and what they cost: a row a run."""

from collections.abc import Sequence

from nmtkit.reporting.document import NOTHING, Cell, Section, Table
from nmtkit.reporting.runs import Run, bleu, have_one_vocabulary
from nmtkit.units import duration

_HEADERS = (
    "run",
    "updates",
    "epoch",
    "time",
    "best dev nll",
    "perplexity",
    "best BLEU",
    "tokens/s",
    "skipped",
    "device-hours",
    "FLOPs",
    "FLOPs by time",
)
_NOTES = (
    "time: in training, all sessions together, with validation; tokens/s: source and target "
    "tokens, without validation; skipped: updates whose gradients were not finite",
    "device-hours: the time, times the processes that trained together",
    "FLOPs: of matrix products, forward and backward, counted from the model's shape",
    "FLOPs by time: as the paper counts, device-hours x what a device is taken to sustain; of CPUs "
    "there is no figure",
)

_SECONDS_AN_HOUR = 3600


def summary(runs: Sequence[Run]) -> Section:
    """Return the table of what runs came to; of several, the best results stand out."""
    is_contest = len(runs) > 1
    is_nll_fair = is_contest and have_one_vocabulary(runs)
    nlls = [run.best_nll.nll for run in runs if run.best_nll and is_nll_fair]
    bleus = [bleu(run.best_bleu) for run in runs if run.best_bleu and is_contest]
    least, highest = min(nlls, default=None), max(bleus, default=None)
    rows = [[Cell(run.name), *_results(run, least, highest), *_cost(run)] for run in runs]
    notes = ["bold: the best of the runs", *_NOTES] if is_contest else _NOTES
    return Section("Summary", Table(_HEADERS, rows), notes)


def _results(run: Run, least_nll: float | None, highest_bleu: float | None) -> list[Cell]:
    last, by_nll, by_bleu = run.last, run.best_nll, run.best_bleu
    nll = perplexity = score = NOTHING
    if by_nll is not None:
        nll = Cell(f"{by_nll.nll:.4f} at {by_nll.update:,}", by_nll.nll == least_nll)
        perplexity = Cell(f"{by_nll.perplexity:,.2f}", nll.is_best)
    if by_bleu is not None:
        score = Cell(f"{bleu(by_bleu):.2f} at {by_bleu.update:,}", bleu(by_bleu) == highest_bleu)
    done = (f"{last.update:,}", f"{last.epoch:,}", duration(last.elapsed_s))
    return [*map(Cell, done), nll, perplexity, score]


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
