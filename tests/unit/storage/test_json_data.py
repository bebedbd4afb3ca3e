"""What is encoded is decoded again; a wrong value is named by its path."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.storage.json_data import JsonError, decode, decode_text, encode


@dataclass(frozen=True)
class Item:
    line: int
    text: str


@dataclass(frozen=True)
class Whole:
    score: float
    is_best: bool
    kind: Literal["words", "subwords", 1, None]
    maybe: Item | None
    either: int | str | list[bool]
    items: tuple[Item, ...]
    rows: Sequence[list[float]]
    tables: Mapping[str, dict[str, Item]]
    nothing: None = None
    anything: Any = 0
    tokens: list[str] = field(default_factory=lambda: ["a"])


texts, numbers = st.text(), st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**63) + 1, 2**63 - 1)
items = st.builds(Item, integers, texts)
wholes = st.builds(
    Whole,
    score=numbers,
    is_best=st.booleans(),
    kind=st.sampled_from(["words", "subwords", 1, None]),
    maybe=st.none() | items,
    either=integers | texts | st.lists(st.booleans()),
    items=st.lists(items).map(tuple),
    rows=st.lists(st.lists(numbers)),
    tables=st.dictionaries(texts, st.dictionaries(texts, items)),
    nothing=st.none(),
    anything=st.recursive(
        st.none() | st.booleans() | st.integers() | numbers | texts,
        lambda one: st.lists(one) | st.dictionaries(texts, one),
        max_leaves=3,
    ),
    tokens=st.lists(texts),
)


@given(wholes)
def test_what_is_encoded_is_decoded_to_the_same(whole: Whole) -> None:
    assert decode_text(Whole, json.dumps(encode(whole), allow_nan=False)) == whole


WHOLE = Whole(
    0.5, True, "words", None, 7, (Item(1, "a"), Item(2, "b")), [[1.0]], {"a": {"b": Item(3, "c")}}
)


def test_fields_with_a_default_may_be_missing() -> None:
    values = encode(WHOLE)
    for name in ("nothing", "anything", "tokens"):
        del values[name]
    assert decode(Whole, values) == WHOLE


def test_what_later_versions_write_besides_is_ignored() -> None:
    assert decode(Whole, {**encode(WHOLE), "more": 1}) == WHOLE
    with pytest.raises(JsonError, match=r'^"text" is missing$'):
        decode(Item, {"line": 1, "more": 1})


def test_an_integer_is_a_number_and_becomes_a_float() -> None:
    assert [type(one) for one in decode(list[float], [3, 0.5])] == [float, float]


def changed(value: Any, place: Sequence[int | str], new: object) -> Any:
    """Return a JSON value with another one at a place."""
    if not place:
        return new
    first, *rest = place
    copy = dict(value) if isinstance(value, dict) else [*value]
    old = copy[first] if isinstance(copy, list) else copy.get(first)  # type: ignore[index]
    copy[first] = changed(old, rest, new)  # type: ignore[index]
    return copy


WRONG: list[tuple[list[int | str], object, str, str]] = [
    ([], [], "", "not an object"),
    (["score"], "1", "score", "not a number"),
    (["score"], True, "score", "not a number"),
    (["score"], None, "score", "not a number"),
    (["score"], math.inf, "score", "not a number"),
    (["score"], math.nan, "score", "not a number"),
    (["score"], -(10**400), "score", "not a number"),
    (["is_best"], 1, "is_best", "not true or false"),
    (["kind"], "letters", "kind", 'not "words" or "subwords" or 1 or null'),
    (["kind"], True, "kind", 'not "words" or "subwords" or 1 or null'),
    (["kind"], ["words"], "kind", 'not "words" or "subwords" or 1 or null'),
    (["maybe"], "a", "maybe", "not null or an object"),
    (["maybe"], {"line": 1}, "maybe.text", "missing"),
    (["either"], 1.0, "either", "not a whole number or a text or a list"),
    (["either"], [True, 1], "either[1]", "not true or false"),
    (["items"], {}, "items", "not a list"),
    (["items", 1], None, "items[1]", "not an object"),
    (["items", 1, "line"], True, "items[1].line", "not a whole number"),
    (["items", 1, "line"], 1.0, "items[1].line", "not a whole number"),
    (["items", 1, "line"], 2**63, "items[1].line", "not a whole number of 64 bits"),
    (["items", 0, "text"], 1, "items[0].text", "not a text"),
    (["tables", "x\n"], 0, "tables.x\\n", "not an object"),
    (["rows", 0, 0], "x", "rows[0][0]", "not a number"),
    (["tables"], [], "tables", "not an object"),
    (["tables", "a", "b"], 0, "tables.a.b", "not an object"),
    (["nothing"], 0, "nothing", "not null"),
    (["tokens"], None, "tokens", "not a list"),
]


@pytest.mark.parametrize(("place", "value", "path", "problem"), WRONG)
def test_a_wrong_value_is_named_by_its_path(
    place: list[int | str], value: object, path: str, problem: str
) -> None:
    with pytest.raises(JsonError) as caught:
        decode(Whole, changed(encode(WHOLE), place, value))
    assert (caught.value.path, caught.value.problem) == (path, problem)
    assert str(caught.value) == (f'"{path}" is {problem}' if path else problem)


@pytest.mark.parametrize("name", ["score", "tables", "either", "maybe"])
def test_a_missing_value_is_named(name: str) -> None:
    values = encode(WHOLE)
    del values[name]
    with pytest.raises(JsonError) as caught:
        decode(Whole, values)
    assert (caught.value.path, caught.value.problem) == (name, "missing")


@pytest.mark.parametrize("text", ["", "{", b"\xff", "[" * 100_000, "1" * 5000])
def test_a_text_that_is_not_json_is_an_error(text: str | bytes) -> None:
    with pytest.raises(JsonError, match=r"^not JSON \(.*\)$"):
        decode_text(Whole, text)


def test_numbers_that_are_not_finite_become_null_and_infinite_where_asked_for() -> None:
    values = encode({"a": [math.nan, -math.inf, np.float32("inf")], "b": math.inf, "c": 0.5})
    assert values == {"a": [None, None, None], "b": None, "c": 0.5}
    assert decode(list[float], values["a"], null_is_inf=True) == [math.inf] * 3
    assert decode(dict[str, Any], values, null_is_inf=True) == values
    with pytest.raises(JsonError):
        decode(int, None, null_is_inf=True)


def test_null_stays_null_where_it_is_a_value_of_its_own() -> None:
    values: list[float | None] = decode(list[float | None], [None, 1.0], null_is_inf=True)
    assert values == [None, 1.0]


def test_numpy_and_nested_values_are_encoded() -> None:
    values = {
        "array": np.array([[1.5, np.nan]]),
        "numbers": (np.int64(3), np.float32(0.5), np.float64(0.5), np.bool_(True)),
        "items": [Item(1, "a")],
    }
    assert json.loads(json.dumps(encode(values), allow_nan=False)) == {
        "array": [[1.5, None]],
        "numbers": [3, 0.5, 0.5, True],
        "items": [{"line": 1, "text": "a"}],
    }
