import json

import pytest

from nmtkit.errors import DataError
from nmtkit.reporting.attention.pairs import read_pairs
from nmtkit.reporting.attention.sentence_json import json_line
from nmtkit.reporting.attention.sentences import Sentence
from tests.unit.reporting.attention.scenes import scene


def pairs(lines: list[str], input_format: str = "text") -> list[tuple[str, str | None]]:
    return [(pair.source, pair.target) for pair in read_pairs(lines, input_format, "in")]


def test_a_line_is_a_source_or_a_source_with_its_translation() -> None:
    assert pairs(["a b", "a\tA", "a\t", "", "\tA"]) == [
        ("a b", None),
        ("a", "A"),
        ("a", ""),
        ("", None),
        ("", "A"),
    ]


def test_an_object_is_what_translate_writes() -> None:
    lines = [
        json.dumps({"source": "a\tb", "translation": "A", "score": -0.5}),
        json.dumps({"id": 7, "source": "a"}),
    ]
    assert pairs(lines, "json") == [("a\tb", "A"), ("a", None)]


def test_an_object_is_what_attention_writes() -> None:
    (view,) = scene().views[:1]
    line = json_line(Sentence("a", None, (view,)))
    assert pairs([line], "json") == [("a", None)]


@pytest.mark.parametrize(
    ("line", "input_format", "told"),
    [
        ("a\tA\tb", "text", "in, line 2: 2 tabs; write a source, or a source, one tab and its"),
        ("a", "json", "in, line 2: not JSON to read"),
        ('{"translation": "A"}', "json", 'in, line 2: not an object with a text as "source"; add'),
        ('{"source": "a", "translation": 1}', "json", '"translation" is not a text; mend it, or'),
        ('{"source": "a", "translation": "\\ud800"}', "json", '"translation" holds half a'),
    ],
)
def test_a_line_that_is_neither_is_named(line: str, input_format: str, told: str) -> None:
    first = "a" if input_format == "text" else '{"source": "a"}'
    with pytest.raises(DataError) as caught:
        pairs([first, line], input_format)
    assert told in str(caught.value)


def test_no_line_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match="in: no line in it; give a source a line"):
        pairs([])


def test_no_line_is_read_before_it_is_asked_for() -> None:
    lines = iter(["a", "b"])
    next(read_pairs(lines, "text", "in"))
    assert list(lines) == ["b"]
