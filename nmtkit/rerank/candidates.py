"""The candidates of each line: translations as JSON lines of one or more systems, in lock step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, BinaryIO

from nmtkit.config.problems import shown
from nmtkit.errors import DataError
from nmtkit.text.translations import Candidate, TranslatedLine, read_translations


@dataclass(frozen=True)
class Input:
    """A stream of translations.

    Attributes:
        name: its name in messages, and as `system` of its candidates.
        stream: bytes, read line by line.
    """

    name: str
    stream: BinaryIO


@dataclass(frozen=True)
class CandidateList:
    """A line with all its candidates.

    Attributes:
        where: name of the line in messages.
        source: the source text.
        target_prefix: the forced prefix of the translations; "" = none.
        others: the keys that the schema does not have; of several systems, the first one's win.
        candidates: at least one, in the order of the systems.
        samples: the translations of the file of samples; () without such a file.
    """

    where: str
    source: str
    target_prefix: str
    others: Mapping[str, Any]
    candidates: Sequence[Candidate]
    samples: Sequence[str]

    @property
    def is_blank(self) -> bool:
        """The source is blank, so there is nothing to choose."""
        return not self.source.strip()


def read_candidates(systems: Sequence[Input], samples: Input | None) -> Iterator[CandidateList]:
    """Yield the candidates of each line; no line is read ahead.

    Args:
        systems: one or more; the candidates of several ones get the key `system`.
        samples: translations that are references of mbr; None = there are none.

    Raises:
        DataError: see `read_translations`; a system or the samples have another number of lines, or
            another source.
    """
    inputs = [*systems, *([samples] if samples else [])]
    readers = [read_translations(one.stream, one.name) for one in inputs]
    for number, lines in enumerate(zip_longest(*readers)):
        _check_all_have(lines, inputs, number)
        _check_same_source(lines)
        yield _joined(lines, systems)


def _joined(lines: Sequence[TranslatedLine], systems: Sequence[Input]) -> CandidateList:
    """Return the candidates of a line of all inputs; the last one may be the samples'."""
    first, own = lines[0], lines[: len(systems)]
    candidates = [candidate for line in own for candidate in line.candidates]
    if len(systems) > 1:
        candidates = [
            replace(one, values={**one.values, "system": system.name})
            for line, system in zip(own, systems, strict=True)
            for one in line.candidates
        ]
    return CandidateList(
        where=first.where,
        source=first.source,
        target_prefix=first.target_prefix,
        others={key: value for line in reversed(own) for key, value in line.others.items()},
        candidates=candidates,
        samples=[one.text for line in lines[len(systems) :] for one in line.candidates],
    )


def _check_all_have(
    lines: Sequence[TranslatedLine | None], inputs: Sequence[Input], number: int
) -> None:
    """Raise DataError if some inputs have ended, after `number` lines, and others have not."""
    ended = [one.name for line, one in zip(lines, inputs, strict=True) if line is None]
    if ended:
        longer = next(one.name for line, one in zip(lines, inputs, strict=True) if line is not None)
        raise DataError(
            f"{ended[0]} has {number} lines, and {longer} has more; give files with translations "
            "of the same lines"
        )


def _check_same_source(lines: Sequence[TranslatedLine]) -> None:
    first, *others = lines
    for other in others:
        if other.source != first.source:
            raise DataError(
                f"{other.where}: the source is {shown(other.source)}, and {shown(first.source)} at "
                f"{first.where}; give files with translations of the same lines"
            )
        if other.target_prefix != first.target_prefix:
            raise DataError(
                f"{other.where}: the target_prefix is {shown(other.target_prefix)}, and "
                f"{shown(first.target_prefix)} at {first.where}; give files with the same prefixes"
            )
