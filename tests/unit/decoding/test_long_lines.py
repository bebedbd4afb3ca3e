"""A line that is too long is split into parts, each of which the model reads alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.answers import Request
from nmtkit.decoding.long_lines import LineSplitter, SourcePart, split_text
from nmtkit.errors import DataError
from nmtkit.symbols import EOS_ID, UNK_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword
from nmtkit.text.words import words_of
from tests.messages import refuses
from tests.tiny import never_warn

FRENCH = ">>fra<<"
TEXT = "the cat sat on the mat and the dog ran to the cat"


def multilingual_codec() -> TextCodec:
    """Return a codec whose lines begin with the symbol of a language, as OPUS-MT has them."""
    subword = Subword.train([TEXT], "bpe", 290, "x")
    pieces = [subword.piece(index) for index in range(EOS_ID + 1, subword.size)]
    entries = ["<unk>", "<pad>", "</s>", *pieces, FRENCH]
    vocabulary = MarianVocabulary(subword.data, entries, "x")
    return TextCodec("en", "fr", vocabulary, vocabulary, is_shared=True)


def parts_of(line: str, limit: int) -> list[SourcePart]:
    config = TranslationConfig(max_source_length=limit)
    return LineSplitter(multilingual_codec(), config, 1000, 0, "", never_warn).encode(
        Request(line), 1
    )


def ids_of(line: str, limit: int) -> list[list[int]]:
    return [part.ids for part in parts_of(line, limit)]


def test_a_language_that_the_model_lacks_is_refused() -> None:
    assert parts_of(f"{FRENCH} the cat", 99)
    assert parts_of(">> the << cat", 99)
    with refuses(DataError, f"line 1 >>deu<<; {FRENCH}"):
        parts_of(">>deu<< the cat", 99)


@pytest.mark.parametrize("limit", [9, 12, 15])
def test_each_part_begins_with_the_symbol_of_the_language(limit: int) -> None:
    codec = multilingual_codec()
    parts = ids_of(f"{FRENCH} {TEXT}", limit)
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
    codec, parts = multilingual_codec(), parts_of(f"{symbol}{text}", limit)
    assert len(parts) > 1
    words = f"{symbol}{text}".split()
    spelled = [""] * len(words)
    for index, part in enumerate(parts):
        assert part.index == index
        own = codec.source.decode(part.ids).split()
        assert codec.source.word_ranges(part.ids[:-1])[-1].stop == len(own)
        for word, letters in enumerate(own):
            if word >= part.num_symbols or index == 0:
                spelled[part.word_in_line(word)] += letters
    assert spelled == words


CHINESE = "我喜欢红苹果。今天天气很好我们去 Beijing 吃饭。"


@pytest.mark.parametrize(
    "line",
    [CHINESE, "मैं हिन्दी किताब पढ़ती हूँ। वह स्कूल गया", "ใจดีมาก ที่บ้าน", "مُحَمَّدٌ فِي البَيْتِ"],
)
@pytest.mark.parametrize("limit", [9, 14, 30])
def test_words_of_parts_are_those_of_the_script(line: str, limit: int) -> None:
    subword = Subword.train([line] * 3, "bpe", 290, "x")
    codec = TextCodec("en", "en", subword, subword, is_shared=True)
    config = TranslationConfig(max_source_length=limit)
    parts = LineSplitter(codec, config, 1000, 0, "", never_warn).encode(Request(line), 1)
    words = words_of(line)
    found: dict[int, str] = {}
    for part in parts:
        own = words_of(codec.source.decode(part.ids))
        found |= {part.word_in_line(index): word for index, word in enumerate(own)}
    assert [found[index] for index in range(len(words))] == words


def test_a_chinese_line_is_split_after_a_sentence() -> None:
    assert split_text(CHINESE, lambda part: len(part) <= 22) == [CHINESE[:7], CHINESE[7:]]


@pytest.mark.parametrize("beginning", ["", "a\u200bb ", "the c\u0416t ", "a\x1cb "])
def test_a_split_line_has_the_words_of_the_whole_line(beginning: str) -> None:
    text = f"{beginning}{TEXT}"
    *others, last = parts_of(text, 12)
    assert others
    assert last.word_in_line(len(words_of(last.text)) - 1) == len(words_of(text)) - 1


@pytest.mark.parametrize("symbol", [FRENCH, ""])
def test_nothing_but_a_symbol_is_a_blank_line(symbol: str) -> None:
    assert ids_of(symbol, 9) == ids_of(f"{symbol} ", 9) == [[]]
    unspaced = TEXT.replace(" ", "")
    decode = multilingual_codec().source.decode
    parts = ids_of(f"{symbol}{unspaced}{' ' * 99}", 12)  # halved where the right is blank
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


def test_words_of_a_closed_vocabulary_are_not_split() -> None:
    line = "\u4ef7\u683c \u662f \uff13\uff0e\uff15 \u5143 \u6bcf\u3002\u516c\u65a4 \u5bf9 \u5417"
    vocabulary = Words.count([line], 100, 1)
    codec = TextCodec("zh", "en", vocabulary, vocabulary, is_shared=True)
    splitter = LineSplitter(codec, TranslationConfig(max_source_length=5), 1000, 0, "", never_warn)
    parts = splitter.encode(Request(line), 1)
    assert len(parts) > 1
    found = [index for part in parts for index in part.ids[:-1]]
    assert found == codec.encode_source(line)[:-1]
    assert UNK_ID not in found
