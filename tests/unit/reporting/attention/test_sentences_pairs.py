import json

import pytest

from nmtkit.errors import DataError
from nmtkit.reporting.attention.sentences import Sentence, json_line, read_pairs
from tests.messages import refuses
from tests.unit.reporting.attention.builders import example_sentence


def pairs(lines: list[str], input_format: str = "text") -> list[tuple[str, str | None]]:
    return [(pair.source, pair.target) for pair in read_pairs(lines, input_format, "in")]


def test_a_line_is_a_source_with_or_without_translation() -> None:
    assert pairs(["a b", "a\tA", "a\t", "", "\tA"]) == [
        ("a b", None),
        ("a", "A"),
        ("a", ""),
        ("", None),
        ("", "A"),
    ]


def test_objects_of_translate_are_read() -> None:
    lines = [
        json.dumps({"source": "a\tb", "translation": "A", "score": -0.5}),
        json.dumps({"id": 7, "source": "a"}),
    ]
    assert pairs(lines, "json") == [("a\tb", "A"), ("a", None)]


def test_objects_of_attention_are_read() -> None:
    (attention,) = example_sentence().attentions[:1]
    line = json_line(Sentence("a", None, (attention,)))
    assert pairs([line], "json") == [("a", None)]


@pytest.mark.parametrize(
    ("line", "input_format", "keys"),
    [
        ("a\tA\tb", "text", "in:2 2"),
        ("a", "json", "in:2 JSON"),
        ('{"translation": "A"}', "json", "in:2 source"),
        ('{"source": "a", "translation": 1}', "json", "translation"),
        ('{"source": "a", "translation": "\\ud800"}', "json", "translation"),
    ],
)
def test_a_malformed_line_is_refused(line: str, input_format: str, keys: str) -> None:
    first = "a" if input_format == "text" else '{"source": "a"}'
    with refuses(DataError, keys):
        pairs([first, line], input_format)


def test_empty_input_is_an_error() -> None:
    with refuses(DataError, "in"):
        pairs([])


def test_lines_are_read_on_demand() -> None:
    lines = iter(["a", "b"])
    next(read_pairs(lines, "text", "in"))
    assert list(lines) == ["b"]


def test_a_json_line_may_name_its_target_language() -> None:
    lines = ['{"source": "a", "target_lang": "nl"}', '{"source": "a"}']
    assert [one.target_lang for one in read_pairs(lines, "json", "in")] == ["nl", ""]
