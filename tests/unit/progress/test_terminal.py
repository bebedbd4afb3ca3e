"""The live display shows every figure."""

import dataclasses

import pytest

from nmtkit.progress.reporter import make_reporter
from nmtkit.progress.terminal import TerminalReporter
from tests.records import TRAINING, VALIDATION
from tests.unit.progress.streams import Terminal


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


def test_skipped_updates_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    terminal = Terminal()
    reporter = TerminalReporter(terminal)
    reporter.start(1000, 0, [])
    reporter.update(dataclasses.replace(TRAINING, skipped_updates=2))
    reporter.close()
    assert "2 updates skipped" in terminal.getvalue()
