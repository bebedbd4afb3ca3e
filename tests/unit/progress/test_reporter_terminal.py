"""The live display shows every figure, and only its last state stays on the screen."""

import dataclasses
import os
import re
from collections.abc import Sequence

import pytest

from nmtkit.progress.records import Sample, ValidationProgress
from nmtkit.progress.reporter import REDRAWS, TerminalReporter, make_reporter
from tests.records import TRAINING, VALIDATION
from tests.unit.progress.streams import Screen

WORSE = dataclasses.replace(VALIDATION, update=200, nll=3.75, scores={}, is_best=False)
NUM_ROWS = 50
WIDTHS = (160, 60, 24, 8, 200, 1)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Return a screen of 160 columns, whose width may be changed."""
    screen = Screen(width=160)
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    size = os.terminal_size
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: size((screen.width, NUM_ROWS)))
    return screen


def unwrapped(rows: Sequence[str]) -> str:
    """Return the words of rows in order, wherever they were wrapped."""
    return "".join("".join(rows).split())


def test_a_terminal_gets_a_display_with_every_figure_and_its_unit(screen: Screen) -> None:
    reporter = make_reporter(screen)
    assert isinstance(reporter, TerminalReporter)
    reporter.message("before [the] start")
    reporter.start(1000, 0, [])
    reporter.update(TRAINING)
    reporter.validation(VALIDATION)
    reporter.validation(WORSE)
    reporter.message("in the middle")
    reporter.close()
    reporter.message("after the end")
    rows = screen.rows()
    assert re.fullmatch(r"\S{40}  update 100/1000", rows.pop(2))
    assert rows == [
        "before [the] start",
        "in the middle",
        "epoch 2  loss 4.2500  nll 3.5000 nats/token  perplexity 33.12  lr 1.250e-04  "
        "gradient norm 0.750",
        "12,346 source+target tokens/s  1.50 updates/s  fill 97%  memory 1290MiB  "
        "ETA 2h01m  elapsed 1m05s",
        "validation at update 200: nll 3.7500 nats/token  perplexity 25.79  took 8s",
        "best at update 100: nll 3.2500 nats/token  perplexity 25.79  bleu 26.33  took 8s",
        "after the end",
        "",
    ]


def test_a_validation_that_was_not_finished_leaves_no_bar(screen: Screen) -> None:
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [])
    reporter.validating(100, 500)
    reporter.validation_progress(ValidationProgress("translated lines", 20, 500))
    assert any("validating: 20/500" in row for row in screen.rows())
    reporter.close()
    assert not any("validating" in row for row in screen.rows())


def test_skipped_updates_are_shown_on_a_terminal(screen: Screen) -> None:
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [])
    reporter.update(dataclasses.replace(TRAINING, skipped_updates=2))
    reporter.close()
    assert "2 updates skipped" in screen.getvalue()


def test_a_bar_shows_how_far_a_validation_is_until_its_result(screen: Screen) -> None:
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [])
    reporter.update(TRAINING)
    reporter.validating(100, 1500)
    assert screen.rows()[1].endswith("  validating: 0/1,500 lines")
    for counted, total in (("batches of nll", 3), ("translated lines", 1500), ("metrics", 1)):
        for done in range(total + 1):
            reporter.validation_progress(ValidationProgress(counted, done, total))
        assert screen.rows()[1].endswith(f"  validating: {total:,}/{total:,} {counted}")
    reporter.validation(VALIDATION)
    reporter.close()
    assert "validating" not in "".join(screen.rows())


def test_a_long_validation_does_not_redraw_per_line(screen: Screen) -> None:
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [])
    for done in range(10_001):
        reporter.validation_progress(ValidationProgress("translated lines", done, 10_000))
    assert screen.getvalue().count("validating:") == REDRAWS + 1


def test_samples_are_printed_above_the_display_and_truncated(screen: Screen) -> None:
    screen.width = 40
    sample = Sample(51, "le chat " * 10, "\u732b" * 30, "a\x1b[2Jcat [bold] sleeps")
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [])
    reporter.validation(dataclasses.replace(VALIDATION, samples=[sample]))
    reporter.close()
    assert screen.rows()[:4] == [
        "update 100, validation line 51",
        "  source     le chat le chat le chat le\u2026",
        "  reference  " + 13 * "\u732b" + "\u2026",
        r"  hypothesis a\x1b[2Jcat [bold] sleeps",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_of_any_width_shows_messages_and_one_display(width: int, screen: Screen) -> None:
    screen.width = width
    messages = ["first " * 30 + "end", "second"]
    reporter = TerminalReporter(screen)
    reporter.message(messages[0])
    reporter.start(1000, 0, [])
    for _ in range(3):
        reporter.update(TRAINING)
    reporter.message(messages[1])
    reporter.validating(100, 500)
    reporter.validation(VALIDATION)
    reporter.close()
    found = unwrapped(screen.rows())
    assert found.startswith(unwrapped(messages))
    if width >= len("perplexity"):
        assert [found.count(text) for text in ("epoch2", "validationatupdate", "bestat")] == [1] * 3


def test_a_message_is_wrapped_between_words(screen: Screen) -> None:
    screen.width = 30
    words = "parameters=1901056 pairs=62642 target_entries=4000 device=cpu", "p" * 40
    make_reporter(screen).message(" ".join(words))
    assert screen.rows() == [
        *("parameters=1901056 pairs=62642", "target_entries=4000 device=cpu", "p" * 30, "p" * 10),
        "",
    ]


def test_after_a_resize_one_display_of_the_new_width_follows_the_messages(screen: Screen) -> None:
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [])
    for width in WIDTHS:
        reporter.update(TRAINING)
        screen.width = width
        reporter.update(TRAINING)
    screen.width = 160
    reporter.message("a message")
    reporter.close()
    first, bar, *_ = screen.rows()
    assert first == "a message"
    assert bar.endswith("  update 100/1000")
    assert unwrapped(screen.rows()).count("update100/1000") == 1


LAST_ROW = "best at update 100: nll 3.2500 nats/token  perplexity 25.79  bleu 26.33  took 8s"


@pytest.mark.parametrize("free_columns", range(4))
def test_what_a_terminal_echoes_does_not_move_the_display(
    free_columns: int, screen: Screen
) -> None:
    screen.width = len(LAST_ROW) + free_columns
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [VALIDATION])
    assert LAST_ROW in screen.rows() or free_columns < len("^C")
    screen.write("^C")
    reporter.update(TRAINING)
    reporter.close()
    found = unwrapped(screen.rows())
    assert "^C" not in found
    assert len(re.findall(r"update\d+/1000", found)) == 1


def test_the_cursor_is_visible_except_while_the_display_is_live(screen: Screen) -> None:
    reporter = TerminalReporter(screen)
    reporter.message("before")
    assert screen.is_cursor_visible
    reporter.start(1000, 0, [])
    assert not screen.is_cursor_visible
    reporter.close()
    assert screen.is_cursor_visible


@pytest.mark.parametrize("value", ["1", ""])
def test_no_color_means_no_colors(
    value: str, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    reporter = TerminalReporter(screen)
    reporter.start(1000, 0, [])
    reporter.update(TRAINING)
    reporter.close()
    colors = re.findall(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])[0-9;]*m", screen.getvalue())
    assert bool(colors) == (value == "")
