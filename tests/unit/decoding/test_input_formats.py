import io
import json

import pytest

from nmtkit.decoding.input_formats import Request, read_requests
from nmtkit.errors import DataError
from nmtkit.text.lines import MAX_LINE_BYTES
from nmtkit.text.translations import ANSWER_KEYS, SCHEMA
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
    ("line", "what"),
    [
        ("plain text", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('["source"]', 'not an object with a text as "source"'),
        ('{"text": "a"}', 'not an object with a text as "source"'),
        ('{"source": null}', 'not an object with a text as "source"'),
        ('{"source": "a", "target_prefix": 3}', '"target_prefix" is not a text'),
        (
            r'{"source": "A \ud800 car."}',
            r'"source" holds half a character \(\\ud800\); write both',
        ),
        (r'{"source": "a", "target_prefix": "\udfff"}', r'"target_prefix" holds half a character'),
        ('{"source": "a", "id": NaN}', r"cannot be read as JSON \(NaN is not a finite number\)"),
        ('{"source": "a", "id": -Infinity}', r"cannot be read as JSON \(-Infinity is not a finite"),
        (
            '{"source": "a", "id": 1e999}',
            r"cannot be read as JSON \(1e999 is not a finite number\)",
        ),
        (
            f'{{"source": "a", "id": {"1" * 1001}}}',
            r"cannot be read as JSON \(a number of 1001 digits;",
        ),
        (
            f'{{"source": "{"a" * (MAX_LINE_BYTES + 1)}"}}',
            '"source" has more than 1,048,576 characters; break it into several lines',
        ),
        ('{"source": "a", "source": "b"}', r'cannot be read as JSON \(the key "source" is twice'),
    ],
)
def test_a_malformed_line_is_named(line: str, what: str) -> None:
    text = io.BytesIO(b'{"source": "a"}\n' + line.encode())
    found = read_requests(text, "json", "standard input", never_warn)
    next(found)
    with pytest.raises(DataError, match=f"^standard input:2: {what}"):
        next(found)


def test_an_error_counts_lines_from_the_first_one() -> None:
    with pytest.raises(DataError, match=r"^x:8: not an object"):
        requests(*["no JSON"] * 6, '{"source": "a"}', "[]", first_line=7)


def test_keys_of_an_earlier_answer_are_not_passed_through() -> None:
    answer = dict.fromkeys(ANSWER_KEYS, "stale") | {"schema": SCHEMA}
    (request,) = requests(json.dumps({"id": 1, "source": "a", "target_prefix": "b"} | answer))
    assert request == Request("a", "b", {"id": 1})


def test_a_later_version_of_the_schema_is_refused() -> None:
    with pytest.raises(DataError, match=r'^x:1: "schema" is nmtkit-translations/2, and this nmtk'):
        requests('{"source": "a", "schema": "nmtkit-translations/2"}')
