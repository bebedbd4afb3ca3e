import io
import os
import select
import sys
from pathlib import Path

import click
import pytest

from nmtkit.errors import ConfigError, ResourceError
from nmtkit_cli import streams
from tests.doubles import Clock


def test_lines_are_written_as_utf8_ended_by_lf_and_flushed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(raw), "ascii"))
    streams.write_lines(["Gr\u00fc\u00dfe", "", "a\u2028b"])
    assert raw.getvalue() == "Gr\u00fc\u00dfe\n\na\u2028b\n".encode()


def test_a_closed_standard_output_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ResourceError, match="standard output is closed; redirect it into a file"):
        streams.write_lines(["a"])


def test_a_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="standard input is closed; redirect a file into it"):
        streams.standard_input()


@pytest.mark.parametrize("is_buffered", [True, False])
def test_a_pipe_that_accepts_parts_gets_all_of_the_output(
    is_buffered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    received = []

    def wait(_readers: object, writers: list[io.FileIO], _others: object) -> None:
        assert [file.fileno() for file in writers] == [writing]
        received.append(os.read(reading, 5000))

    raw = io.FileIO(writing, "wb", closefd=False)
    buffer = io.BufferedWriter(raw) if is_buffered else raw
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, "utf-8"))
    monkeypatch.setattr(select, "select", wait)
    streams.open_standard_output()
    text = "Gr\u00fc\u00dfe\n" * 20_000
    streams.write_bytes(text.encode())
    click.echo(text, nl=False)
    sys.stdout.write(text)
    os.close(writing)
    assert len(received) > 1  # the pipe was full
    with os.fdopen(reading, "rb") as pipe:
        assert (b"".join(received) + pipe.read()).decode() == text * 3


def test_standard_output_keeps_its_encoding_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "out").open("w", encoding="latin-1", errors="replace") as out:
        monkeypatch.setattr(sys, "stdout", out)
        streams.open_standard_output()
        click.echo("Gr\u00fc\u00dfe \u20ac")
        assert sys.stdout.fileno() == out.fileno()
        assert not sys.stdout.isatty()
    assert (tmp_path / "out").read_bytes() == b"Gr\xfc\xdfe ?\n"


def test_a_closed_standard_output_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    streams.open_standard_output()
    assert sys.stdout is None


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
