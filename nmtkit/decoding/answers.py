"""Requests to a translator, a scorer or an aligner, and its answers; without torch."""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nmtkit.units import perplexity


@dataclass(frozen=True)
class Request:
    """A line to translate.

    Attributes:
        source: the text.
        target_prefix: the forced prefix of its translations; "" = none.
        others: the other keys of a JSON line, which are passed through to the output; those of an
            earlier answer are not among them.
        target_lang: language of its translations; "" = that of all lines.
        whole: where parts of the source begin and end that are not split.
    """

    source: str
    target_prefix: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)
    target_lang: str = ""
    whole: tuple[tuple[int, int], ...] = ()

    @property
    def line(self) -> str:
        """The source as one line."""
        return self.source.replace("\n", " ")


Chunk = tuple[int, Sequence[Request]]
"""Lines that are read and sorted by length together; the number of the first one, from 1."""


@dataclass(frozen=True)
class PlacedSpan:
    """A part of a line that its translation must have.

    Attributes:
        kind: "placeholder", "element" (markup whose content is kept) or "term".
        source: where it begins and ends in the plain source, in characters.
        target: the same in the plain translation; None = the search did not write it. Then a
            placeholder or an element is inserted, and a term is missing.
    """

    kind: str
    source: tuple[int, int]
    target: tuple[int, int] | None


@dataclass(frozen=True)
class Quality:
    """The expected quality of a translation; see `nmtkit.decoding.quality`.

    Attributes:
        chrf: the expected chrF, 0 to 100.
        error: its standard error.
    """

    chrf: float
    error: float


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
        is_repaired: whether the search's output was malformed and was repaired; None for plain
            text and for blank lines.
        num_source_tokens: tokens of the source, the end symbols of all parts counted.
        quality: what is expected of it; with `quality`, except of a blank translation.
        source_tokens: tokens of the source, the end symbol last in each part; with any annotation
            requested, else ().
        token_log_probs: natural log-probability of each token; with `token_scores`, else ().
        alignment: (source word, target word) pairs, from 0; with `alignments` or `attention`,
            else ().
        attention: a row per token, a column per source token, 0 between parts; as `alignment`.
            float32, an eighth of the memory of Python floats.
        placed: the placeholders and terms of the line, in order.
        alternatives: of the best translation of a line, the others of its n-best list.
    """

    text: str
    log_prob: float
    score: float
    tokens: tuple[str, ...] = field(repr=False)
    is_repaired: bool | None = field(default=None, repr=False)
    num_source_tokens: int = field(default=0, repr=False)
    quality: Quality | None = field(default=None, repr=False)
    source_tokens: tuple[str, ...] = field(default=(), repr=False)
    token_log_probs: tuple[float, ...] = field(default=(), repr=False)
    alignment: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    attention: "tuple[array[float], ...]" = field(default=(), repr=False, hash=False)
    placed: tuple[PlacedSpan, ...] = field(default=(), repr=False)
    alternatives: "tuple[Translation, ...]" = field(default=(), repr=False, compare=False)

    @property
    def n_best(self) -> "tuple[Translation, ...]":
        """The n best translations of the line, this one first; or samples, as they were drawn."""
        return (self, *self.alternatives)


@dataclass(frozen=True)
class ScoredLine:
    """The score of a translation.

    Attributes:
        tokens: tokens of the translation and the end symbol; none if source and translation are
            blank, which are not scored.
        token_log_probs: natural log-probability of each token, given those before it.
        num_words: number of words, plus one for the end; 0 without tokens.
    """

    tokens: tuple[str, ...]
    token_log_probs: tuple[float, ...]
    num_words: int

    def __repr__(self) -> str:
        """Return log-probability and perplexity, without tokens."""
        return f"ScoredLine(log_prob={self.log_prob}, perplexity={self.perplexity})"

    @property
    def log_prob(self) -> float:
        """The natural log-probability of the translation, its end symbol included."""
        return math.fsum(self.token_log_probs)

    @property
    def perplexity(self) -> float:
        """Perplexity per token, the end symbol counted; 1 without tokens."""
        return perplexity(-self.log_prob / max(1, len(self.tokens)))


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    Attributes:
        request: the line.
        translation: its best translation, with the others of the n-best list.
        warning: how a line that is too long was translated; "" = as a whole.
    """

    request: Request
    translation: Translation
    warning: str = ""


@dataclass(frozen=True)
class Pair:
    """A pair of lines to align.

    Attributes:
        source, target: the two lines.
        others: the other keys of a JSON line, which are passed through to the output.
    """

    source: str
    target: str
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target_lang(self) -> str:
        """The language of the target, one of the other keys; "" = that of all lines."""
        return str(self.others.get("target_lang", ""))


@dataclass(frozen=True)
class AlignedPair:
    """The links of a pair.

    Attributes:
        request: the pair.
        links: indices of a source word and a target word, from 0, by target word.
        probabilities: of each link, between 0 and 1.
        warning: why a pair that is too long has no links; "" = it is not.
    """

    request: Pair
    links: Sequence[tuple[int, int]]
    probabilities: Sequence[float]
    warning: str = ""


@dataclass
class Tally:
    """What is reported of the translations of a text at its end.

    Attributes:
        repairs: number of translations for each value of `is_repaired`.
        placed: number of placeholders, elements and terms, by whether they are terms, and whether
            the search wrote them.
    """

    repairs: Counter[bool | None] = field(default_factory=Counter)
    placed: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.repairs[answer.translation.is_repaired] += 1
        for one in answer.translation.placed:
            self.placed[one.kind == "term", one.target is not None] += 1

    @property
    def summary(self) -> str:
        """A line about what the search did not write; "" if it wrote all."""
        parts, inserted = [], "placeholders were inserted after the search"
        for is_term, what in ((False, inserted), (True, "terms are not used")):
            if missing := self.placed[is_term, False]:
                total = missing + self.placed[is_term, True]
                parts.append(f"{missing:,} of {total:,} {what}")
        return " and ".join(parts)


AnyAnswer = TypeVar("AnyAnswer", Answer, AlignedPair)


@dataclass(frozen=True)
class Results(Generic[AnyAnswer]):
    """The lines that a batch has finished.

    Attributes:
        answers: the answers that are final, and all before them too, in the order of the lines.
        num_lines: number of lines that the batch has finished, in any order.
        num_tokens: target tokens of the batch; of translations, of the best ones.
    """

    answers: Sequence[AnyAnswer]
    num_lines: int
    num_tokens: int


BatchResult = Results[Answer]


def with_warnings(
    results: Iterable[Results[AnyAnswer]], warn: Callable[[str], None]
) -> Iterator[Results[AnyAnswer]]:
    """Yield results; warn of the first line that was too long, and at the end of the others."""
    num_warnings = 0
    for result in results:
        for warning in filter(None, (answer.warning for answer in result.answers)):
            num_warnings += 1
            if num_warnings == 1:
                warn(warning)
        yield result
    if num_warnings > 1:
        lines = "line was" if num_warnings == 2 else "lines were"
        warn(f"and {num_warnings - 1:,} more {lines} too long and treated in the same way")
