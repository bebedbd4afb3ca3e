"""What is asked of a translator, and what it answers."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nmtkit.config.metrics import TargetType


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
class Details:
    """What is told of a translation only if it is asked for.

    Attributes:
        source_tokens, tokens: of source and translation as the model sees them, end symbols last.
        token_log_probs: of each of `tokens`.
        alignment: (source word, target word) pairs, from 0.
        num_words: how many of both there are.
        attention: a row a token of `tokens`, a column one of `source_tokens`; float32, which takes
            an eighth of what Python's numbers do.
    """

    source_tokens: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    alignment: tuple[tuple[int, int], ...] = ()
    num_words: tuple[int, int] = (0, 0)
    attention: "tuple[array[float], ...]" = ()


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
        details=_join_details([part.details for part in parts]),
    )


def _join_details(parts: Sequence[Details]) -> Details:
    """Lay details end to end; a piece attends to its own source alone."""
    alignment: list[tuple[int, int]] = []
    attention: list[array[float]] = []
    source_words = target_words = columns = 0
    num_columns = sum(len(part.source_tokens) for part in parts)
    for part in parts:
        alignment += [(s + source_words, t + target_words) for s, t in part.alignment]
        behind = num_columns - columns - len(part.source_tokens)
        attention += [
            array("f", [0.0] * columns) + row + array("f", [0.0] * behind) for row in part.attention
        ]
        source_words, target_words = (
            source_words + part.num_words[0],
            target_words + part.num_words[1],
        )
        columns += len(part.source_tokens)
    return Details(
        source_tokens=tuple(token for part in parts for token in part.source_tokens),
        tokens=tuple(token for part in parts for token in part.tokens),
        token_log_probs=tuple(value for part in parts for value in part.token_log_probs),
        alignment=tuple(alignment),
        num_words=(source_words, target_words),
        attention=tuple(attention),
    )
