"""Vocabularies with further tokens, compared with those without them."""

from functools import cache

import pytest
import sentencepiece
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Algorithm, Subword
from nmtkit.text.subword_sampler import SubwordSampler
from tests.messages import refuses
from tests.unit.text.test_subword import (
    SPACE_SYMBOL,
    TEXT,
    corpus,
    marian_of,
    trained_elsewhere,
)

ALGORITHMS: list[Algorithm] = ["bpe", "unigram"]
KINDS = ["bpe", "unigram", "marian"]
MARKS = ["<bt>", "(NP", "badder", "\ufb01", "\u00bd", ">>", "\u2581", "<0x41>", "</s>"]
TOKENS = st.lists(
    (st.sampled_from(MARKS) | st.text(min_size=1))
    .map(lambda text: "".join(text.split()))
    .filter(bool),
    max_size=4,
)


@cache
def vocabulary(kind: str) -> Subword | MarianVocabulary:
    if kind in ALGORITHMS:
        return Subword.train(corpus(), "bpe" if kind == "bpe" else "unigram", 320, "x")
    subword = vocabulary("unigram")
    assert isinstance(subword, Subword)
    return marian_of(subword)


def extended(kind: str, tokens: list[str]) -> Subword | MarianVocabulary:
    try:
        return vocabulary(kind).with_tokens(tokens)
    except DataError:
        reject()


def entries(one: Subword | MarianVocabulary) -> list[str]:
    return [one.piece(index) for index in range(one.size)]


@pytest.mark.parametrize("kind", KINDS)
@given(tokens=TOKENS)
def test_tokens_are_one_id_each_after_those_of_the_others(kind: str, tokens: list[str]) -> None:
    old, new = vocabulary(kind), extended(kind, tokens)
    assert entries(new)[: old.size] == entries(old)
    assert new.size <= old.size + len({*tokens})
    for token in tokens:
        (index,) = new.encode(token)
        assert new.encode(f"ba {token} ba") == [*new.encode("ba"), index, *new.encode("ba")]
        assert index not in new.unknown_ids
    assert new.with_tokens(tokens).data == new.data


@pytest.mark.parametrize("kind", KINDS)
@given(tokens=TOKENS, line=TEXT)
def test_text_without_the_tokens_keeps_its_ids(kind: str, tokens: list[str], line: str) -> None:
    old, new = vocabulary(kind), extended(kind, tokens)
    added = [piece.replace(SPACE_SYMBOL, " ") for piece in entries(new)[old.size :]]
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary("bpe").data)
    text = processor.normalize(line).replace(SPACE_SYMBOL, " ")
    assume(not any(one in text or one in line.replace(SPACE_SYMBOL, " ") for one in added))
    assert new.encode(line) == old.encode(line)


@pytest.mark.parametrize("kind", KINDS)
@given(tokens=TOKENS, data=st.data())
def test_decoding_gives_the_normalized_line(
    kind: str, tokens: list[str], data: st.DataObject
) -> None:
    new = extended(kind, tokens)
    words = st.sampled_from([*tokens, *corpus()[0].split()]) | TEXT
    line = " ".join(data.draw(st.lists(words)))
    assert new.decode(new.encode(line)) == new.normalize(line)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("token", "keys"),
    [
        ("\u200b", r"\u200b"),
        ("a\0b", r"a\x00b"),
        (8000 * "x", "8,003 SentencePiece's"),
    ],
)
def test_a_token_that_cannot_be_an_entry_is_named(kind: str, token: str, keys: str) -> None:
    with refuses(DataError, keys):
        vocabulary(kind).with_tokens(["<bt>", token])


def test_a_model_that_puts_no_space_before_a_line_cannot_have_tokens() -> None:
    """Without its dummy prefix, the first word of a line would not be the token."""
    model = Subword(trained_elsewhere(corpus(), 60, add_dummy_prefix=False), "x")
    with refuses(DataError, "<bt>"):
        model.with_tokens(["<bt>"])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_subword_sampling_keeps_the_tokens(algorithm: Algorithm) -> None:
    new = extended(algorithm, ["<bt>", "balegar"])
    assert isinstance(new, Subword)
    ids = new.encode(f"<bt> balegar {corpus()[0]}")
    sampler = SubwordSampler(new.data, alpha=0.1)
    drawn = [sampler.sample(ids, seed) for seed in range(20)]
    assert all(one[:2] == ids[:2] for one in drawn)
    assert len({tuple(one) for one in drawn}) > 1
