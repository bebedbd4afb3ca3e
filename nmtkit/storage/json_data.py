"""JSON as our dataclasses: values decoded by type, and encoded.

An error names the path of what is wrong, such as `samples[2].line`. JSON has no number that is not
finite: `encode` makes it null, and `decode` reads null as infinite where the format says so.
`nmtkit.text.json_lines` has objects of users, which are written again as they were read.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from nmtkit.units import printable

Value = TypeVar("Value")

_LARGEST_INT = 2**63 - 1
_NAMES = {str: "a text", bool: "true or false", int: "a whole number", NoneType: "null"}


class JsonError(ValueError):
    """A text that is not JSON, or a value that is not of the wanted type.

    Attributes:
        problem: what is wrong, such as "not a text" or "missing".
        path: where, such as `samples[2].line`; "" = the whole value.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f'"{path}" is {problem}' if path else problem)
        self.problem, self.path = problem, path

    def inside(self, place: int | str) -> "JsonError":
        """Return the error of the list or object that has the wrong value at a place."""
        outer = f"[{place}]" if isinstance(place, int) else printable(place)
        separator = "." if self.path and not self.path.startswith("[") else ""
        return JsonError(self.problem, f"{outer}{separator}{self.path}")


def decode_text(kind: type[Value], data: str | bytes) -> Value:
    """Decode a JSON text as `decode` does; JsonError also if it is not JSON."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise JsonError("not JSON (nested too deeply)") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise JsonError(f"not JSON ({error})") from None
    except ValueError:  # of Python's limit, which advises to raise it
        raise JsonError("not JSON (a number has too many digits)") from None
    return decode(kind, value)


def decode(kind: type[Value], value: object, null_is_inf: bool = False) -> Value:
    """Build a value of a type from a JSON value.

    Args:
        kind: a dataclass, whose fields are of such types, too; int, float, str, bool, None, Any; a
            list, tuple of any length, Sequence, dict or Mapping of them; a union, Literal.
        value: what `json.loads` returns.
        null_is_inf: read null as infinite where a float is wanted.

    Raises:
        JsonError: a value is missing or of another type; a float is not finite; an int has more
            than 64 bits. Keys that are no fields are ignored: later versions may write more.
    """
    return cast(Value, _decoded(kind, value, null_is_inf))


def encode(value: Any) -> Any:
    """Return a value as JSON can hold it; a number that is not finite is None.

    Args:
        value: None, a bool, number or text; NumPy's number or array; a list, tuple, mapping or
            dataclass of these.
    """
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if isinstance(value, Mapping):
        return {key: encode(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [*map(encode, value)]
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    return encode(value.tolist())


def _decoded(kind: Any, value: Any, null_is_inf: bool) -> Any:
    if kind is float:
        return _number(value, null_is_inf)
    if kind is Any or kind in _NAMES:
        return value if kind is Any else _checked(value, kind, _NAMES[kind])
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        if not any(type(value) is type(one) and value == one for one in args):
            raise JsonError(f"not {' or '.join(map(json.dumps, args))}")
        return value
    if origin in (Union, UnionType):
        return _first_fitting(args, value, null_is_inf)
    if origin in (list, tuple, Sequence):
        items = enumerate(_checked(value, list, "a list"))
        found = _parts(((place, args[0], one) for place, one in items), null_is_inf)
        return (tuple if origin is tuple else list)(found.values())
    keys: dict[str, Any] = _checked(value, dict, "an object")
    types = dict.fromkeys(keys, args[1]) if args else _types_of_fields(kind, keys.keys())
    found = _parts(((key, one, keys[key]) for key, one in types.items()), null_is_inf)
    return found if args else kind(**found)


def _checked(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:  # a bool is an int for isinstance
        raise JsonError(f"not {name}")
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        raise JsonError("not a whole number of 64 bits")
    return value


def _number(value: Any, null_is_inf: bool) -> float:
    if value is None and null_is_inf:
        return math.inf
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        raise JsonError("not a number")
    return float(value)


def _first_fitting(kinds: Iterable[Any], value: Any, null_is_inf: bool) -> Any:
    """Decode a value of one of some types; the error is that of the type which fits best."""
    errors = []
    for kind in sorted(kinds, key=lambda kind: kind is not NoneType):  # null is null, not infinite
        try:
            return _decoded(kind, value, null_is_inf)
        except JsonError as error:
            errors.append(error)
    deepest = max(errors, key=lambda error: len(error.path))
    names = [error.problem.removeprefix("not ") for error in errors]
    raise deepest if deepest.path else JsonError(f"not {' or '.join(names)}")


def _types_of_fields(kind: Any, keys: Set[str]) -> dict[str, Any]:
    """Return the types of a dataclass' fields that keys name; JsonError if a field lacks."""
    types, required = _fields(kind)
    if missing := required - keys:
        raise JsonError("missing").inside(min(missing))
    return {name: one for name, one in types.items() if name in keys}


@cache
def _fields(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the types of a dataclass' fields, and the names of those without a default."""
    types, own = get_type_hints(kind), fields(kind)
    required = [one.name for one in own if one.default is one.default_factory is MISSING]
    return {one.name: types[one.name] for one in own}, frozenset(required)


def _parts(parts: Iterable[tuple[Any, Any, Any]], null_is_inf: bool) -> dict[Any, Any]:
    """Decode the parts of a list or an object: the place, the type and the value of each."""
    found, place = {}, ""
    try:
        for place, kind, value in parts:
            found[place] = _decoded(kind, value, null_is_inf)
    except JsonError as error:
        raise error.inside(place) from None
    return found
