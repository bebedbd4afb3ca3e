"""Which display a stream gets, and what all displays know."""

import dataclasses
import io
import subprocess
import sys
from pathlib import Path

import pytest

from nmtkit.progress.reporter import PlainReporter, TerminalReporter, make_reporter
from tests.records import VALIDATION
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
