"""The tables of a report on runs, and its warnings: what may be compared, and what differs.

Results and costs, settings that differ, validations by update, dates and machines.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from typing import TypeVar

from nmtkit.config.metrics import NLL, label_of
from nmtkit.config.schema import TrainRecipe, fields_of, values_of
from nmtkit.config.toml import literal
from nmtkit.progress.records import SessionRecord, ValidationRecord, shown_score
from nmtkit.reporting.page import NOTHING, Cell, Section, Table, cell
from nmtkit.reporting.runs import Run, signatures, validated_metrics, value_of
from nmtkit.units import SECONDS_PER_MINUTE, counted, duration, printable

Item = TypeVar("Item")
Groups = list[list[Run]]


@dataclass(frozen=True)
class Condition:
    """A property that runs must share, or a result does not compare them.

    Attributes:
        properties: names the property of several runs.
        of: returns the property of a run; None = not recorded.
        consequence: what cannot be compared without it.
        is_shown: sentences show the property itself.
    """

    properties: str
    of: Callable[[Run], object]
    consequence: str
    is_shown: bool = True

    def split(self, runs: Sequence[Run]) -> Groups:
        """Split runs into groups that share the property; each unknown one is a group."""
        groups: dict[object, list[Run]] = {}
        for run in runs:
            value = self.of(run)
            groups.setdefault(run.name if value is None else (value,), []).append(run)
        return list(groups.values())

    def difference(self, groups: Groups) -> str:
        """Return a clause that names the groups of `split` and what they differ in."""
        values = [self.of(group[0]) for group in groups]
        verb = "differ" if len({*values} - {None}) > 1 else "are not known to be equal"
        named = []
        for group, value in zip(groups, values, strict=True):
            shown = "not recorded" if value is None else f"{value}" * self.is_shown
            named.append(", ".join(run.name for run in group) + (f": {shown}" if shown else ""))
        return f"{self.properties} {verb} ({'; '.join(named)})"


_NOTHING = "neither nll, perplexity nor scores can be compared between these runs"
_NO_NLL = (
    "nll and perplexity, which are per token, cannot be compared between these runs; scores of "
    "translations can"
)
_LANGUAGES = Condition("the languages", lambda run: run.languages, _NOTHING)
_TEXT = Condition("the validation texts", lambda run: run.validation_text, _NOTHING, is_shown=False)
_VOCABULARY = Condition("the vocabularies", lambda run: run.codec, _NO_NLL, is_shown=False)
_PAIRS = Condition(
    "the numbers of validation pairs within --max-length", lambda run: run.validation_pairs, _NO_NLL
)
_LABEL_SMOOTHING = Condition(
    "the values of --label-smoothing",
    lambda run: run.recipe.training.label_smoothing,
    "the training loss cannot be compared between these runs",
)
TRAINING_LOSS = "loss"
"""The result of training that plots show and warnings name; `NLL` and metrics are of validation."""

_CONDITIONS = {
    TRAINING_LOSS: (_LANGUAGES, _VOCABULARY, _LABEL_SMOOTHING),
    NLL: (_LANGUAGES, _TEXT, _VOCABULARY, _PAIRS),
}
"""Conditions of results; those of a metric also have its signature."""


def comparable_by(result: str, runs: Sequence[Run]) -> Groups:
    """Split the runs with a result into groups that it compares."""
    return _split(_with(result, runs), _conditions(result))


def differences(runs: Sequence[Run]) -> list[str]:
    """Return a sentence per difference that keeps results of runs from being compared."""
    results = (NLL, *validated_metrics(runs), TRAINING_LOSS)
    found = [one for result in results for one in _differences(result, runs)]
    return list(dict.fromkeys(f"{text}, so {condition.consequence}" for condition, text in found))


def obstacles(result: str, runs: Sequence[Run]) -> list[str]:
    """Return a clause per difference that keeps a result of runs from being compared."""
    return [text for _, text in _differences(result, runs)]


def _with(result: str, runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if result == TRAINING_LOSS or run.best(result)]


def _conditions(metric: str) -> tuple[Condition, ...]:
    if metric in _CONDITIONS:
        return _CONDITIONS[metric]
    label = label_of(metric)
    signature = Condition(
        f"the signatures of {label}",
        partial(_signature, metric),
        "it cannot be compared between these runs",
    )
    return (_LANGUAGES, _TEXT, signature)


def _signature(metric: str, run: Run) -> str | None:
    """Return the signature of a metric in a run, all of them if it changed; None without any."""
    return " and ".join(signatures([run], metric)) or None


def _split(runs: Sequence[Run], conditions: Sequence[Condition]) -> Groups:
    groups = [list(runs)]
    for condition in conditions:
        groups = [part for group in groups for part in condition.split(group)]
    return groups


def _differences(result: str, runs: Sequence[Run]) -> Iterator[tuple[Condition, str]]:
    """Yield a condition and a clause for each group that it splits after the earlier ones."""
    conditions = _conditions(result)
    for number, condition in enumerate(conditions):
        for group in _split(_with(result, runs), conditions[:number]):
            parts = condition.split(group)
            if len(parts) > 1:
                yield condition, condition.difference(parts)


_SECONDS_PER_HOUR = 3600
_FEW_HOURS = 0.01

_MAX_ROWS = 12
"""Rows of the table of validations; the best of several runs may need more."""


def summary(runs: Sequence[Run], with_costs: bool) -> Section:
    """Return the table of results; the best of comparable results are bold.

    Args:
        runs: the runs.
        with_costs: add the costs that the paper compares.
    """
    columns = [*_columns_of_summary(runs), *(_costs(runs) if with_costs else [])]
    rows = list(zip(*(cells for _, cells, _ in columns), strict=True))
    notes = "; ".join(f"{header}: {note}" for header, _, note in columns if note)
    bold = _bold("bold: the best of the runs that can be compared", rows)
    return Section("Summary", Table([header for header, *_ in columns], rows), [*bold, notes])


def _columns_of_summary(runs: Sequence[Run]) -> Iterator[tuple[str, list[Cell], str]]:
    """Yield the header, cells and note of each column."""
    yield "run", [Cell(run.name) for run in runs], ""
    yield "updates", [Cell(f"{run.last.update:,}") for run in runs], ""
    if any(run.recipe.training.max_epochs for run in runs):
        yield "epoch", [Cell(f"{run.last.epoch:,}") for run in runs], ""
    yield "time", [Cell(duration(_seconds(run))) for run in runs], "with validation, all sessions"
    for metric in (NLL, *validated_metrics(runs)):
        label = "dev nll" if metric == NLL else label_of(metric)
        yield f"best {label}", _bests(metric, runs), ""
    yield "tokens/s", [*map(_speed, runs)], "of both sides, without validation"
    if any(run.last.skipped_updates for run in runs):
        skipped = [Cell(f"{run.last.skipped_updates:,}") for run in runs]
        yield "skipped", skipped, "updates whose gradients were not finite"


def _costs(runs: Sequence[Run]) -> Iterator[tuple[str, list[Cell], str]]:
    """Yield the columns of costs, as `_columns_of_summary`."""
    hours = [Cell(_hours(_device_seconds(run))) for run in runs]
    yield "device-hours", hours, "time x number of ranks"
    note = "matrix products, forward and backward, counted from the model's shape"
    yield "FLOPs", [cell(run.operations, ".1e") for run in runs], note


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
        label = label_of(metric)
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


def _seconds(run: Run) -> float:
    return run.last.elapsed_s + sum(record.took_s for record in run.validations)


def _bold(note: str, rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the note if a cell of the rows is bold."""
    return [note] if any(cell.is_best for row in rows for cell in row) else []


def _bests(metric: str, runs: Sequence[Run]) -> list[Cell]:
    """Return the cell of each run's best validation by a metric."""
    winners = {run.name for group in comparable_by(metric, runs) for run in _winners(metric, group)}

    def best(run: Run) -> Cell:
        found = run.best(metric)
        if found is None:
            return NOTHING
        value = shown_score(metric, value_of(metric, found))
        return Cell(f"{value} at {found.update:,}", run.name in winners)

    return [*map(best, runs)]


def _winners(metric: str, group: Sequence[Run]) -> list[Run]:
    """Return the runs with the best result of comparable runs; none if just one has a result."""
    lowest = min(run.cost(metric) for run in group)
    best = [run for run in group if run.cost(metric) == lowest < math.inf]
    return best if len(group) > 1 else []


def _speed(run: Run) -> Cell:
    counts = [record.num_source_tokens + record.num_target_tokens for record in run.training]
    seconds = sum(
        count / record.tokens_per_second
        for count, record in zip(counts, run.training, strict=True)
        if record.tokens_per_second
    )
    return cell(sum(counts) / seconds if seconds else None, ",.0f")


def _device_seconds(run: Run) -> float:
    starts = [0.0, *(record.elapsed_s for record in run.training)]
    seconds = sum(
        (record.elapsed_s - start) * record.ranks
        for start, record in zip(starts, run.training, strict=False)
    )
    for validation in run.validations:  # by the ranks that trained its update
        later = (one.ranks for one in run.training if one.update >= validation.update)
        seconds += validation.took_s * next(later, run.last.ranks)
    return seconds


def _hours(seconds: float) -> str:
    """Return hours with two decimals, or more if these were zeros."""
    hours = seconds / _SECONDS_PER_HOUR
    return f"{hours:.2f}" if hours >= _FEW_HOURS else f"{hours:.1g}"


def _columns(run: Run, updates: Sequence[int], prefix: str) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the header and cells of nll, then of each metric."""
    by_update = {record.update: record for record in run.validations}
    for metric in (NLL, *validated_metrics([run])):
        values = {
            update: value_of(metric, record)
            for update, record in by_update.items()
            if metric == NLL or metric in record.scores
        }
        best = run.best(metric) if len({*values.values()}) > 1 else None
        cells = [
            Cell(shown_score(metric, values[update]), by_update[update] is best)
            if update in values
            else NOTHING
            for update in updates
        ]
        yield f"{prefix}{'dev nll' if metric == NLL else label_of(metric)}", cells


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
                f"the signature of {label_of(metric)} changed between validations, so they "
                f"cannot be compared: {' and '.join(signatures([run], metric))}"
            )
    if not is_finished(run):
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


def is_finished(run: Run) -> bool:
    """Return whether the records of a run show that its recipe's end is reached."""
    training, validation, last = run.recipe.training, run.recipe.validation, run.last
    # A run ends with a validation: one at the last update shows that the epoch is complete.
    ended = [one.update for one in run.validations[-1:]] == [last.update]
    is_validated = not validation.validate_every or ended
    return (
        last.update >= training.max_updates
        or 0 < training.max_minutes * SECONDS_PER_MINUTE <= last.elapsed_s
        or (0 < training.max_epochs <= last.epoch and is_validated)
        or 0 < validation.patience <= _num_stale(run)
    )


def _num_stale(run: Run) -> int:
    """Count the validations since the last new best."""
    stale = takewhile(lambda one: not one.is_best, reversed(run.validations))
    return sum(1 for _ in stale)


def split_evenly(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Split a sequence into `count` parts whose lengths differ by at most one."""
    ends = [len(items) * number // count for number in range(count + 1)]
    return [items[start:end] for start, end in pairwise(ends)]


_SHOWN_DIGITS = 12
"""Digits of a fingerprint."""


def origins(runs: Sequence[Run]) -> list[Section]:
    """Return the table of dates, machines and data; none if nothing of it is recorded."""
    rows = [
        [Cell(name), *(cell(text or None) for text in texts)]
        for name, of in _PROPERTIES.items()
        if any(texts := [of(run) for run in runs])
    ]
    table = Table(("", *(run.name for run in runs)), rows, has_sentences=True)
    return [Section("Machine and data", table, [])] if rows else []


def dates_of(runs: Sequence[Run]) -> str:
    """Return the dates of the first and the last session; empty if there is none."""
    days = sorted({_day(session) for run in runs for session in run.sessions})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))


def _of_sessions(describe: Callable[[SessionRecord], str]) -> Callable[[Run], str]:
    """Return a property whose different values in a run's sessions are listed."""
    return lambda run: printable(", then ".join(dict.fromkeys(map(describe, run.sessions))))


def _day(session: SessionRecord) -> str:
    return session.started.partition("T")[0]


def _started(run: Run) -> str:
    """Return when the first and the last session started, and the number of sessions."""
    times = [one.started[:16].replace("T", " ") for one in run.sessions]
    several = f"; {counted(len(times), 'sessions')}, the last one {times[-1]}" if times[1:] else ""
    return f"{times[0]} UTC{several}" if times else ""


def _device(session: SessionRecord) -> str:
    return f"{session.ranks} x {session.device}" if session.ranks > 1 else session.device


def _processor(session: SessionRecord) -> str:
    threads = counted(session.threads, "threads")
    return f"{session.processor}, {threads}" if session.processor else threads


def _software(session: SessionRecord) -> str:
    return f"nmtkit {session.nmtkit}, PyTorch {session.torch}, Python {session.python}"


def _seen(session: SessionRecord) -> str:
    """Return how often each of several directions is seen."""
    total, pairs = math.fsum(session.directions.values()), session.directions.items()
    return ", ".join(f"{name} {number:,.0f} ({number / total:.1%})" for name, number in pairs)


_PROPERTIES: dict[str, Callable[[Run], str]] = {
    "started": _started,
    "device": _of_sessions(_device),
    "CPU": _of_sessions(_processor),
    "software": _of_sessions(_software),
    "dataset": _of_sessions(lambda session: session.data),
    "fingerprint of the dataset": lambda run: (run.dataset or "")[:_SHOWN_DIGITS],
    "languages": lambda run: run.languages or "",
    "pairs per epoch": _of_sessions(_seen),
    "validation pairs": lambda run: f"{run.validation_pairs:,}" if run.validation_pairs else "",
    "parameters": lambda run: f"{run.num_parameters:,}" if run.num_parameters else "",
}
