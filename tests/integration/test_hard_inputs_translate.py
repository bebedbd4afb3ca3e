"""Every hard file as input of a translation: as many lines come out as go in."""

from typing import Any

import pytest

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.translator import Translator
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import count_lines, decode_lines, open_bytes
from nmtkit.text.subword import Subword
from tests.shared_data import HARD, hard_texts, needs_data
from tests.tiny import TRAIN_LINES, tiny_model
from tests.translating import translate

pytestmark = needs_data

NUM_ENTRIES = 275  # 3 special symbols, 256 bytes, and a few subwords
WIDE = TranslationConfig(batch_size=1024, max_tokens=100_000, max_source_length=64)


@pytest.fixture(scope="module")
def codec() -> TextCodec:
    vocabulary = Subword.train(TRAIN_LINES * 10, "bpe", NUM_ENTRIES, "tiny text")
    return TextCodec("en", "de", vocabulary, vocabulary, is_shared=True)


def translator(codec: TextCodec, config: TranslationConfig, warnings: list[str]) -> Translator:
    search = SearchConfig(beam=1, max_length_offset=1)
    recipe = TranslateRecipe(search=search, translation=config)
    return Translator([tiny_model(codec)], codec, recipe, warnings.append)


def read(name: str) -> list[str]:
    with open_bytes(HARD / name) as stream:
        return list(decode_lines(stream, name, lambda _: None))


@pytest.mark.parametrize("described", hard_texts(), ids=lambda described: described["file"])
def test_a_line_out_for_each_line_of_a_hard_file(
    codec: TextCodec, described: dict[str, Any]
) -> None:
    name = described["file"]
    lines = read(name)
    num_sentences = described.get("sentences", described["lf"])
    assert len(lines) == num_sentences
    answers = list(translate(translator(codec, WIDE, []), lines))
    assert len(answers) == len(lines) == count_lines(HARD / name)
    assert all("\n" not in answer and "\r" not in answer for answer in answers)


def test_the_hard_lines_are_answered_in_their_places(codec: TextCodec) -> None:
    lines = read("nasty-utf8.txt")
    warnings: list[str] = []
    answers = list(translate(translator(codec, WIDE, warnings), lines))
    assert answers[64] == answers[0] != ""
    assert all(answers[index] == "" for index in (1, 2, 3, 4))  # blank lines of several kinds
    lengths = [len(codec.encode_source(line)) for line in lines]
    long_lines = [n for n, length in enumerate(lengths, 1) if length > WIDE.max_source_length]
    assert len(long_lines) > 1
    first, others = warnings
    assert first.startswith(f"line {long_lines[0]}: ")
    assert others.startswith(f"and {len(long_lines) - 1} more lines were too long")
