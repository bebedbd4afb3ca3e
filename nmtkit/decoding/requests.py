"""Requests to a translator, and its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nmtkit.config.metrics import TargetType
from nmtkit.decoding.annotations import Details, join_details


@dataclass(frozen=True)
class Request:
    """A line to translate.

    Attributes:
        source: its text.
        target_prefix: what its translations must begin with.
        others: what was told beside, to be passed on.
    """

    source: str
    target_prefix: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Translation:
    """A translation of a line.

    Attributes:
        text: one line.
        log_prob: its natural log-probability, the sum of those of its tokens.
        score: log_prob / length penalty; what translations are ranked by.
        num_tokens: how many there are, end symbols counted.
        details: what else was asked for.
        is_mended: whether what was found was malformed, and was repaired; None of plain text and
            of blank lines.
    """

    text: str
    log_prob: float
    score: float
    num_tokens: int
    details: Details = field(default_factory=Details)
    is_mended: bool | None = None


@dataclass(frozen=True)
class Answer:
    """The translations of a line, best first, at least one; their type is the target's."""

    request: Request
    translations: Sequence[Translation]
    target_type: TargetType = "text"


def join_ranks(of_pieces: Sequence[Sequence[Translation]]) -> list[Translation]:
    """Join the translations of a line's pieces, those of the same rank; of none, nothing."""
    if len(of_pieces) == 1:
        return list(of_pieces[0])
    count = max(map(len, of_pieces), default=1)
    return [join([one[min(rank, len(one) - 1)] for one in of_pieces]) for rank in range(count)]


def join(parts: Sequence[Translation]) -> Translation:
    """Make one translation of those of a line's pieces."""
    return Translation(
        text=" ".join(part.text for part in parts if part.text),
        log_prob=sum(part.log_prob for part in parts),
        score=sum(part.score for part in parts),
        num_tokens=sum(part.num_tokens for part in parts),
        details=join_details([part.details for part in parts]),
    )
