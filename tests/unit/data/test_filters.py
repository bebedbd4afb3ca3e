from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.preprocessing import SCRIPTS, FilterConfig
from nmtkit.data import filters as module
from nmtkit.data.filters import (
    NAMES_OF_SCRIPTS,
    REASONS,
    HeldOutText,
    PairFlags,
    drop_reason,
    find_duplicates,
    is_mostly_in_script,
    main_script,
)
from nmtkit.text.corpus import Corpus
from tests.unit.data.test_prepare import write_pairs

NOTHING = HeldOutText.of(())
LENGTHS = st.integers(1, 30)
CONFIGS = st.builds(
    FilterConfig, max_length=st.integers(2, 30), max_ratio=st.sampled_from([0.0, 1.0, 1.5, 3.0])
)
SAMPLES = {
    "latin": "Stra\u00dfe \u0153uvre",
    "cyrillic": "\u043f\u0440\u0438",
    "greek": "\u03b1\u03b2\u03b3",
    "arabic": "\u0627\u0628\u062a",
    "hebrew": "\u05d0\u05d1\u05d2",
    "armenian": "\u0531\u0532",
    "georgian": "\u10d0\u10d1",
    "ethiopic": "\u1200\u1201",
    "devanagari": "\u0905\u0906",
    "bengali": "\u0985\u0986",
    "tamil": "\u0b85\u0b86",
    "thai": "\u0e01\u0e02",
    "han": "\u4e2d\u6587",
    "japanese": "\u3072\u3089\u30ab\u30ca\u4ed5\u4e8b",
    "korean": "\ud55c\uad6d",
}


def by_length(num_source: int, num_target: int, config: FilterConfig) -> str | None:
    return drop_reason(("a", "b"), (num_source, num_target), None, config, NOTHING)


def by_text(source: str, target: str, config: FilterConfig, held_out: HeldOutText) -> str | None:
    return drop_reason((source, target), (5, 5), None, config, held_out)


@pytest.mark.parametrize(
    ("num_source", "num_target", "expected"),
    [
        (1, 1, "empty"),
        (1, 11, "empty"),  # also too long, and of any ratio
        (5, 1, "empty"),
        (10, 10, None),
        (11, 10, "too long"),
        (3, 11, "too long"),  # also of a bad ratio
        (2, 4, None),  # 1 word and 3: just 3 times as many
        (2, 5, "ratio"),
        (9, 3, "ratio"),
        (7, 3, None),
    ],
)
def test_a_pair_is_dropped_for_its_first_reason(
    num_source: int, num_target: int, expected: str | None
) -> None:
    config = FilterConfig(max_length=10, max_ratio=3.0)
    assert by_length(num_source, num_target, config) == expected


@given(LENGTHS, LENGTHS, CONFIGS)
def test_sides_are_treated_equally(one: int, other: int, config: FilterConfig) -> None:
    assert by_length(one, other, config) == by_length(other, one, config)


@given(LENGTHS, LENGTHS)
def test_ratio_0_keeps_every_ratio(one: int, other: int) -> None:
    config = FilterConfig(max_length=30, max_ratio=0.0)
    assert by_length(one, other, config) == ("empty" if 1 in (one, other) else None)


def test_every_filter_is_off_by_default() -> None:
    assert by_text("same", "same", FilterConfig(), NOTHING) is None
    assert drop_reason(("a", "b"), (2, 2), None, FilterConfig(), NOTHING) is None


def test_a_pair_of_another_script_is_dropped() -> None:
    config = FilterConfig(source_script="latin", target_script="cyrillic")
    privet = "\u043f\u0440\u0438\u0432\u0435\u0442"
    assert by_text("hello", privet, config, NOTHING) is None
    assert by_text(privet, privet, config, NOTHING) == "script"
    assert by_text("hello", "hello", config, NOTHING) == "script"


def test_a_copy_with_other_white_space_is_dropped() -> None:
    config = FilterConfig(drop_copies=True)
    assert by_text("www.x.org  a", " www.x.org a", config, NOTHING) == "copy"
    assert by_text("a b", "b a", config, NOTHING) is None


def test_a_pair_with_a_line_of_held_out_text_is_dropped() -> None:
    held_out = HeldOutText.of([("a test", "ein Test"), ("b", "c")])
    config = FilterConfig()
    assert by_text(" a  test", "etwas", config, held_out) == "held out"
    assert by_text("something", "ein Test", config, held_out) == "held out"
    assert by_text("ein Test", "a test", config, held_out) is None  # each side has its own


def test_reasons_come_in_their_order() -> None:
    config = FilterConfig(max_ratio=2.0, source_script="greek", drop_copies=True, max_length=9)
    held_out = HeldOutText.of([("a", "a"), ("\u03b1", "x")])
    cases = [
        (("a", "a"), (1, 20)),
        (("a", "a"), (2, 20)),
        (("a", "a"), (2, 9)),
        (("a", "a"), (2, 2)),
        (("\u03b1", "\u03b1"), (2, 2)),
        (("\u03b1", "y"), (2, 2)),
        (("\u03b2", "y"), (2, 2)),
    ]
    found = [drop_reason(pair, sizes, "score", config, held_out) for pair, sizes in cases]
    assert (*found, "duplicate") == REASONS


def test_every_script_that_can_be_chosen_is_known() -> None:
    assert set(SCRIPTS) == {"any", *NAMES_OF_SCRIPTS}


@pytest.mark.parametrize("script", NAMES_OF_SCRIPTS)
def test_a_line_is_in_its_script(script: str) -> None:
    found = {name for name in NAMES_OF_SCRIPTS if is_mostly_in_script(SAMPLES[script], name)}
    related = {"han": {"han", "japanese", "korean"}}
    assert found == related.get(script, {script})


def test_only_letters_count() -> None:
    assert is_mostly_in_script("12 345, \u2014 \U0001f600", "greek")
    assert is_mostly_in_script("", "latin")
    assert is_mostly_in_script("a 1234567890 !!!", "latin")


def test_half_of_the_letters_is_enough() -> None:
    assert is_mostly_in_script("ab\u03b1\u03b2", "greek")
    assert not is_mostly_in_script("abc\u03b1\u03b2", "greek")


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("\u8bf7\u5b89\u88c5 Linux!", "han"),
        ("Mayuko\u65e9\u9910\u5403\u9eb5\u5305\u3002", "han"),
        ("\u30d3\u30eb\u306f Microsoft", "japanese"),
        ("\uc548\ub155 Johnny", "korean"),
    ],
)
def test_a_chinese_japanese_or_korean_character_counts_as_three_letters(
    line: str, script: str
) -> None:
    assert is_mostly_in_script(line, script)
    assert not is_mostly_in_script(f"{line} in another language", script)


def test_wide_letters_are_letters_of_their_script() -> None:
    assert is_mostly_in_script("\uff21\uff22", "latin")
    assert is_mostly_in_script("\uff76\uff85", "japanese")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["abc", "\u03b1"], "latin"),
        (["a", "\u03b1\u03b2"], "greek"),
        (["\u4e2d\u56fd"], "han"),
        (["\u4e2d\u56fd\u306e"], "japanese"),
        (["\u4e2d\ud55c\uad6d"], "korean"),
        (["12"], None),
        ([], None),
        (["\u1780\u1781"], None),  # Khmer has no filter
        (["\u1780\u1781" * 50, "GitHub"], None),
        (["ab", "\u03b1\u03b2"], None),
        (["\u4e2d\u56fd" * 50, "\u306e", "\ud55c"], "han"),
    ],
)
def test_the_main_script_has_most_letters(lines: list[str], expected: str | None) -> None:
    assert main_script(lines) == expected


PAIRS = st.lists(st.tuples(*[st.sampled_from(["a", "b", " a ", "a b", "a  b"])] * 2), min_size=1)


@given(st.lists(PAIRS, min_size=1, max_size=3), st.integers(1, 7), st.integers(1, 5))
def test_all_but_the_first_of_equal_pairs_are_duplicates(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[list[tuple[str, str]]],
    part_pairs: int,
    batch_pairs: int,
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    prefixes = [write_pairs(folder, str(number), pairs) for number, pairs in enumerate(texts)]
    corpora = [Corpus.find(prefix, "en", "de") for prefix in prefixes]
    with mock.patch.multiple(module, _PART_PAIRS=part_pairs, _BATCH_PAIRS=batch_pairs):
        duplicates = find_duplicates(corpora, folder)
    normalized = [tuple(" ".join(s.split()) for s in pair) for pairs in texts for pair in pairs]
    expected = [pair in normalized[:number] for number, pair in enumerate(normalized)]
    assert duplicates.flags_of(0, len(expected)).tolist() == expected


def test_nothing_stays_on_disk(tmp_path: Path) -> None:
    one = Corpus.find(write_pairs(tmp_path, "x", [("a", "b")] * 3), "en", "de")
    before = sorted(tmp_path.iterdir())
    find_duplicates([one], tmp_path)
    assert sorted(tmp_path.iterdir()) == before


@given(st.lists(st.booleans(), min_size=1, max_size=50), st.data())
def test_flags_of_any_range_are_returned(flags: list[bool], data: st.DataObject) -> None:
    duplicates = PairFlags(len(flags))
    duplicates.flag(np.flatnonzero(flags).astype(np.uint64))
    first = data.draw(st.integers(0, len(flags) - 1))
    count = data.draw(st.integers(1, len(flags) - first))
    assert duplicates.flags_of(first, count).tolist() == flags[first : first + count]
