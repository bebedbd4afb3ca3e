"""Marks: text never has them, and everything else of a vocabulary stays as without them."""

from collections.abc import Callable
from functools import cache
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.symbols import EOS_ID
from nmtkit.text.marks import is_marked, mark_names
from nmtkit.text.subword import SentencePieceVocabulary, Subword
from nmtkit.text.vocabulary import Steps
from tests.unit.text.test_subword import marian_of

LINES = ["the cat sat on a mat. 12 \u732b\u304c\u5ea7\u308b"] * 20
NAMES = st.sampled_from([*mark_names(2), "\u2581"])
TEXT = st.lists(st.text() | NAMES | st.sampled_from(LINES)).map("".join)


@cache
def subword() -> Subword:
    return Subword.train(LINES, "bpe", 300, "xx")


KINDS: dict[str, Callable[[], SentencePieceVocabulary]] = {
    "sentencepiece": subword,
    "steps": lambda: subword().with_steps(Steps(unescape=True, normalize="nfc")),
    "marian": lambda: marian_of(subword()),
}


@pytest.mark.parametrize("kind", KINDS)
@given(line=TEXT)
def test_a_line_has_the_ids_that_it_has_without_marks(kind: str, line: str) -> None:
    plain = KINDS[kind]()
    marked = plain.with_marks(2)
    ids = marked.encode(line)
    assert ids == plain.encode(line)
    assert not is_marked(ids, marked.marks)
    assert marked.texts(ids) == plain.texts(ids)


@pytest.mark.parametrize("kind", KINDS)
@given(line=TEXT, places=st.lists(st.integers(0, 20)))
def test_marks_have_no_text(kind: str, line: str, places: list[int]) -> None:
    vocabulary = KINDS[kind]().with_marks(2)
    assert vocabulary.marks is not None
    ids = vocabulary.encode(line)
    marks = [index for index in sorted(vocabulary.marks.ids) if index != vocabulary.marks.term]
    with_marks = [*ids]
    for number, place in enumerate(places):
        with_marks.insert(place, marks[number % len(marks)])
    assert vocabulary.decode(with_marks) == vocabulary.decode(ids)
    assert not any(vocabulary.texts(marks))
    kept = vocabulary.marks.places_of_text(with_marks)
    assert [with_marks[place] for place in kept] == ids


@pytest.mark.parametrize("kind", KINDS)
def test_more_marks_follow_those_that_are_there(kind: str) -> None:
    few = KINDS[kind]().with_marks(2)
    more = few.with_marks(3)
    assert more.data == KINDS[kind]().with_marks(3).data
    assert few.with_marks(2).data == few.data
    assert few.marks
    assert more.marks
    assert [more.piece(index) for index in sorted(more.marks.ids)] == mark_names(3)
    with_token = more.with_tokens(["dog"])
    assert with_token.marks == more.marks
    assert KINDS[kind]().marks is None
    assert not is_marked([EOS_ID], None)


def test_target_terms_are_no_text_of_the_line() -> None:
    vocabulary = subword().with_marks(1)
    marks = vocabulary.marks
    assert marks
    cat, mat = vocabulary.encode("the cat"), vocabulary.encode("mat")
    ids = [*cat, marks.term, *mat, marks.term_end, *mat, EOS_ID]
    kept = [ids[place] for place in marks.places_of_text(ids)]
    assert kept == [*cat, *mat, EOS_ID]
    assert len({*chain(marks.openings, marks.closings, marks.empties)}) == 3 * len(marks) == 3
