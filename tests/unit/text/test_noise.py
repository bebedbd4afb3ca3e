"""What each modifier does to a pair, and which stored ids become text that may be changed."""

from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config import training_rules as config
from nmtkit.symbols import EOS_ID, UNK_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.noise import (
    MODIFIERS,
    SOURCE_MODIFIERS,
    EditableText,
    Texts,
    drop_final_punctuation,
    join,
    whole_entries,
)
from nmtkit.text.subword import SentencePieceVocabulary, Subword
from nmtkit.text.subword_file import with_pieces
from nmtkit.text.vocabulary import NormalForm, Steps
from nmtkit.text.words import letter_spans
from tests.unit.text.test_subword import TEXT, corpus, marian_of, model

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


# ------------------------------------------------------------------------------ editable text

TOKENS = ["<bt>", "<2de>", "Berlin", "un"]


@cache
def vocabulary() -> Subword:
    return model().with_tokens(TOKENS)


@cache
def marian() -> MarianVocabulary:
    return marian_of(model("unigram")).with_tokens([">>fra<<", ">>deu<<", "Berlin"])


def stored(one: SentencePieceVocabulary, line: str) -> list[int]:
    return [*one.encode(line), EOS_ID]


def pieces(one: Subword | MarianVocabulary, ids: Sequence[int]) -> list[str]:
    return [one.piece(index) for index in ids]


@given(TEXT)
def test_ids_of_any_line_come_back_or_it_stays_as_it_is(text: str) -> None:
    editable, ids = EditableText(vocabulary()), stored(vocabulary(), text)
    line = editable.decode(ids)
    if line is not None:
        assert editable.encode(*line) == ids


@pytest.mark.parametrize("kind", ["bpe", "cleaned", "moses", "marian"])
def test_lines_of_the_text_can_be_changed(kind: str) -> None:
    used: SentencePieceVocabulary = vocabulary()
    if kind == "marian":
        used = marian()
    elif kind != "bpe":
        form: NormalForm = "nfc" if kind == "cleaned" else "none"
        used = vocabulary().with_steps(Steps(kind == "cleaned", form, "en"))
    editable = EditableText(used)
    for text in corpus()[:20]:
        assert editable.decode(stored(used, text)) == ([], text)
        longer = f"{text} {text}"
        assert editable.encode([], longer) == stored(used, longer)


@cache
def trained() -> Subword:
    """Return a vocabulary with a symbol that has no space of its own."""
    return Subword(with_pieces(Subword.train(corpus(), "bpe", 329, "x").data, ["<2de>"]), "x")


@pytest.mark.parametrize(
    ("used", "symbols", "expected"),
    [
        (vocabulary, "<bt>", ["\u2581<bt>"]),
        (vocabulary, "<2de> <bt>", ["\u2581<2de>", "\u2581<bt>"]),
        (trained, "<2de>", ["\u2581", "<2de>"]),
        (marian, ">>fra<<", [">>fra<<"]),
    ],
)
def test_symbols_at_the_beginning_are_kept_apart(
    used: Callable[[], Subword | MarianVocabulary], symbols: str, expected: list[str]
) -> None:
    text = corpus()[0]
    ids = stored(used(), f"{symbols} {text}")
    line = EditableText(used()).decode(ids)
    assert line is not None
    assert (pieces(used(), line[0]), line[1]) == (expected, text)
    assert EditableText(used()).encode(*line) == ids


def test_whole_entries_are_tokens_and_language_symbols() -> None:
    texts = {marian().piece(index) for index in whole_entries(marian())}
    assert texts == {">>fra<<", ">>deu<<", "\u2581Berlin"}
    assert whole_entries(Words(["a", "b"])) == frozenset()


def test_a_line_with_a_whole_token_within_it_stays() -> None:
    for used in (vocabulary(), marian()):
        assert EditableText(used).decode(stored(used, "ba Berlin noba")) is None
        first = EditableText(used).decode(stored(used, "Berlin noba"))
        assert first is not None
        assert first[1] == "noba"
        assert EditableText(used).encode([], "ba Berlin") is None


def test_text_inside_words_is_no_whole_token() -> None:
    line = EditableText(vocabulary()).decode(stored(vocabulary(), "baun una"))
    assert line == ([], "baun una")


@pytest.mark.parametrize(
    "ids",
    [
        [EOS_ID],  # a blank line
        [UNK_ID, EOS_ID],
        [model().encode("\u00e9")[-1], EOS_ID],  # half a character
        [*([model().encode("a")[0]] * 2), EOS_ID],
        [*reversed(model().encode(corpus()[0])), EOS_ID],  # another segmentation
    ],
)
def test_ids_that_no_text_has_stay(ids: list[int]) -> None:
    assert EditableText(model()).decode(ids) is None


def test_unknown_text_is_not_encoded() -> None:
    words = EditableText(Words(["a", "b"]))
    assert words.encode([], "a c") is None
    assert words.encode([], "a b") == [*Words(["a", "b"]).encode("a b"), EOS_ID]
    assert EditableText(marian()).encode([], " ") is None
