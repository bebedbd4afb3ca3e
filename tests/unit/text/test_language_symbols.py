"""Language symbols of a codec of several directions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.text.codec import TextCodec
from nmtkit.text.language_symbols import is_trained, symbols_for, with_symbols
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword
from tests.messages import refuses

SYMBOLS = ("<2de>", "<2nl>", "<from-en>", "<from-de>")


def codec_of(*directions: str, has_source_symbols: bool = False) -> TextCodec:
    words = Subword.train(["the cat sat on the mat"], "bpe", 290, "x", SYMBOLS)
    codec = TextCodec("mul", "mul", words, words, is_shared=True)
    return codec.with_directions(directions, has_source_symbols)


def marian(*languages: str) -> TextCodec:
    subword = Subword.train(["the cat sat"], "bpe", 275, "x")
    pieces = [subword.piece(index) for index in range(3, subword.size)]
    listed = ["<unk>", "<pad>", "</s>", *pieces, *(f">>{one}<<" for one in languages)]
    vocabulary = MarianVocabulary(subword.data, listed, "x")
    return TextCodec("en", "target", vocabulary, vocabulary, is_shared=True)


TWO, ONE = codec_of("en-de", "en-nl"), codec_of("en-de", "nl-de")
BOTH = codec_of("en-de", "en-nl", "de-nl", has_source_symbols=True)
PLAIN = replace(TWO, directions=(), source_lang="en", target_lang="de")


@pytest.mark.parametrize(
    ("codec", "source", "target", "symbols"),
    [
        (TWO, "", "nl", "<2nl>"),
        (TWO, "en", "nl", "<2nl>"),
        (TWO, "", "", ""),
        (ONE, "", "", "<2de>"),
        (BOTH, "de", "nl", "<2nl> <from-de>"),
        (PLAIN, "", "", ""),
        (marian("fra", "deu"), "", "fra", ">>fra<<"),
        (marian("fra", "deu"), "", "", ""),
        (marian("fra"), "", "", ""),
    ],
)
def test_lines_begin_with_the_symbols_of_the_languages(
    codec: TextCodec, source: str, target: str, symbols: str
) -> None:
    assert symbols_for(codec, source, target) == symbols
    if symbols:
        tagged = with_symbols(codec, "the cat", symbols)
        assert tagged == f"{symbols} the cat" == with_symbols(codec, tagged, symbols)
        assert codec.split_symbol(f"{symbols} the cat") == (symbols, " the cat")
        assert (
            codec.encode_source(symbols)[:-1]
            == codec.encode_source(f"{symbols} a")[: len(symbols.split())]
        )
    assert with_symbols(codec, " ", symbols) == " "


@pytest.mark.parametrize(
    ("codec", "source", "target", "keys"),
    [
        (TWO, "", "sv", "target_lang sv; de nl"),
        (TWO, "sv", "de", "source_lang sv; en"),
        (BOTH, "", "nl", "source_lang; --source-lang de en"),
        (PLAIN, "", "de", "target_lang de en"),
        (marian("fra", "deu"), "", "fr", "target_lang fr; fra"),
        (marian(), "", "fra", "target_lang fra"),
    ],
)
def test_languages_that_the_model_lacks_or_needs_are_refused(
    codec: TextCodec, source: str, target: str, keys: str
) -> None:
    with refuses(ConfigError, keys):
        symbols_for(codec, source, target)


@pytest.mark.parametrize("codec", [TWO, marian("de", "nl")])
def test_a_line_has_one_target_language(codec: TextCodec) -> None:
    with refuses(DataError, "target; --target-lang de nl"):
        with_symbols(codec, "the cat", "")
    symbol = symbols_for(codec, "", "de")
    assert with_symbols(codec, f"{symbol} the cat", "") == f"{symbol} the cat"
    other = symbols_for(codec, "", "nl")
    with refuses(DataError, f"{symbol} {other}; leave"):
        with_symbols(codec, f"{symbol} the cat", other)


def test_lines_begin_with_their_symbols_where_one_target_has_several_sources() -> None:
    codec = codec_of("en-de", "nl-de", has_source_symbols=True)
    line = "<2de> <from-en> the cat"
    assert with_symbols(codec, line, symbols_for(codec, "", "")) == line
    with refuses(DataError, "target; --target-lang de --source-lang"):
        with_symbols(codec, "the cat", symbols_for(codec, "", ""))


def test_untrained_directions_are_known() -> None:
    assert is_trained(BOTH, "de", "nl")
    assert is_trained(BOTH, "", "nl")
    assert not is_trained(BOTH, "de", "de")
    assert is_trained(PLAIN, "", "")


def test_directions_are_saved_and_read(tmp_path: Path) -> None:
    BOTH.save(tmp_path)
    assert TextCodec.load(tmp_path).description == BOTH.description
    path = tmp_path / "codec.json"
    values = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**values, "directions": ["en"]}), "utf-8")
    with refuses(DamagedError, "codec.json directions"):
        TextCodec.load(tmp_path)
