import io
import sys

import pytest

from nmtkit.errors import ConfigError
from nmtkit_cli import streams
from tests.doubles import Clock


def test_lines_are_written_as_utf8_ended_by_lf_and_flushed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(raw), "ascii"))
    streams.write_lines(["Gr\u00fc\u00dfe", "", "a\u2028b"])
    assert raw.getvalue() == "Gr\u00fc\u00dfe\n\na\u2028b\n".encode()


def test_a_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="standard input is closed; redirect a file into it"):
        streams.standard_input()


@pytest.mark.parametrize(
    ("number", "units", "expected"),
    [
        (1, "lines", "1 line"),
        (0, "lines", "0 lines"),
        (25_000, "tokens", "25,000 tokens"),
        (0.0, "minutes", "0 minutes"),
        (1e-9, "", "1e-09"),
        (0.98, "", "0.98"),
    ],
)
def test_a_number_is_shown_with_its_unit(number: float, units: str, expected: str) -> None:
    assert streams.counted(number, units) == expected


def test_a_warning_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    streams.warn("this\nis odd")
    assert capsys.readouterr() == ("", "nmtkit: warning: this is odd\n")


def test_progress_is_reported_after_some_seconds_and_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    progress = streams.Progress("translated", clock)
    steps = [
        (streams.REPORT_S, ""),
        (streams.REPORT_S + 6, "translated 4 lines, 0.2 lines/s, 125 target tokens/s\n"),
        (streams.REPORT_S + 10, ""),
        (2 * streams.REPORT_S + 20, "translated 8 lines, 0.2 lines/s, 100 target tokens/s\n"),
        (2 * streams.REPORT_S + 30, ""),
    ]
    begin = clock.now
    for seconds, report in steps:
        clock.now = begin + seconds
        progress.add(2, 1000)
        assert capsys.readouterr().err == report
    progress.end()
    report = "translated 10 lines, 0.2 lines/s, 100 target tokens/s\n"
    assert capsys.readouterr().err == report
    progress.end()
    assert capsys.readouterr().err == ""


def test_progress_that_was_never_reported_prints_no_last_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = streams.Progress("scored", Clock())
    progress.add(2, 1000)
    progress.end()
    assert capsys.readouterr().err == ""
