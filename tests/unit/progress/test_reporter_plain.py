"""Plain lines: every event is one line of keys and values, after its time."""

import dataclasses
import io
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

from nmtkit.progress.records import Sample, ValidationProgress
from nmtkit.progress.reporter import PlainReporter
from tests.records import TRAINING, VALIDATION

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


def test_a_message_is_one_line() -> None:
    assert lines_of(lambda reporter: reporter.message("run\nfolder")) == ["run folder"]


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


def test_no_progress_between_reports_is_written_after_a_report() -> None:
    def report(reporter: PlainReporter) -> None:
        reporter.update(TRAINING)
        reporter.refresh(lambda: TRAINING)

    assert len(lines_of(report)) == 1


def test_the_progress_of_a_short_validation_is_not_written() -> None:
    def report(reporter: PlainReporter) -> None:
        for done in range(500):
            reporter.validation_progress(ValidationProgress("translated lines", done, 500))

    assert lines_of(report) == []


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
