from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmtkit.errors import ConfigError, DataError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.closed_words import Words
from tests.messages import refuses
from tests.tiny import write_lines

WORDS = Words(["the", "@@x", "</w>", "caf\u00e9"])
KNOWN = st.sampled_from(["the", "@@x", "</w>", "caf\u00e9"])
SPACE = st.text(" \t\u00a0\u2028", min_size=1)


def is_word(text: str) -> bool:
    return text.split() == [text] and text not in ("<unk>", "<s>", "</s>")


@given(st.lists(KNOWN), st.data())
def test_decoding_joins_known_tokens_by_one_space(tokens: list[str], data: st.DataObject) -> None:
    line = data.draw(SPACE) + "".join(token + data.draw(SPACE) for token in tokens)
    assert WORDS.decode(WORDS.encode(line)) == WORDS.normalize(line) == " ".join(tokens)


@given(st.text())
def test_every_token_has_one_id_that_is_no_control_symbol(line: str) -> None:
    ids = WORDS.encode(line)
    assert len(ids) == len(line.split())
    assert not {BOS_ID, EOS_ID}.intersection(ids)


def test_each_token_is_a_word() -> None:
    assert WORDS.word_ranges([3, UNK_ID, 4]) == [range(0, 1), range(1, 2), range(2, 3)]


def test_tokens_that_are_spelled_like_special_symbols_are_unknown() -> None:
    assert WORDS.encode("<s> the </s> <unk>") == [UNK_ID, 3, UNK_ID, UNK_ID]


def test_decoding_skips_begin_and_end_and_shows_unknown_tokens() -> None:
    assert WORDS.decode([BOS_ID, 3, UNK_ID, 4, EOS_ID]) == "the <unk> @@x"


def test_ids_follow_the_list_after_the_special_symbols() -> None:
    pieces = [WORDS.piece(i) for i in range(WORDS.size)]
    assert pieces == ["<unk>", "<s>", "</s>", "the", "@@x", "</w>", "caf\u00e9"]


def test_frequent_words_come_first_and_equal_ones_by_code_point() -> None:
    words = Words.count(["b a", "\u00e4 a b", "Z c", "<s> <s> <s>"], size=100, min_count=1)
    assert [words.piece(i) for i in range(3, words.size)] == ["a", "b", "Z", "c", "\u00e4"]


def test_the_size_counts_the_special_symbols() -> None:
    words = Words.count(["a a a b b c"], size=5, min_count=1)
    assert words.size == 5
    assert words.encode("a b c") == [3, 4, UNK_ID]


def test_words_below_the_minimum_are_left_out() -> None:
    assert Words.count(["a a b"], size=100, min_count=2).encode("a b") == [3, UNK_ID]


def test_counting_no_word_is_an_error() -> None:
    with refuses(DataError, "words 2 3; --min-count"):
        Words.count(["a a b"], size=100, min_count=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(min_size=1).filter(is_word), min_size=1, unique=True))
def test_a_loaded_list_equals_the_saved_one(tmp_path: Path, words: list[str]) -> None:
    saved = Words(words)
    saved.save(tmp_path / "words.txt")
    assert Words.load(tmp_path / "words.txt").data == saved.data


def test_special_symbols_are_put_before_a_list_without_them(tmp_path: Path) -> None:
    bare = write_lines(tmp_path / "bare.txt", ["a", "b"])
    full = write_lines(tmp_path / "full.txt", ["<unk>", "<s>", "</s>", "a", "b"])
    assert Words.load(bare).data == Words.load(full).data == full.read_bytes()


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (["a", "b", "a"], ":3 'a'; delete"),
        (["<unk>", "<s>", "</s>", "a", "b", "a"], ":6 'a'; delete"),
        (["a", "", "b"], ":2 empty; delete"),
        (["a", "b 17"], ":2 'b 17'; word"),
        (["a", " b"], ":2 ' b'; word"),
        (
            ["<s>", "</s>", "<unk>", "a"],
            ":1 '<s>'; <unk> <s> </s>",
        ),
        ([], " words; list words"),
        (["<unk>", "<s>", "</s>"], " words; list words"),
    ],
)
def test_a_bad_list_is_an_error_that_names_the_line(
    tmp_path: Path, lines: list[str], keys: str
) -> None:
    path = write_lines(tmp_path / "vocabulary.txt", lines)
    with refuses(DataError, f"{path}{keys}"):
        Words.load(path)


def test_a_list_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with refuses(ConfigError, "missing.txt"):
        Words.load(tmp_path / "missing.txt")
