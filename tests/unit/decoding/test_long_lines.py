"""A line that is too long is split into parts, each of which the model reads alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.long_lines import LineSplitter, split_text
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword

FRENCH = ">>fra<<"
TEXT = "the cat sat on the mat and the dog ran to the cat"


def multilingual_codec() -> TextCodec:
    """Return a codec whose lines begin with the symbol of a language, as OPUS-MT has them."""
    subword = Subword.train([TEXT], "bpe", 290, "x")
    pieces = [subword.piece(index) for index in range(EOS_ID + 1, subword.size)]
    entries = ["<unk>", "<pad>", "</s>", *pieces, FRENCH]
    vocabulary = MarianVocabulary(subword.data, entries, "x")
    return TextCodec("en", "fr", vocabulary, vocabulary, is_shared=True)


def parts_of(line: str, limit: int) -> list[list[int]]:
    config = TranslationConfig(max_source_length=limit)
    return LineSplitter(multilingual_codec(), config, 1000).encode(line, 1).parts


@pytest.mark.parametrize("limit", [9, 12, 15])
def test_each_part_begins_with_the_symbol_of_the_language(limit: int) -> None:
    codec = multilingual_codec()
    parts = parts_of(f"{FRENCH} {TEXT}", limit)
    texts = [codec.source.decode(ids[1:]) for ids in parts]
    assert len(parts) > 1
    assert all(len(ids) <= limit for ids in parts)
    assert parts == [codec.encode_source(f"{FRENCH} {text}") for text in texts]
    assert " ".join(texts) == TEXT


@pytest.mark.parametrize("symbol", [f"{FRENCH} ", ""])
@pytest.mark.parametrize("text", [TEXT, f" thecat{TEXT}  x", TEXT.replace(" ", "")])
@pytest.mark.parametrize("limit", [5, 9, 12])
def test_words_of_parts_are_words_of_the_line(symbol: str, text: str, limit: int) -> None:
    """As white space separates them, in any part: also where a part begins within a word."""
    codec, config = multilingual_codec(), TranslationConfig(max_source_length=limit)
    encoded = LineSplitter(codec, config, 1000).encode(f"{symbol}{text}", 1)
    assert len(encoded.parts) > 1
    words = f"{symbol}{text}".split()
    spelled = [""] * len(words)
    for part, ids in enumerate(encoded.parts):
        own = codec.source.decode(ids).split()
        assert max(codec.source.word_indices(ids[:-1])) == len(own) - 1
        for word, letters in enumerate(own):
            if word >= encoded.num_symbols or part == 0:
                spelled[encoded.word_of(part, word)] += letters
    assert spelled == words


@pytest.mark.parametrize("beginning", ["", "a\u200bb ", "the c\u0416t ", "a\x1cb "])
def test_a_split_line_has_the_words_of_the_whole_line(beginning: str) -> None:
    codec, text = multilingual_codec(), f"{beginning}{TEXT}"
    whole = codec.source.word_indices(codec.encode_source(text)[:-1])
    encoded = LineSplitter(codec, TranslationConfig(max_source_length=12), 1000).encode(text, 1)
    last = len(encoded.parts) - 1
    assert last > 0
    words = codec.source.word_indices(encoded.parts[last][:-1])
    assert encoded.word_of(last, max(words)) == max(whole)


@pytest.mark.parametrize("symbol", [FRENCH, ""])
def test_nothing_but_a_symbol_is_a_blank_line(symbol: str) -> None:
    assert parts_of(symbol, 9) == parts_of(f"{symbol} ", 9) == []
    unspaced = TEXT.replace(" ", "")
    decode = multilingual_codec().source.decode
    parts = parts_of(f"{symbol}{unspaced}{' ' * 99}", 12)  # halved where the right is blank
    assert len(parts) > 1
    texts = [decode(ids).removeprefix(symbol).strip(" ") for ids in parts]
    assert "".join(texts) == unspaced
    assert all(texts)


TEXTS = st.text(alphabet="ab\u00e9\U0001f600 \t\u3000", min_size=1, max_size=60)


@given(text=TEXTS, limit=st.integers(1, 20))
def test_parts_of_a_text_fit_and_lose_only_white_space(text: str, limit: int) -> None:
    parts = split_text(text, lambda part: len(part) <= limit)
    assert max(map(len, parts)) <= limit
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(words=st.lists(st.text(alphabet="xyz", max_size=5), min_size=1, max_size=20))
def test_words_that_fit_are_never_split(words: list[str]) -> None:
    text = " ".join(words)
    assert " ".join(split_text(text, lambda part: len(part) <= 5)) == text


def test_a_single_character_is_a_part_even_if_it_does_not_fit() -> None:
    assert split_text("ab", lambda _: False) == ["a", "b"]


def test_a_text_that_fits_is_left_whole() -> None:
    assert split_text(" a  b ", lambda _: True) == [" a  b "]


def test_a_text_is_split_near_its_middle() -> None:
    assert split_text("aaaa bb cccc ddd", lambda part: len(part) <= 9) == ["aaaa bb", "cccc ddd"]
