"""Lines as ids with marks: the text keeps its segmentation, and a copy is read as the line."""

from functools import cache

import pytest
from hypothesis import assume, given

from nmtkit.spans.marked_lines import MarkedLines, Marking
from nmtkit.spans.markup import MarkedLine, read_markup
from nmtkit.spans.writing import write_markup
from nmtkit.symbols import EOS_ID
from nmtkit.text.subword import Subword
from nmtkit.text.words import words_of
from tests.unit.spans.lines import WORDS, marked_lines, tidy_lines

LINES = [" ".join(WORDS), "Hello {name}, see 12 (of 13) files."] * 20


@cache
def vocabulary() -> Subword:
    return Subword.train(LINES, "bpe", 400, "xx").with_marks(30)


@cache
def under_test() -> MarkedLines:
    return MarkedLines(vocabulary(), vocabulary())


def written(line: MarkedLine, *parts: str) -> tuple[Marking, str]:
    """Return a line with marks, and what is read of its own ids as a translation."""
    spans = [(start := line.text.index(one), start + len(one)) for one in parts]
    marking = under_test().write(line, spans, {})
    assert marking is not None
    reading = under_test().read(marking, marking.ids[:-1], line)
    return marking, write_markup(line, reading.text, (), reading.places, reading.spans)


@given(marked_lines() | tidy_lines())
def test_without_marks_a_line_has_the_ids_of_its_text(line: str) -> None:
    read = read_markup(line, "xml")
    marking = under_test().write(read, [], {})
    assert marking is not None
    kept = [marking.ids[n] for n in under_test().source_marks.places_of_text(marking.ids)]
    assert kept == [*vocabulary().encode(read.text), EOS_ID]


@given(tidy_lines())
def test_a_line_that_is_copied_keeps_its_tags(line: str) -> None:
    read = read_markup(line, "xml")
    assume(vocabulary().normalize(read.text) == read.text)
    count = len(words_of(read.text))
    links = [(number, number) for number in range(count)]
    assert written(read)[1] == write_markup(read, read.text, links, {})


@pytest.mark.parametrize(
    ("line", "parts", "pieces"),
    [
        (
            "<b>Save</b> <x/>the (<i>file</i>).",
            [],
            "<mark:1>Save</mark:1><mark:2/>the(<mark:3>file</mark:3>).",
        ),
        (
            "Save {name}, <b>the {0}</b>",
            ["{name}", "{0}"],
            "Save<mark:1/>,<mark:2>the<mark:3/></mark:2>",
        ),
        ("{name}{0}", ["{name}", "{0}"], "<mark:1/><mark:2/>"),
        ("<a><b>Save</b></a><c><d/></c>", [], "<mark:1><mark:2>Save</mark:2></mark:1><mark:3/>"),
        ('Save <c translate="no">x &lt;</c> 42', ["x <"], "Save<mark:1/>42"),
        ("\u6211<b>\u7528\u6237</b>\u6211", [], "\u6211<mark:1>\u7528\u6237</mark:1>\u6211"),
    ],
)
def test_marks_are_next_to_the_words_of_their_tags(
    line: str, parts: list[str], pieces: str
) -> None:
    marking, copy = written(read_markup(line, "xml"), *parts)
    texts = [
        vocabulary().piece(one) if one in under_test().source_marks.ids else text
        for one, text in zip(marking.ids, vocabulary().texts(marking.ids), strict=True)
    ]
    assert "".join("".join(texts).split()) == pieces
    assert copy == line


def test_a_term_follows_its_words() -> None:
    line = MarkedLine("the file, Save", (), (), is_escaped=False)
    marking = under_test().write(line, [], {(4, 8): "Save"})
    assert marking is not None
    marks = under_test().source_marks
    file, save = vocabulary().encode("the file"), vocabulary().encode("Save")
    assert marking.ids[: len(file) + len(save) + 2] == [*file, marks.term, *save, marks.term_end]
    assert marking.num_tokens == 0


def test_what_cannot_be_marked_is_none() -> None:
    many = read_markup("<b>x</b>" * 31, "xml")
    inside = read_markup("{na<b>m</b>e}", "xml")
    deep = read_markup("<b>" * 9999 + "x" + "</b>" * 9999, "xml")
    assert under_test().write(many, [], {}) is None
    assert under_test().write(inside, [(0, 6)], {}) is None
    assert under_test().write(deep, [], {}) is None


@given(marked_lines())
def test_missing_marks_are_at_the_end(line: str) -> None:
    read = read_markup(line, "xml")
    marking = under_test().write(read, [], {})
    assume(marking is not None)  # a line may have more tags than there are marks
    assert marking is not None
    reading = under_test().read(marking, vocabulary().encode("Save the file"), read)
    assert reading.text == "Save the file"
    assert set(reading.spans) <= {(13, 13)}
