"""Which display a stream gets, what all displays know, and plain lines, one an event."""

import dataclasses
import io
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from nmtkit.progress.records import Sample, ValidationProgress
from nmtkit.progress.reporter import PlainReporter, TerminalReporter, make_reporter
from tests.records import TRAINING, VALIDATION
from tests.unit.progress.streams import Terminal


@pytest.mark.parametrize("term", ["dumb", "unknown", None])
def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(
    term: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    assert isinstance(make_reporter(Terminal()), PlainReporter)


def test_what_was_validated_in_earlier_sessions_is_known_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    worse = dataclasses.replace(VALIDATION, update=200, nll=3.75, is_best=False)
    terminal, lines = Terminal(), io.StringIO()
    for reporter in (TerminalReporter(terminal), PlainReporter(lines)):
        reporter.start(1000, 200, [VALIDATION, worse])
        reporter.validation(dataclasses.replace(worse, update=300))
        reporter.close()
    assert "best at update 100: nll 3.2500" in terminal.getvalue()
    assert "took=8s best_update=100\n" in lines.getvalue()


def test_what_a_terminal_would_act_on_is_written_as_escape_sequences() -> None:
    terminal, lines = Terminal(), io.StringIO()
    for reporter, stream in ((TerminalReporter(terminal), terminal), (PlainReporter(lines), lines)):
        reporter.message("run\x1b[31m\x07\nfolder\udce9")
        assert stream.getvalue().endswith("run\\x1b[31m\\x07 folder\\udce9\n")


def test_rich_is_imported_for_a_terminal_only() -> None:
    program = (
        "import io, sys; from nmtkit.progress.reporter import make_reporter; "
        "make_reporter(io.StringIO()); print('rich' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(Path.cwd())},
    )
    assert process.stdout == b"False\n"


# -------------------------------------------------------------------------------------- plain lines


BEGIN = datetime(2026, 11, 23, 19, 40, 1, 999_999)
STAMP = "2026-11-23 19:40:01 "


def lines_of(report: Callable[[PlainReporter], None]) -> list[str]:
    """Return the lines of a reporter whose time stands still, without their stamps."""
    stream = io.StringIO()
    report(PlainReporter(stream, lambda: BEGIN))
    lines = stream.getvalue().split("\n")
    assert lines.pop() == ""
    assert all(line.startswith(STAMP) for line in lines)
    return [line.removeprefix(STAMP) for line in lines]


def test_every_event_is_a_line_of_keys_and_values() -> None:
    def report(reporter: PlainReporter) -> None:
        reporter.message("parameters=7")
        reporter.start(1000, 0, [])
        reporter.update(TRAINING)
        reporter.validating(100, 500)
        reporter.validation(VALIDATION)
        reporter.validation(dataclasses.replace(VALIDATION, update=200, scores={}, is_best=False))
        reporter.close()
        reporter.message("done")

    assert lines_of(report) == [
        "parameters=7",
        "event=start update=0/1000",
        "event=training update=100/1000 epoch=2 loss=4.2500 nll=3.5000 perplexity=33.12 "
        "lr=1.250e-04 gradient_norm=0.750 source+target_tokens_per_s=12346 updates_per_s=1.50 "
        "fill=0.97 memory=1290MiB skipped_updates=0 eta=2h01m elapsed=1m05s",
        "event=validating update=100/1000 lines=500",
        "event=validation update=100/1000 nll=3.2500 perplexity=25.79 bleu=26.33 "
        "took=8s best_update=100",
        "event=validation update=200/1000 nll=3.2500 perplexity=25.79 took=8s best_update=100",
        "done",
    ]


def test_a_line_has_the_local_time_at_which_it_is_written() -> None:
    stream = io.StringIO()
    times = (BEGIN + timedelta(hours=hours) for hours in count())
    reporter = PlainReporter(stream, lambda: next(times))
    for text in ("one", "two", "three", "four", "five"):
        reporter.message(text)
    assert stream.getvalue() == (
        "2026-11-23 19:40:01 one\n2026-11-23 20:40:01 two\n2026-11-23 21:40:01 three\n"
        "2026-11-23 22:40:01 four\n2026-11-23 23:40:01 five\n"
    )


def test_of_the_progress_between_reports_only_the_first_is_written() -> None:
    later = dataclasses.replace(TRAINING, update=200)

    def report(reporter: PlainReporter) -> None:
        reporter.start(1000, 99, [])
        for _ in range(3):
            reporter.refresh(lambda: TRAINING)
        reporter.update(later)
        reporter.refresh(lambda: TRAINING)

    assert [line.split()[:2] for line in lines_of(report)] == [
        ["event=start", "update=99/1000"],
        ["event=training", "update=100/1000"],
        ["event=training", "update=200/1000"],
    ]


def test_work_without_a_line_for_long_writes_one() -> None:
    stream, now = io.StringIO(), [BEGIN]
    reporter = PlainReporter(stream, lambda: now[0])

    def step(seconds: float) -> None:
        now[0] += timedelta(seconds=seconds)
        reporter.refresh(lambda: TRAINING)

    reporter.update(TRAINING)
    for seconds in (29, 2, 29, 29):
        step(seconds)
    reporter.validating(100, 500)
    for done in range(100):
        now[0] += timedelta(seconds=1)
        reporter.validation_progress(ValidationProgress("translated lines", done, 500))
    events = [line[len(STAMP) :].split()[:3] for line in stream.getvalue().splitlines()]
    progress = ["event=validating", "update=100/0"]
    assert events == [
        *[["event=training", "update=100/0", "epoch=2"]] * 3,
        [*progress, "lines=500"],
        *([*progress, f"translated_lines={done}/500"] for done in (29, 59, 89)),
    ]


def test_samples_are_whole_lines_whatever_their_text() -> None:
    source = "le\u00a0chat " * 100 + "dort"
    sample = Sample(51, source, "a\rb\u2028c\u202ed\x1b[2J", "= x=1 event=start")

    def report(reporter: PlainReporter) -> None:
        reporter.start(1000, 0, [])
        reporter.validation(dataclasses.replace(VALIDATION, samples=[sample]))

    place = "event=sample update=100/1000 line=51"
    assert lines_of(report)[2:] == [
        f"{place} source={source}",
        rf"{place} reference=a\rb\u2028c\u202ed\x1b[2J",
        f"{place} hypothesis== x=1 event=start",
    ]
