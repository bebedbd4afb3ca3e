"""All messages, as tests/golden/messages.txt has them, and what records them."""

import re
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError
from tests.messages import check_message, has_word, read_snapshot, refuses, without_chance

MESSAGES = sorted(read_snapshot())


def test_every_message_says_how_to_fix_it() -> None:
    assert MESSAGES
    for line in MESSAGES:
        assert re.match(r"[1-9]\d*: \S", line), line
        assert re.search(r"; | must be |\(see `nmtkit .*--help`\)", line), line
        assert not line.endswith((" ", ".")), line


def test_keys_are_whole_words_in_any_order() -> None:
    message = "heads (6) must divide model_size (512); try 4 or --heads 8"
    for keys in ("heads 6 model_size 512", "512 6", "heads; 4 8", "heads; --heads"):
        check_message(message, 2, keys, recorded=False)
    for keys in ("head", "model", "51", "heads; 6", "heads; -heads 5", "; 4", ""):
        with pytest.raises(AssertionError):
            check_message(message, 2, keys, recorded=False)


def test_a_key_ends_where_a_longer_option_or_file_goes_on() -> None:
    assert has_word("give --out", "--out")
    assert not has_word("give --out-of", "--out")
    assert has_word("/run/model: missing", "model")
    assert not has_word("/run/models: missing", "model")


def test_another_class_or_a_second_line_is_no_refusal() -> None:
    with pytest.raises(DamagedError), refuses(ConfigError, "a", recorded=False):
        raise DamagedError("a: damaged; restore it")
    with pytest.raises(AssertionError), refuses(ConfigError, "a", recorded=False):
        raise ConfigError("a: wrong\n; leave it out")


@pytest.mark.parametrize(
    ("message", "same"),
    [
        ("UTF-8 at byte 13 of 1,024; --beam 2.5e-05", "UTF-8 at byte N of N; --beam N"),
        (
            "exit code -9, 640MiB, part-1, below 2**63, x2",
            "exit code N, NMiB, part-1, below 2**63, x2",
        ),
        ("train.en:3: x", "train.en:N: x"),
        (
            "x: not valid TOML: Expected '=' (at line 2); correct it",
            "x: not valid TOML: REASON; correct it",
        ),
        (
            "in:1: cannot be read as JSON (Expecting value: line 1); y",
            "in:N: cannot be read as JSON (REASON); y",
        ),
        ("torch 2.13.0+cpu", "torch N"),
        ("x" * 300, "x..."),
    ],
)
def test_numbers_and_reasons_of_libraries_are_no_words(message: str, same: str) -> None:
    assert without_chance(message) == same


def test_temporary_places_are_no_words(tmp_path: Path) -> None:
    assert without_chance(f"'{tmp_path}/run': in use; {tmp_path}") == "'TMP/run': in use; TMP"
