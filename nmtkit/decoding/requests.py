"""Requests to a translator, and its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nmtkit.decoding.annotations import Annotations, join_annotations


@dataclass(frozen=True)
class Request:
    """A line to translate.

    Attributes:
        source: the text.
        target_prefix: the forced prefix of its translations; "" = none.
        others: the other keys of a JSON line, which are passed through to the output.
    """

    source: str
    target_prefix: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Translation:
    """A translation of a line.

    Attributes:
        text: one line.
        log_prob: natural log-probability, the sum over its tokens.
        score: log_prob / length penalty; translations are ranked by it.
        num_tokens: number of its tokens, end symbols counted.
        annotations: tokens, probabilities, attention and alignment, as far as requested.
        is_repaired: whether the search's output was malformed and was repaired; None for plain
            text and for blank lines.
    """

    text: str
    log_prob: float
    score: float
    num_tokens: int
    annotations: Annotations = field(default_factory=Annotations)
    is_repaired: bool | None = None


BLANK = Translation(text="", log_prob=0.0, score=0.0, num_tokens=0)
"""The translation of a line without parts."""


@dataclass(frozen=True)
class Answer:
    """The translations of a line.

    Attributes:
        request: the line.
        translations: best first; there is at least one.
        warning: how a line that is too long was translated; "" = as a whole.
    """

    request: Request
    translations: Sequence[Translation]
    warning: str = ""


def join_n_best(n_best_lists: Sequence[Sequence[Translation]]) -> list[Translation]:
    """Join the n-best lists of a line's parts, place by place.

    Args:
        n_best_lists: one list per part; a shorter list repeats its last translation.

    Returns:
        the n-best list of the line; one blank translation if the line has no part.
    """
    if not n_best_lists:
        return [BLANK]
    if len(n_best_lists) == 1:
        return list(n_best_lists[0])
    count = max(map(len, n_best_lists))
    return [join([one[min(place, len(one) - 1)] for one in n_best_lists]) for place in range(count)]


def join(parts: Sequence[Translation]) -> Translation:
    """Join the translations of a line's parts; log-probabilities and scores are summed."""
    return Translation(
        text=" ".join(part.text for part in parts if part.text),
        log_prob=sum(part.log_prob for part in parts),
        score=sum(part.score for part in parts),
        num_tokens=sum(part.num_tokens for part in parts),
        annotations=join_annotations([part.annotations for part in parts]),
    )
