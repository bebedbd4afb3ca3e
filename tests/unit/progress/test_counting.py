"""Progress of work: what is shown when, on a terminal and elsewhere."""

import re
import sys
from collections.abc import Callable
from io import RawIOBase, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import click
import pytest

from nmtkit.progress.counting import (
    FIRST_REPORT_S,
    MARGIN,
    REFRESH_S,
    REPORT_S,
    Counting,
    WorkReporter,
    can_draw,
)
from nmtkit.runtime.standard_streams import StandardError
from nmtkit.units import counted
from nmtkit_cli.streams import warn
from tests.doubles import Clock
from tests.unit.progress.streams import Screen, Terminal

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
ERASE_LINE = "\x1b[2K"


class Work:
    """Work with a clock, whose reports are kept: plain lines, or what a terminal gets."""

    def __init__(self, terminal: TextIO | None = None) -> None:
        self.clock = Clock()
        self.begin = self.clock.now
        self.lines: list[str] = []
        self.reporter = WorkReporter(self.lines.append, terminal, self.clock)

    def at(self, seconds: float) -> None:
        self.clock.now = self.begin + seconds

    def reports(self) -> list[str]:
        """Return the plain lines since the last call."""
        lines, self.lines[:] = list(self.lines), []
        return lines


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


class RawScreen(RawIOBase):
    """The bytes of standard error, which a screen shows."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer") -> int:
        self._screen.write(bytes(data).decode())
        return len(bytes(data))


def opened(screen: Screen, encoding: str) -> TextIOWrapper:
    """Return standard error on a screen, as commands open it."""
    raw = cast(BinaryIO, RawScreen(screen))
    return TextIOWrapper(raw, encoding, "backslashreplace", write_through=True)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    return Screen(width=60)


def states(terminal: Terminal) -> list[str]:
    """Return the states of a live line since the last call, without bars and control sequences."""
    shown = terminal.getvalue()
    terminal.seek(0)
    terminal.truncate()
    lines = [CONTROL.sub("", part).strip() for part in shown.split("\r")]
    return [line for line in lines if line]


def test_plain_lines_come_after_a_second_then_every_ten_and_at_the_end() -> None:
    work = Work()
    counting = work.reporter.counting("translated", "lines")
    steps = [
        (FIRST_REPORT_S - 0.1, []),
        (FIRST_REPORT_S, ["translated 4 lines, 4.0 lines/s, 2,000 target tokens/s"]),
        (FIRST_REPORT_S + REPORT_S - 0.1, []),
        (2 * REPORT_S, ["translated 8 lines, 0.4 lines/s, 200 target tokens/s"]),
        (2 * REPORT_S + 5, []),
    ]
    for seconds, expected in steps:
        work.at(seconds)
        counting.add(2, 1000)
        assert work.reports() == expected
    counting.end()
    assert work.reports() == ["translated 10 lines, 0.4 lines/s, 200 target tokens/s"]
    counting.end()
    assert work.reports() == []


def test_work_that_continues_has_its_own_speed_and_remaining_time() -> None:
    work = Work()
    with work.reporter.counting("translated", "lines", 3000, 1000) as counting:
        work.at(10)
        counting.add(500)
        work.at(40)
        counting.add(1500)
    assert work.reports() == [
        "translated 1,500 of 3,000 lines (50%), 50.0 lines/s, 30s left",
        "translated 3,000 lines, 50.0 lines/s",
    ]
    with work.reporter.counting("translated", "lines", 3000, 1000):
        pass
    assert not work.reports()


def test_the_share_of_unfinished_work_is_never_100() -> None:
    work = Work()
    counting = work.reporter.counting("encoded", "pairs", 1000)
    work.at(10)
    counting.add(999)
    assert "999 of 1,000 pairs (99%)" in work.reports()[0]


def test_work_beyond_the_total_is_counted() -> None:
    work = Work()
    counting = work.reporter.counting("scored", "lines", 3)
    work.at(2)
    counting.add(4)
    assert work.reports() == ["scored 4 lines, 2.0 lines/s"]


def test_quick_work_and_work_without_units_is_silent() -> None:
    work = Work()
    with work.reporter.counting("read", "pairs") as quick:
        quick.add(5)
    with work.reporter.counting("read", "pairs") as empty:
        work.at(100)
        empty.add(0)
    assert work.reports() == []


def test_tracked_items_are_yielded_in_order_and_counted_to_the_last() -> None:
    work = Work()
    yielded = []
    with work.reporter.track(range(7), "read", "pairs", every=3) as items:
        for item in items:
            yielded.append(item)
            work.at(20 * len(yielded))
    assert yielded == list(range(7))
    assert [line.partition(",")[0] for line in work.reports()] == [
        "read 3 pairs",
        "read 6 pairs",
        "read 7 pairs",
    ]


def test_an_error_is_raised_after_the_last_line() -> None:
    work = Work()

    def broken(counting: Counting) -> None:
        with counting:
            for seconds in (2, 3):
                work.at(seconds)
                counting.add(1)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken(work.reporter.counting("read", "pairs"))
    assert [line.partition(",")[0] for line in work.reports()] == ["read 1 pair", "read 2 pairs"]


def test_nothing_is_reported_after_an_error_of_the_code_that_uses_tracked_items(
    terminal: Terminal,
) -> None:
    work = Work(terminal)

    def use() -> None:
        with work.reporter.track(range(9), "read", "pairs") as items:
            for item in items:
                work.at(item)
                if item == 3:
                    raise ValueError("broken")

    with pytest.raises(ValueError, match="broken") as caught:
        use()
    assert caught.tb  # which keeps the iterator alive
    assert [line.partition(",")[0] for line in work.reports()] == ["read 3 pairs"]
    assert terminal.getvalue().endswith(ERASE_LINE)
    del caught
    assert work.reports() == []


def test_a_live_line_is_drawn_from_the_first_unit_and_ten_times_a_second(
    terminal: Terminal,
) -> None:
    work = Work(terminal)
    counting = work.reporter.counting("translated", "lines")
    assert terminal.getvalue() == ""
    counting.add(1)
    assert HIDE_CURSOR in terminal.getvalue()
    assert states(terminal)[-1] == "translated 1 line"
    work.at(REFRESH_S / 2)
    counting.add(1)
    assert states(terminal) == []
    work.at(FIRST_REPORT_S)
    counting.add(2, 100)
    assert states(terminal)[-1] == "translated 4 lines, 4.0 lines/s, 100 target tokens/s"


def test_a_live_line_of_quick_work_leaves_nothing(terminal: Terminal) -> None:
    work = Work(terminal)
    with work.reporter.counting("read", "pairs") as counting:
        counting.add(1)
    assert work.reports() == []
    last = terminal.getvalue().rpartition("read 1 pair")[2]
    assert ERASE_LINE in last
    assert SHOW_CURSOR in last


def test_a_live_line_of_long_work_becomes_one_last_line(terminal: Terminal) -> None:
    work = Work(terminal)
    with work.reporter.counting("read", "pairs", 4) as counting:
        for seconds in (0, 1, 2, 3):
            work.at(seconds)
            counting.add(1)
    assert work.reports() == ["read 4 pairs, 1.3 pairs/s"]
    assert any("read 3 of 4 pairs (75%), 1.5 pairs/s, 1s left" in line for line in states(terminal))


def echo(text: str) -> None:
    """Warn by click, which writes to the buffer of a stream of text."""
    click.echo(f"nmtkit: warning: {text}", err=True)


@pytest.mark.parametrize(("write", "encoding"), [(warn, "utf-8"), (warn, "ascii"), (echo, "utf-8")])
def test_warnings_are_printed_whole_above_a_live_line(
    write: Callable[[str], None], encoding: str, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = opened(screen, encoding)
    monkeypatch.setattr(sys, "stderr", stderr)
    work = Work(stderr)
    text = "odd [bold] " * 20 + "/caf\u00e9"
    with work.reporter.counting("read", "pairs") as counting:
        for number in (1, 2):
            work.at(number)
            counting.add(1)
            assert screen.rows()[-1] == f"read {counted(number, 'pairs')}, 1.0 pairs/s"
            write(text)
        work.at(3)
        counting.add(1)
        *rows, live = screen.rows()
    assert live == "read 3 pairs, 1.0 pairs/s"
    line = f"nmtkit: warning: {text}\n"
    assert screen.getvalue().count(line.encode(encoding, "backslashreplace").decode()) == 2
    assert "read" not in "".join(rows)
    assert screen.is_cursor_visible
    assert sys.stderr is stderr


def test_a_live_line_and_its_messages_never_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    with Path("/dev/full").open("wb", buffering=0) as full:
        stderr = TextIOWrapper(StandardError(full.fileno(), "wb", closefd=False), "utf-8")
        monkeypatch.setattr(stderr, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stderr", stderr)
        with Work(stderr).reporter.counting("read", "pairs") as counting:
            counting.add(1)
            warn("odd")
            counting.add(1)
        stderr.detach()


@pytest.mark.parametrize("width", [1, 40, 79, 80])
def test_a_live_line_fits_into_the_width(
    width: int, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    work = Work(terminal)
    with work.reporter.counting("translated", "lines", 3_000_000) as counting:
        work.at(10)
        counting.add(300_000, 12_000_000)
        shown = CONTROL.sub("", terminal.getvalue())
    assert "\n" not in shown
    text = "translated 300,000 of 3,000,000 lines (10%), 30,000 lines/s"
    assert text[: min(max(1, width - MARGIN), 57)] in shown
    assert ("\u2501" in shown) == (width >= 80)
    assert all(len(state) <= max(1, width - MARGIN) for state in states(terminal))


def test_no_color_is_respected(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def colours() -> list[str]:
        with Work(terminal).reporter.counting("read", "pairs", 4) as counting:
            counting.add(1)
        return re.findall(r"\x1b\[[0-9;]*m", terminal.getvalue())

    assert colours()
    terminal.truncate(0)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any(re.search("3[0-9]|9[0-7]", code) for code in colours())


@pytest.mark.parametrize(("term", "expected"), [("xterm", True), ("dumb", False), (None, False)])
def test_only_a_terminal_that_can_redraw_gets_live_lines(
    term: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM", raising=False)
    if term:
        monkeypatch.setenv("TERM", term)
    assert can_draw(Terminal()) is expected
