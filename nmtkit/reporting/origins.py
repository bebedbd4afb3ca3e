"""The table of when, where and on what runs were trained.

A module of its own: run_tables.py has results and settings.
"""

from collections.abc import Callable, Sequence

from nmtkit.progress.records import SessionRecord
from nmtkit.reporting.document import NOTHING, Cell, Section, Table
from nmtkit.reporting.runs import Run, printable
from nmtkit.units import counted

_SHOWN_DIGITS = 12
"""Digits of a fingerprint."""


def origins(runs: Sequence[Run]) -> list[Section]:
    """Return the table of dates, machines and data; none if nothing of it is recorded."""
    rows = [
        [Cell(name), *(Cell(text) if text else NOTHING for text in texts)]
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


_PROPERTIES: dict[str, Callable[[Run], str]] = {
    "started": _started,
    "device": _of_sessions(_device),
    "CPU": _of_sessions(_processor),
    "software": _of_sessions(_software),
    "dataset": _of_sessions(lambda session: session.data),
    "fingerprint of the dataset": lambda run: (run.dataset or "")[:_SHOWN_DIGITS],
    "languages": lambda run: run.languages or "",
    "validation pairs": lambda run: f"{run.validation_pairs:,}" if run.validation_pairs else "",
    "parameters": lambda run: f"{run.num_parameters:,}" if run.num_parameters else "",
}
