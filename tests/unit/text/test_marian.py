"""Vocabularies with ids from a list, checked against SentencePiece and the list."""

from functools import cache
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DamagedError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword
from tests.messages import refuses
from tests.unit.text.test_subword import check_word_ranges, marian_of

LINES = ["the cat sat on the mat", "the dog ran to the cat", "dogs and cats ran and sat"]
ENGLISH, FRENCH = ">>eng<<", ">>fra<<"
SYMBOLS = ["<unk>", "<pad>", "</s>"]
SPICE = ["<pad>", "</s>", "<unk>", "<s>", "<<", ">>", ENGLISH, "\u2581", "\u2603", *LINES]
TEXT = st.lists(st.one_of(st.text(), st.sampled_from(SPICE))).map("".join)


@cache
def subword(lines: tuple[str, ...] = tuple(LINES)) -> Subword:
    return Subword.train(lines, "bpe", 290, "x")


@cache
def vocabulary() -> MarianVocabulary:
    """Return a vocabulary whose list has its model's pieces in reverse, without each seventh."""
    pieces = [subword().piece(index) for index in range(EOS_ID + 1, subword().size)]
    known = [piece for number, piece in enumerate(reversed(pieces)) if number % 7]
    return MarianVocabulary(subword().data, [*SYMBOLS, *known, "<s>", ENGLISH, FRENCH], "x")


def ids_of_list() -> dict[str, int]:
    return {vocabulary().piece(index): index for index in range(vocabulary().size)}


@given(TEXT)
def test_ids_are_those_of_the_list(line: str) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=subword().data)
    language = next((one for one in (ENGLISH, FRENCH) if line.startswith(one)), "")
    pieces = [*([language] if language else []), *processor.encode_as_pieces(line[len(language) :])]
    assert vocabulary().encode(line) == [ids_of_list().get(piece, UNK_ID) for piece in pieces]


@given(TEXT)
def test_text_never_becomes_the_begin_or_end_symbol(line: str) -> None:
    assert not {BOS_ID, EOS_ID}.intersection(vocabulary().encode(line))


@given(TEXT)
def test_with_all_pieces_a_line_decodes_to_the_normalized_line(line: str) -> None:
    complete = marian_of(subword())
    assert complete.decode(complete.encode(line)) == complete.normalize(line)
    assert complete.normalize(line) == subword().normalize(line)


def test_a_language_counts_at_the_beginning_and_if_it_is_in_the_list() -> None:
    cat = vocabulary().encode("the cat")
    assert vocabulary().encode(f"{FRENCH} the cat") == [ids_of_list()[FRENCH], *cat]
    assert ids_of_list()[FRENCH] not in vocabulary().encode(f"the {FRENCH}")
    unlisted = vocabulary().encode(">>deu<< the cat")
    assert len(unlisted) > len(cat) + 1
    assert vocabulary().normalize(f"{FRENCH} the  cat") == "the cat"


def test_bytes_and_the_unknown_symbol_count_as_unknown() -> None:
    listed = {piece for piece in ids_of_list() if piece.startswith("<0x")}
    assert 0 < len(listed) < 256
    assert vocabulary().unknown_ids == {UNK_ID, *(ids_of_list()[piece] for piece in listed)}


def codec() -> TextCodec:
    """Return a codec of one list for two models, which segment text differently."""
    other = subword(tuple(line.upper() for line in LINES))
    pieces = dict.fromkeys(
        model.piece(index) for model in (subword(), other) for index in range(3, model.size)
    )
    return TextCodec(
        "en",
        "de",
        MarianVocabulary(subword().data, [*SYMBOLS, *pieces], "source"),
        MarianVocabulary(other.data, [*SYMBOLS, *pieces], "target"),
        is_shared=True,
    )


@given(TEXT)
def test_words_of_tokens_follow_the_decoded_line(line: str) -> None:
    check_word_ranges(vocabulary(), vocabulary().encode(line))


def test_a_codec_keeps_the_models_of_both_sides(tmp_path: Path) -> None:
    codec().save(tmp_path)
    loaded = TextCodec.load(tmp_path)
    assert loaded.is_shared
    assert loaded.fingerprint == codec().fingerprint
    for line in (*LINES, "THE CAT", "\u2603"):
        assert loaded.encode_source(line) == codec().encode_source(line)
        assert loaded.encode_target(line) == codec().encode_target(line)
    assert loaded.encode_source("the cat") != loaded.encode_target("the cat")


def test_pieces_that_only_the_other_side_has_are_spelled_as_well() -> None:
    ids = codec().encode_source("the cat sat")
    assert codec().decode_target(ids) == "the cat sat"


def test_codecs_with_other_lists_have_other_fingerprints() -> None:
    pieces = [vocabulary().piece(index) for index in range(vocabulary().size)]
    swapped = MarianVocabulary(subword().data, [*pieces[:-2], *pieces[:-3:-1]], "x")
    first, other = (
        TextCodec("en", "de", one, one, is_shared=True) for one in (vocabulary(), swapped)
    )
    assert first.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("name", "content", "keys"),
    [
        ("source.json", None, "source.json"),
        ("source.json", b"[", "source.json JSON"),
        ("target.json", b'{"a": 1}', "target.json"),
        ("target.json", b'["a", "b", "a", "c"]', "target.json"),
        ("target.json", b'["a", "b"]', "target.json"),
        ("target.json", b'["a", "b", "c", 4]', "target.json"),
        ("target.model", b"x", "target.model SentencePiece"),
        ("target.model", None, "target.model"),
    ],
)
def test_damage_is_named(name: str, content: bytes | None, keys: str, tmp_path: Path) -> None:
    codec().save(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with refuses(DamagedError, keys):
        TextCodec.load(tmp_path)
