"""The input of `nmtkit attention`: sources, with translations if given."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nmtkit.errors import DataError
from nmtkit.text.json_lines import read_object
from nmtkit.text.translations import check_schema


@dataclass(frozen=True)
class Pair:
    """A line of input.

    Attributes:
        source: the source text.
        target: its translation; None if the line has none.
        where: the name of the line in messages.
    """

    source: str
    target: str | None
    where: str


def read_pairs(lines: Iterable[str], input_format: str, name: str) -> Iterator[Pair]:
    """Yield the pair of each line.

    Args:
        lines: `source` or `source<TAB>translation`; or JSON objects.
        input_format: "text" or "json".
        name: the name of the input in messages.

    Raises:
        DataError: a line is malformed, or there is no line.
    """
    read = _of_object if input_format == "json" else _of_text
    number = 0
    for number, line in enumerate(lines, 1):
        yield read(line, f"{name}:{number}")
    if number == 0:
        raise DataError(f"{name}: no lines; give a source per line")


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
    check_schema(values, where)
    return Pair(values["source"], values.get("translation"), where)
