"""Ids become text that may be changed only if the text would become the same ids."""

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given

from nmtkit.symbols import EOS_ID, UNK_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.noise import EditableText, whole_entries
from nmtkit.text.subword import SentencePieceVocabulary, Subword
from nmtkit.text.subword_file import with_pieces
from nmtkit.text.vocabulary import NormalForm, Steps
from tests.unit.text.test_subword import TEXT, corpus, model

TOKENS = ["<bt>", "<2de>", "Berlin", "un"]


@cache
def vocabulary() -> Subword:
    return model().with_tokens(TOKENS)


@cache
def marian() -> MarianVocabulary:
    pieces = [model("unigram").piece(index) for index in range(EOS_ID + 1, model("unigram").size)]
    plain = MarianVocabulary(model("unigram").data, ["<unk>", "<pad>", "</s>", *pieces], "x")
    return plain.with_tokens([">>fra<<", ">>deu<<", "Berlin"])


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


@pytest.mark.parametrize("symbols", [["<bt>"], ["<2de>", "<bt>"]])
def test_tags_at_the_beginning_are_kept_apart(symbols: list[str]) -> None:
    text = corpus()[0]
    ids = stored(vocabulary(), " ".join([*symbols, text]))
    line = EditableText(vocabulary()).decode(ids)
    assert line is not None
    assert pieces(vocabulary(), line[0]) == [f"\u2581{symbol}" for symbol in symbols]
    assert line[1] == text
    assert EditableText(vocabulary()).encode(*line) == ids


def test_symbols_without_a_space_of_their_own_are_symbols_too() -> None:
    trained = Subword(with_pieces(Subword.train(corpus(), "bpe", 329, "x").data, ["<2de>"]), "x")
    ids = stored(trained, f"<2de> {corpus()[0]}")
    line = EditableText(trained).decode(ids)
    assert line is not None
    assert pieces(trained, line[0]) == ["\u2581", "<2de>"]
    assert line[1] == corpus()[0]
    assert EditableText(trained).encode(*line) == ids


def test_language_symbols_are_kept_apart() -> None:
    ids = stored(marian(), f">>fra<< {corpus()[0]}")
    line = EditableText(marian()).decode(ids)
    assert line is not None
    assert pieces(marian(), line[0]) == [">>fra<<"]
    assert line[1] == corpus()[0]
    assert EditableText(marian()).encode(*line) == ids
    texts = {marian().piece(index) for index in whole_entries(marian())}
    assert texts == {">>fra<<", ">>deu<<", "\u2581Berlin"}


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


def test_lists_of_words_have_no_whole_entries() -> None:
    assert whole_entries(Words(["a", "b"])) == frozenset()
