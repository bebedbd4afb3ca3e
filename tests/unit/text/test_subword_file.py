"""Model files, checked against SentencePiece, which reads them by itself."""

from functools import cache

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.text.subword import Algorithm, Subword
from nmtkit.text.subword_file import SubwordFile, with_denormalizer, with_pieces

LINES = ("the cat sat on the mat", "the dog ran to the cat", "dogs and cats ran and sat")
ALGORITHMS: list[Algorithm] = ["bpe", "unigram"]


@cache
def model(algorithm: Algorithm) -> bytes:
    return Subword.train(LINES, algorithm, 277, "x").data


def processor(data: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=data)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pieces_and_scores_are_those_that_sentencepiece_reads(algorithm: Algorithm) -> None:
    contents, read = SubwordFile.of(model(algorithm)), processor(model(algorithm))
    assert contents.algorithm == algorithm
    assert contents.scores == [read.get_score(index) for index in range(read.get_piece_size())]
    for index, text in enumerate(contents.texts):
        is_special = read.is_control(index) or read.is_unknown(index) or read.is_byte(index)
        assert text == (None if is_special else read.id_to_piece(index))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(
    pieces=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).map("\u2581+{}".format),
        unique=True,
        max_size=4,
    )
)
def test_added_pieces_follow_the_others(algorithm: Algorithm, pieces: list[str]) -> None:
    before, after = processor(model(algorithm)), processor(with_pieces(model(algorithm), pieces))
    size = before.get_piece_size()
    assert [after.id_to_piece(index) for index in range(after.get_piece_size())] == [
        *(before.id_to_piece(index) for index in range(size)),
        *pieces,
    ]
    texts = SubwordFile.of(with_pieces(model(algorithm), pieces)).texts
    assert texts == [*SubwordFile.of(model(algorithm)).texts, *(None for _ in pieces)]


def test_a_long_piece_has_a_length_of_several_bytes() -> None:
    piece = "\u2581" + 3_000 * "x"
    extended = processor(with_pieces(model("bpe"), [piece]))
    assert extended.id_to_piece(277) == piece


def test_rules_of_decoding_are_added() -> None:
    rules = sentencepiece.SentencePieceNormalizer(
        norm_map=[("c", "k")], add_dummy_prefix=False, escape_whitespaces=False
    ).serialized_normalizer_spec()
    extended = processor(with_denormalizer(model("bpe"), rules))
    assert extended.decode(extended.encode("the cat")) == "the kat"
