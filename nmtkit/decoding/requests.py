"""Requests to a translator, and its answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
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


Chunk = tuple[int, Sequence[Request]]
"""Lines that are read and sorted by length together; the number of the first one, from 1."""


@dataclass(frozen=True)
class BatchResult:
    """The lines that a batch has finished.

    Attributes:
        answers: the answers that are final, and all before them too, in the order of the lines.
        num_lines: number of lines that the batch has finished, in any order.
        num_tokens: target tokens of their best translations.
    """

    answers: Sequence[Answer]
    num_lines: int
    num_tokens: int


class ChunkAnswers:
    """The answers to a chunk of lines, whose parts are translated in any order."""

    def __init__(
        self,
        num_parts: Sequence[int],
        complete: Callable[[int, list[list[Translation]]], Answer],
    ) -> None:
        """Begin with no translation.

        Args:
            num_parts: number of parts of each line; 0 for a blank line.
            complete: returns the answer to a line, given its place and the n-best list of each of
                its parts.
        """
        self._complete = complete
        self._line_of = [line for line, count in enumerate(num_parts) for _ in range(count)]
        self._firsts = [0, *accumulate(num_parts)]
        self._num_missing = list(num_parts)
        self._found: list[list[Translation]] = [[] for _ in self._line_of]
        self._waiting: dict[int, Answer] = {}
        self._next = 0

    def add_blank(self) -> BatchResult:
        """Finish the lines that have no part."""
        return self._finish([line for line, count in enumerate(self._num_missing) if not count])

    def add(self, parts: Sequence[int], found: Sequence[list[Translation]]) -> BatchResult:
        """Add the n-best lists of a batch of parts, each given by its place in the chunk."""
        finished = []
        for part, translations in zip(parts, found, strict=True):
            self._found[part] = translations
            line = self._line_of[part]
            self._num_missing[line] -= 1
            if not self._num_missing[line]:
                finished.append(line)
        return self._finish(finished)

    def _finish(self, lines: Sequence[int]) -> BatchResult:
        for line in lines:
            first, end = self._firsts[line : line + 2]
            self._waiting[line] = self._complete(line, self._found[first:end])
        num_tokens = sum(self._waiting[line].translations[0].num_tokens for line in lines)
        answers = []
        while self._next in self._waiting:
            answers.append(self._waiting.pop(self._next))
            self._next += 1
        return BatchResult(answers, len(lines), num_tokens)


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
