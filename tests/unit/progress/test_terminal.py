import dataclasses
import errno
import io
import subprocess
import sys
from pathlib import Path

import pytest

from nmtkit.progress.records import TrainingRecord, shown
from nmtkit.progress.terminal import PlainReporter, TerminalReporter, make_reporter
from tests.records import TRAINING, VALIDATION


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_every_event_is_a_line_of_keys_and_values() -> None:
    stream = io.StringIO()
    reporter = make_reporter(stream)
    reporter.message("parameters=7")
    reporter.start(1000, 0, [])
    reporter.update(TRAINING)
    reporter.validation(VALIDATION)
    reporter.validation(dataclasses.replace(VALIDATION, update=200, scores={}, is_best=False))
    reporter.close()
    assert stream.getvalue().splitlines() == [
        "parameters=7",
        "event=start update=0/1000",
        "event=training update=100/1000 epoch=2 loss=4.2500 nll=3.5000 perplexity=33.12 "
        "lr=1.250e-04 gradient_norm=0.750 source+target_tokens_per_s=12346 updates_per_s=1.50 "
        "fill=0.97 memory=1290MiB skipped_updates=0 eta=2h01m elapsed=1m05s",
        "event=validation update=100/1000 nll=3.2500 perplexity=25.79 bleu=26.33 "
        "took=8s best_update=100",
        "event=validation update=200/1000 nll=3.2500 perplexity=25.79 took=8s best_update=100",
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WithTemperature(TrainingRecord):
    """A record with one more field."""

    temperature: float = shown("temperature={:.1f}", "{:.1f} degrees", row=2)


def test_a_field_is_displayed_by_its_declaration_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    record = WithTemperature(**vars(TRAINING), temperature=36.6)
    lines, terminal = io.StringIO(), Terminal()
    for reporter in (PlainReporter(lines), TerminalReporter(terminal)):
        reporter.start(1000, 0, [])
        reporter.update(record)
        reporter.close()
    assert lines.getvalue().endswith("elapsed=1m05s temperature=36.6\n")
    assert "elapsed 1m05s  36.6 degrees" in terminal.getvalue()


@pytest.mark.parametrize("term", ["dumb", "unknown", None])
def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(
    term: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    assert isinstance(make_reporter(Terminal()), PlainReporter)


def test_a_terminal_gets_a_display_with_every_figure_and_its_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "160")
    terminal = Terminal()
    reporter = make_reporter(terminal)
    assert isinstance(reporter, TerminalReporter)
    reporter.message("before [the] start")
    reporter.start(1000, 0, [])
    reporter.update(TRAINING)
    reporter.validation(VALIDATION)
    reporter.validation(
        dataclasses.replace(VALIDATION, update=200, nll=3.75, scores={}, is_best=False)
    )
    reporter.message("in the middle")
    reporter.close()
    reporter.message("after the end")
    shown = terminal.getvalue()
    for text in (
        "before [the] start\n",
        "update 100/1000",
        "epoch 2  loss 4.2500  nll 3.5000 nats/token  perplexity 33.12  lr 1.250e-04  "
        "gradient norm 0.750",
        "12,346 source+target tokens/s  1.50 updates/s  fill 97%  memory 1290MiB  "
        "ETA 2h01m  elapsed 1m05s",
        "validation at update 200: nll 3.7500 nats/token  perplexity 25.79",
        "best at update 100: nll 3.2500 nats/token  perplexity 25.79  bleu 26.33",
        "in the middle\n",
        "after the end\n",
    ):
        assert text in shown
    assert "skipped" not in shown


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


class Gone(Terminal):
    """A terminal that was closed."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_training_goes_on_when_its_terminal_is_gone() -> None:
    reporter = TerminalReporter(Gone())
    reporter.message("before")
    reporter.start(1000, 0, [])
    reporter.update(TRAINING)
    reporter.validation(VALIDATION)
    reporter.close()


def test_skipped_updates_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    terminal = Terminal()
    reporter = TerminalReporter(terminal)
    reporter.start(1000, 0, [])
    reporter.update(dataclasses.replace(TRAINING, skipped_updates=2))
    reporter.close()
    assert "2 updates skipped" in terminal.getvalue()


def test_rich_is_imported_for_a_terminal_only() -> None:
    program = (
        "import io, sys; from nmtkit.progress.terminal import make_reporter; "
        "make_reporter(io.StringIO()); print('rich' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(Path.cwd())},
    )
    assert process.stdout == b"False\n"
