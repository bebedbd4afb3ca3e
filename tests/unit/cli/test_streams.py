import io
import sys
from collections.abc import Callable

import pytest

from nmtkit.errors import ConfigError
from nmtkit_cli import streams
from tests.messages import refuses


def test_lines_are_written_as_utf8_ended_by_lf_and_flushed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(raw), "ascii"))
    streams.write_lines(["Gr\u00fc\u00dfe", "", "a\u2028b"])
    assert raw.getvalue() == "Gr\u00fc\u00dfe\n\na\u2028b\n".encode()


@pytest.mark.parametrize("write", [streams.say, lambda text: streams.write_report([text])])
def test_what_a_terminal_would_act_on_is_written_as_escape_sequences(
    write: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    write("run\x1b[31m\x07\x9b \u202e\udce9\u3000\u200d.")
    assert "".join(capfd.readouterr()) == r"run\x1b[31m\x07\x9b \u202e\udce9" + "\u3000\u200d.\n"


def test_a_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with refuses(ConfigError, "input"):
        streams.standard_input()


def test_a_warning_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    streams.warn("this\nis odd")
    assert capsys.readouterr() == ("", "nmtkit: warning: this is odd\n")
