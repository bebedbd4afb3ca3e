"""What is asked of a translator, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


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
        tokens: as the model sees them, the end symbol last.
        token_log_probs: of each of them.
        alignment: (source word, target word) pairs, from 0.
        attention: a row a token of `tokens`, a column a token of the source and its end symbol.
    """

    tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    alignment: tuple[tuple[int, int], ...] = ()
    attention: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Translation:
    """A translation of a line.

    Attributes:
        text: one line.
        log_prob: its natural log-probability, the sum of those of its tokens.
        score: log_prob / length penalty; what translations are ranked by.
        num_tokens: how many there are, end symbols counted.
        details: what else was asked for.
    """

    text: str
    log_prob: float
    score: float
    num_tokens: int
    details: Details = field(default_factory=Details)


@dataclass(frozen=True)
class Answer:
    """The translations of a line, best first, at least one."""

    request: Request
    translations: Sequence[Translation]
