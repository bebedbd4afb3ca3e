"""Dev nll and BLEU by update: a row an update, up to two columns a run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from nmtkit.reporting.document import NOTHING, Cell, Section, Table
from nmtkit.reporting.runs import Run, signatures
from nmtkit.reporting.thinning import buckets

_TITLE = "Validations"
_NUM_ROWS = 12


def validations(runs: Sequence[Run]) -> Section:
    """Return the table of validations, thinned where there are many; the best stand out."""
    times = Counter(record.update for run in runs for record in run.validations)
    if not times:
        return Section(_TITLE, None, ["none yet"])
    updates = _shown(times, {update for run in runs for update in _telling(run)})
    columns = [("update", [Cell(f"{update:,}") for update in updates])]
    for run in runs:
        columns += _columns(run, updates, f"{run.name}: " if len(runs) > 1 else "")
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    sentences = ["bold: the best of a run", *(f"BLEU: {one}" for one in signatures(runs))]
    if len(updates) < len(times):
        sentences.append(f"{len(updates)} of {len(times):,} validated updates are shown")
    return Section(_TITLE, Table([header for header, _ in columns], rows), sentences)


def _columns(run: Run, updates: Sequence[int], prefix: str) -> Iterator[tuple[str, list[Cell]]]:
    """Yield nll and, where the validation set was translated, BLEU: header and cells."""
    by_update = {record.update: record for record in run.validations}
    records = [by_update.get(update) for update in updates]
    best_nll, best_bleu = run.best_nll, run.best_bleu
    yield (
        f"{prefix}dev nll",
        [Cell(f"{one.nll:.4f}", one is best_nll) if one else NOTHING for one in records],
    )
    if best_bleu:
        yield (
            f"{prefix}BLEU",
            [
                NOTHING
                if one is None or one.bleu is None
                else Cell(f"{one.bleu:.2f}", one is best_bleu)
                for one in records
            ],
        )


def _shown(times: Mapping[int, int], telling: Set[int]) -> list[int]:
    """Choose updates evenly, but those that tell most, and else those of as many runs as can be.

    Args:
        times: the updates that were validated, and in how many runs.
        telling: those that must be among the chosen ones.
    """
    updates = sorted(times)
    if len(updates) <= _NUM_ROWS:
        return updates
    shown = []
    for bucket in buckets(updates, _NUM_ROWS):
        usual = max(bucket, key=lambda update: (times[update], update))
        shown += [update for update in bucket if update in telling] or [usual]
    return shown


def _telling(run: Run) -> Iterator[int]:
    """Yield the updates of the best validations and of the last."""
    yield from (record.update for record in (run.best_nll, run.best_bleu) if record)
    yield from (record.update for record in run.validations[-1:])
