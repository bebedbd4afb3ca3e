"""Sizes that no exponent can be fitted to, and widths without heads, are refused at once."""

import pytest

from benchmarks.layers import read_options


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--n 64 --d 32 64", "--n: give at least two sizes, from 1 on and ascending, not 64"),
        ("--n 128 64", "--n: give at least two sizes, from 1 on and ascending, not 128 64"),
        ("--long 64 64", "--long: give at least two sizes, from 1 on and ascending, not 64 64"),
        ("--d 0 64", "--d: give at least two sizes, from 1 on and ascending, not 0 64"),
        ("--length 0", "--length: give a number from 1 on, not 0"),
        ("--rounds 0", "--rounds: give a number from 1 on, not 0"),
        ("--width 0", "--width: give a number from 1 on, not 0"),
        ("--d 64 200", "width 200 does not divide into heads; give multiples of 64, or less than"),
        ("--width 200", "width 200 does not divide into heads; give multiples of 64, or less than"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        read_options(arguments.split())
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


def test_what_can_be_measured_is_taken() -> None:
    options = read_options(["--n", "1", "64", "--d", "32", "100", "192", "--width", "96"])
    assert (options.n, options.d, options.width) == ([1, 64], [32, 100, 192], 96)
    assert read_options([]).rounds == 3
