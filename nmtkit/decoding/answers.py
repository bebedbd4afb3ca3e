"""The answers of a translator to its requests."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from nmtkit.decoding.annotations import Annotations, WordOf, join_annotations
from nmtkit.decoding.input_formats import Request


@dataclass(frozen=True)
class Translation:
    """A translation of a line.

    Attributes:
        text: one line.
        log_prob: natural log-probability, the sum over its tokens. Parts of a line that was split
            are translated separately, so it is not the log-probability of the joined text.
        score: log_prob / length penalty; translations are ranked by it.
        tokens: its tokens, the end symbol last, one per part of a line that was split; a blank line
            has none.
        annotations: probabilities, attention and alignment, as far as requested.
        is_repaired: whether the search's output was malformed and was repaired; None for plain
            text and for blank lines.
        n_best: from Python, the n best translations of the line, this one first.
    """

    text: str
    log_prob: float
    score: float
    tokens: tuple[str, ...] = field(repr=False)
    annotations: Annotations = field(default_factory=Annotations, repr=False, hash=False)
    is_repaired: bool | None = field(default=None, repr=False)
    n_best: "tuple[Translation, ...]" = field(default=(), repr=False, compare=False)

    @property
    def alignment(self) -> tuple[tuple[int, int], ...]:
        """(source word, target word) pairs, from 0; with `alignments` or `attention`, else ()."""
        return self.annotations.alignment

    @property
    def token_log_probs(self) -> tuple[float, ...]:
        """Natural log-probability of each token; with any annotation requested, else ()."""
        return self.annotations.token_log_probs

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """Tokens of the source, the end symbol last in each part; as `token_log_probs`."""
        return self.annotations.source_tokens

    @property
    def attention(self) -> "tuple[array[float], ...]":
        """A row per token, a column per source token; filled as `alignment`."""
        return self.annotations.attention


BLANK = Translation(text="", log_prob=0.0, score=0.0, tokens=())
"""The translation of a line without parts."""


@dataclass(frozen=True)
class Answer:
    """The translations of a line.

    Attributes:
        request: the line.
        translations: best first, or as they were drawn; there is at least one.
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
        num_tokens = sum(len(self._waiting[line].translations[0].tokens) for line in lines)
        answers = []
        while self._next in self._waiting:
            answers.append(self._waiting.pop(self._next))
            self._next += 1
        return BatchResult(answers, len(lines), num_tokens)


def join_n_best(
    n_best_lists: Sequence[Sequence[Translation]], word_of: WordOf
) -> list[Translation]:
    """Join the n-best lists of a line's parts, place by place.

    Args:
        n_best_lists: one list per part; a shorter list repeats its last translation.
        word_of: see `join_annotations`.

    Returns:
        the n-best list of the line; one blank translation if the line has no part.
    """
    if not n_best_lists:
        return [BLANK]
    if len(n_best_lists) == 1:
        return list(n_best_lists[0])
    count = max(map(len, n_best_lists))
    return [
        join([one[min(place, len(one) - 1)] for one in n_best_lists], word_of)
        for place in range(count)
    ]


def join(parts: Sequence[Translation], word_of: WordOf) -> Translation:
    """Join the translations of a line's parts; log-probabilities and scores are summed."""
    return Translation(
        text=" ".join(part.text for part in parts if part.text),
        log_prob=sum(part.log_prob for part in parts),
        score=sum(part.score for part in parts),
        tokens=tuple(token for part in parts for token in part.tokens),
        annotations=join_annotations([part.annotations for part in parts], word_of),
    )
