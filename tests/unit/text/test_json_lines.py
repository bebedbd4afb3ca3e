"""Malformed lines are in tests/unit/decoding/test_formats.py, as requests."""

import json

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.text.json_lines import check_text, read_object, write_object
from nmtkit.text.lines import MAX_LINE_BYTES
from tests.messages import refuses

KEYS = ("source", "target_prefix")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_is_written_is_read_again(values: dict[str, object]) -> None:
    written = {**values, "source": "a", "target_prefix": "b"}
    line = write_object(written)
    assert "\n" not in line
    assert read_object(line, KEYS, "x:1") == written


NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_numbers_are_written_as_they_were_read(numbers: list[str]) -> None:
    listed = ", ".join(numbers)
    line = f'{{"source": "a", "id": {numbers[0]}, "more": [[{listed}], {{"x": {numbers[-1]}}}]}}'
    values = read_object(line, KEYS, "x:1")
    assert values == json.loads(line)
    assert write_object(values) == line


def test_nested_lists_are_written_however_deep_they_can_be_read() -> None:
    line = f'{{"source": "a", "deep": {"[" * 600}1.5{"]" * 600}}}'
    assert write_object(read_object(line, KEYS, "x:1")) == line


def test_halves_of_characters_remain_escapes() -> None:
    line = write_object({"source": "\u00e4", "other": "\ud800"})
    assert line.encode() == b'{"source": "\xc3\xa4", "other": "\\ud800"}'
    assert read_object(line, KEYS, "x:1") == json.loads(line)


def test_texts_that_cannot_be_used_are_named() -> None:
    with refuses(DataError, r"x:3 a \udc80"):
        check_text("\udc80", "a", "x:3")
    with refuses(DataError, "x:3 a 1,048,576"):
        check_text("a" * (MAX_LINE_BYTES + 1), "a", "x:3")
    check_text("a" * MAX_LINE_BYTES, "a", "x:3")
