"""Table 2 of the paper, with rows for runs: BLEU and its cost."""

from collections.abc import Sequence

from nmtkit.reporting.document import NOTHING, Cell, Section, Table
from nmtkit.reporting.paper import TABLE_2
from nmtkit.reporting.runs import Run
from nmtkit.reporting.summary import operations_cell

_HEADERS = ("model", "languages", "BLEU", "FLOPs by time", "FLOPs")
_NOTES = (
    "the paper's BLEU: of newstest2014, tokenised, with compounds split; a run's: its best on its "
    "validation set, by sacreBLEU, so that the two differ; --metric paper-bleu of nmtkit score "
    "gives the BLEU of the paper",
    "FLOPs by time: training time x devices x what one is taken to sustain: the paper's figures "
    "for its own GPUs, nine tenths of the peak for later ones; of CPUs there is no figure",
    "FLOPs: of matrix products, forward and backward, counted from the model's shape",
)


def table2(runs: Sequence[Run]) -> Section:
    """Return the paper's table 2, a row a model and pair of languages, with a row for each run."""
    known = [
        [
            Cell(system.name),
            Cell(system.languages),
            Cell(f"{system.bleu:.2f}"),
            operations_cell(system.operations),
            NOTHING,
        ]
        for system in TABLE_2
    ]
    own = [
        [
            Cell(run.name),
            Cell(run.languages) if run.languages else NOTHING,
            _bleu(run),
            operations_cell(run.paper_operations),
            operations_cell(run.operations),
        ]
        for run in runs
    ]
    return Section("Beside the paper's table 2", Table(_HEADERS, [*known, *own]), _NOTES)


def _bleu(run: Run) -> Cell:
    best = run.best("bleu")
    return Cell(f"{best.scores['bleu']:.2f}") if best else NOTHING
