"""What each modifier does to a pair, by examples and laws."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config import training_rules as config
from nmtkit.text.noise import (
    MODIFIERS,
    SOURCE_MODIFIERS,
    Texts,
    add_typos,
    capitalize_words,
    drop_final_punctuation,
    join,
    upper_case,
)
from nmtkit.text.words import letter_spans

WORDS = st.text(st.sampled_from(["a", "B", "\u00df", "\u0928", "\u093f", "1", "-", "\u4f60"]))
LINES = st.lists(WORDS.filter(bool), min_size=1, max_size=12).map(" ".join)
SEEDS = st.integers(0, 2**64 - 1)


def source_of(name: str, source: str, seed: int = 1, lang: str = "en") -> str:
    """Return the source that a modifier makes; it leaves the target unchanged."""
    found = MODIFIERS[name](Texts(source, "unchanged.", source_lang=lang), Random(seed))
    assert found.target == "unchanged."
    return found.source


def test_the_modifiers_are_those_of_the_settings() -> None:
    assert {*MODIFIERS, config.JOIN_LINES} == {*config.MODIFIERS}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("I'm fine.", "I'M FINE."),
        ("stra\u00dfe", "STRASSE"),
        ("\u03bf\u03b4\u03cc\u03c2 1b", "\u039f\u0394\u038c\u03a3 1B"),
        ("\u4f60\u597d 12", "\u4f60\u597d 12"),
        # Georgian; the second word has a Latin letter.
        ("\u10d0\u10dc\u10ff \u10d0b", "\u10d0\u10dc\u10ff \u10d0B"),
    ],
)
def test_upper_writes_the_source_in_capitals(source: str, expected: str) -> None:
    assert source_of("upper", source) == expected


@pytest.mark.parametrize("lang", ["tr", "tur", "az-Latn", "aze_Latn"])
def test_the_i_of_turkish_keeps_its_dot_in_capitals(lang: str) -> None:
    assert source_of("upper", "iyi k\u0131z", lang=lang) == "\u0130Y\u0130 KIZ"
    assert source_of("title", "iyi \u0131l\u0131k", lang=lang) == "\u0130yi Il\u0131k"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("don't use the NATO name", "Don't Use The NATO Name"),
        ('a "quoted (word"', 'A "Quoted (Word"'),
        ("well-known 3rd - x", "Well-known 3rd - X"),
        ("\u01c6ep", "\u01c5ep"),
    ],
)
def test_title_capitalizes_each_word_of_the_source(source: str, expected: str) -> None:
    assert source_of("title", source) == expected


def one_typo(text: str) -> set[str]:
    """Return all texts with one typing error, by brute force."""
    found = set()
    letters = [place for place, sign in enumerate(text) if sign.isalpha()]
    for place in letters:
        before, letter, after = text[:place], text[place], text[place + 1 :]
        found |= {before + after, before + 2 * letter + after}
        for other in {text[place].lower() for place in letters}:
            cased = other.upper() if letter.isupper() else other
            found |= {before + letter + cased + after, before + cased + after}
        if after[:1].isalpha():
            found.add(before + after[0] + letter + after[1:])
    return found - {text}


@pytest.mark.parametrize(
    "text", ["abc", "Ab-cd", "hello", "ssss", "\u0448\u043a\u043e\u043b\u0430"]
)
def test_a_typo_is_one_of_all_possible_ones_and_every_kind_occurs(text: str) -> None:
    found = {source_of("typo", text, seed) for seed in range(3000)}
    assert found == one_typo(text)


@pytest.mark.parametrize("text", ["", "a I 1 22", "a-b c1d", "...", "\u0928\u093f"])
def test_typos_need_two_letters_in_a_row(text: str) -> None:
    assert all(source_of("typo", text, seed) == text for seed in range(20))


@pytest.mark.parametrize("text", ["हिन्दी", "น้ำที่", "cafe\u0301e\u0301"])
def test_a_typo_moves_letters_with_their_marks(text: str) -> None:
    letters = [text[start:end] for start, end in letter_spans(text)]
    changed = {source_of("typo", text, seed) for seed in range(100)}
    assert len(changed) > 3
    for one in changed:
        assert {one[start:end] for start, end in letter_spans(one)} <= {*letters}


def test_ten_characters_without_spaces_are_ten_words() -> None:
    lines = ["\u6211\u4f60\u4ed6" * 20, "\u6211\u4f60\u4ed6"]
    sizes = [{len(source_of("typo", line, seed)) for seed in range(50)} for line in lines]
    assert max(sizes[0]) - len(lines[0]) > 1 == max(sizes[1]) - len(lines[1])


@pytest.mark.parametrize(("num_words", "expected"), [(1, 1), (9, 1), (19, 1), (20, 2), (41, 4)])
def test_there_is_a_typo_per_ten_words(num_words: int, expected: int) -> None:
    words = ["abcdefgh"] * num_words
    changed = [
        sum(
            old != new
            for old, new in zip(
                words, source_of("typo", " ".join(words), seed).split(), strict=True
            )
        )
        for seed in range(200)
    ]
    assert max(changed) == expected


@given(LINES, SEEDS)
def test_source_modifiers_keep_the_number_of_words(line: str, seed: int) -> None:
    for name in SOURCE_MODIFIERS:
        found = source_of(name, line, seed)
        assert len(found.split()) == len(line.split())
        assert source_of(name, line, seed) == found


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Hello.", "Hallo.", ("Hello", "Hallo")),
        ("Why ?", "Warum?", ("Why", "Warum")),
        ("Well...", "Nun \u2026", ("Well", "Nun")),
        ("What?!", "Was!", ("What", "Was")),
        ("\u4f60\u597d\u3002", "Hello.", ("\u4f60\u597d", "Hello")),
        ("\u0643\u064a\u0641\u061f", "How?", ("\u0643\u064a\u0641", "How")),
        ("\u03a4\u03b9;", "What?", ("\u03a4\u03b9", "What")),
        ("And you?", "Yo, \u00bfy t\u00fa?", ("And you", "Yo, y t\u00fa")),
        ("\u00bfQu\u00e9? \u00a1No!", "What? No!", ("\u00bfQu\u00e9? No", "What? No")),
    ],
)
def test_final_marks_of_the_same_kind_are_dropped_on_both_sides(
    source: str, target: str, expected: tuple[str, str]
) -> None:
    assert drop_final_punctuation(Texts(source, target), Random(1)) == Texts(*expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Hello", "Hallo"),
        ("Hello.", "Hallo"),
        ("Hello", "Hallo."),
        ("Hello.", "Hallo!"),
        ("Hello.", 'Er sagte "Hallo."'),
        ("...", "..."),
        ("Hello.", "."),
        ("!", "Nein!"),
        ("Hello.", ""),
        ("", ""),
    ],
)
def test_other_pairs_keep_their_marks(source: str, target: str) -> None:
    assert drop_final_punctuation(Texts(source, target), Random(1)) == Texts(source, target)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("One.", "Two.", "One. Two."),
        ("\u4e00\u3002", "\u4e8c\u3002", "\u4e00\u3002\u4e8c\u3002"),
        ("\u597d!", "\u4f60", "\u597d!\u4f60"),
        ("\uc751.", "\uac00\uc790.", "\uc751. \uac00\uc790."),
        ("\u0e01", "\u0e02", "\u0e01 \u0e02"),
    ],
)
def test_lines_are_joined_on_both_sides_as_their_language_does(
    first: str, second: str, expected: str
) -> None:
    assert join(Texts(first, "a."), Texts(second, "b.")) == Texts(expected, "a. b.")


def test_all_in_capitals_with_typos_and_without_a_mark() -> None:
    texts = Texts("the sun is up.", "die Sonne ist auf.")
    for name in MODIFIERS:
        texts = MODIFIERS[name](texts, Random(3))
    assert texts.source.isupper()
    assert texts.source not in ("THE SUN IS UP", "THE SUN IS UP.")
    assert (texts.source[-1], texts.target) != (".", "die Sonne ist auf")


@given(LINES, SEEDS)
def test_modifiers_are_functions_of_text_and_seed(line: str, seed: int) -> None:
    for modifier in (add_typos, capitalize_words, drop_final_punctuation, upper_case):
        first, second = (modifier(Texts(line, line), Random(seed)) for _ in range(2))
        assert first == second
