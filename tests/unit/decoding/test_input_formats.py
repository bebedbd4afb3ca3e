import io
import json

import pytest

from nmtkit.decoding.input_formats import Request, read_requests
from nmtkit.errors import DataError
from nmtkit.text.lines import MAX_LINE_BYTES
from nmtkit.text.translations import ANSWER_KEYS, SCHEMA
from tests.messages import refuses
from tests.tiny import never_warn


def requests(*lines: str, input_format: str = "json", first_line: int = 1) -> list[Request]:
    """Return the requests of a text from a line on."""
    text = io.BytesIO("".join(f"{line}\n" for line in lines).encode())
    return [*read_requests(text, input_format, "x", never_warn, first_line)]


def test_lines_of_text_are_requests() -> None:
    assert requests('{"source": 1}', "", input_format="text") == [
        Request('{"source": 1}'),
        Request(""),
    ]


def test_objects_have_source_prefix_and_other_keys() -> None:
    lines = ['{"source": "a", "target_prefix": "b", "id": 1}', '{"source": "line\\nend"}']
    assert requests(*lines) == [
        Request("a", "b", {"id": 1}),
        Request("line\nend"),
    ]


def test_a_text_that_may_be_left_out_may_be_null() -> None:
    (request,) = requests('{"source": "a", "target_prefix": null, "id": null}')
    assert request == Request("a", "", {"id": None})


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("plain text", "JSON"),
        ("[" * 100_000, "JSON"),
        ('["source"]', "source"),
        ('{"text": "a"}', "source"),
        ('{"source": null}', "source"),
        ('{"source": "a", "target_prefix": 3}', "target_prefix"),
        (r'{"source": "A \ud800 car."}', r"source \ud800"),
        (r'{"source": "a", "target_prefix": "\udfff"}', "target_prefix"),
        ('{"source": "a", "id": NaN}', "JSON NaN"),
        ('{"source": "a", "id": -Infinity}', "JSON -Infinity"),
        ('{"source": "a", "id": 1e999}', "JSON 1e999"),
        (f'{{"source": "a", "id": {"1" * 1001}}}', "JSON 1001"),
        (f'{{"source": "{"a" * (MAX_LINE_BYTES + 1)}"}}', "source 1,048,576"),
        ('{"source": "a", "source": "b"}', "JSON source"),
    ],
)
def test_a_malformed_line_is_named(line: str, keys: str) -> None:
    text = io.BytesIO(b'{"source": "a"}\n' + line.encode())
    found = read_requests(text, "json", "standard input", never_warn)
    next(found)
    with refuses(DataError, f"input:2 {keys}"):
        next(found)


def test_an_error_counts_lines_from_the_first_one() -> None:
    with refuses(DataError, "x:8"):
        requests(*["no JSON"] * 6, '{"source": "a"}', "[]", first_line=7)


def test_keys_of_an_earlier_answer_are_not_passed_through() -> None:
    answer = dict.fromkeys(ANSWER_KEYS, "stale") | {"schema": SCHEMA}
    (request,) = requests(json.dumps({"id": 1, "source": "a", "target_prefix": "b"} | answer))
    assert request == Request("a", "b", {"id": 1})


def test_a_later_version_of_the_schema_is_refused() -> None:
    with refuses(DataError, "x:1 schema nmtkit-translations/2 1"):
        requests('{"source": "a", "schema": "nmtkit-translations/2"}')
