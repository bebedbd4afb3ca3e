"""Dev nll and scores by update: a row per update, a column per run and metric."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from nmtkit.config.metrics import METRICS, NLL
from nmtkit.reporting.document import NOTHING, Cell, Section, Table
from nmtkit.reporting.runs import Run, signatures, validated_metrics
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
    sentences = ["bold: the best of a run"]
    for metric in validated_metrics(runs):
        label = METRICS[metric].label
        sentences += [f"{label}: {signature}" for signature in signatures(runs, metric)]
    if len(updates) < len(times):
        sentences.append(f"{len(updates)} of {len(times):,} validated updates are shown")
    return Section(_TITLE, Table([header for header, _ in columns], rows), sentences)


def _columns(run: Run, updates: Sequence[int], prefix: str) -> Iterator[tuple[str, list[Cell]]]:
    """Yield header and cells of nll and of each metric."""
    by_update = {record.update: record for record in run.validations}
    records = [by_update.get(update) for update in updates]
    best = run.best(NLL)
    yield (
        f"{prefix}dev nll",
        [Cell(f"{one.nll:.4f}", one is best) if one else NOTHING for one in records],
    )
    for metric in validated_metrics([run]):
        best = run.best(metric)
        yield (
            f"{prefix}{METRICS[metric].label}",
            [
                Cell(f"{one.scores[metric]:.2f}", one is best)
                if one and metric in one.scores
                else NOTHING
                for one in records
            ],
        )


def _shown(times: Mapping[int, int], telling: Set[int]) -> list[int]:
    """Choose updates evenly, preferring the required ones, then those that most runs validated.

    Args:
        times: the validated updates, each with its number of runs.
        telling: the required updates.
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
    best = (run.best(metric) for metric in (NLL, *validated_metrics([run])))
    yield from (record.update for record in best if record)
    yield from (record.update for record in run.validations[-1:])
