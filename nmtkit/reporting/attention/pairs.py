"""Lines of input as sentences to look at, with their translations where they have one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nmtkit.decoding.formats import read_object
from nmtkit.errors import DataError


@dataclass(frozen=True)
class Pair:
    """A source and its translation, or None.

    Attributes:
        where: what messages call the line.
    """

    source: str
    target: str | None
    where: str


def read_pairs(lines: Iterable[str], input_format: str, name: str) -> Iterator[Pair]:
    """Turn lines into pairs.

    Args:
        lines: `source`, or `source<TAB>translation`; or an object each.
        input_format: "text" or "json".
        name: what messages call the input.

    Raises:
        DataError: a line is not what it should be, or there is none.
    """
    read = _of_object if input_format == "json" else _of_text
    number = 0
    for number, line in enumerate(lines, 1):
        yield read(line, f"{name}, line {number}")
    if number == 0:
        raise DataError(f"{name}: no line in it; give a source a line")


def _of_text(line: str, where: str) -> Pair:
    source, *targets = line.split("\t")
    if len(targets) > 1:
        raise DataError(
            f"{where}: {len(targets)} tabs; write a source, or a source, one tab and its "
            "translation"
        )
    return Pair(source, targets[0] if targets else None, where)


def _of_object(line: str, where: str) -> Pair:
    values = read_object(line, ("source", "translation"), where)
    return Pair(values["source"], values.get("translation"), where)
