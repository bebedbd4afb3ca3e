"""Steps between a line and the text that a vocabulary segments: cleaning, Moses' tokeniser.

Each step prepares a line; what it can undo, it restores in decoded text. Most published systems at
the time of "Attention Is All You Need" used tokenised text.

Source: Unicode Standard Annex #15, https://unicode.org/reports/tr15/ (normal forms)
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal, Protocol, TypeVar, cast

from nmtkit.errors import DataError
from nmtkit.text.characters import unescape
from nmtkit.text.closed_words import Words
from nmtkit.text.marks import Marks
from nmtkit.text.moses import Moses
from nmtkit.text.subword import Subword
from nmtkit.text.words import words_of, words_of_parts

NormalForm = Literal["none", "nfc", "nfkc"]
AnyVocabulary = TypeVar("AnyVocabulary")

_JOINER = re.compile(" ([\u200c\u200d]) ")  # within words, but not in Moses' list of letters
_TAGS = re.compile(r"\s*((?:<\S+>(?:\s+|$))+)")


class Step(Protocol):
    """What is done to a line before its segmentation."""

    @property
    def names(self) -> Sequence[str]:
        """Its names in descriptions of a segmentation, such as `unescape` and `nfc`."""

    @property
    def key(self) -> str:
        """All that determines what it does."""

    @property
    def changes_spaces(self) -> bool:
        """The text has other words after it."""

    def prepare(self, line: str) -> str:
        """Return the line after this step."""

    def restore(self, text: str) -> str:
        """Return decoded text as it was before this step, as far as that is possible."""


@dataclass(frozen=True)
class Cleaning:
    """HTML entities become characters, and text gets a Unicode normal form; nothing is restored.

    Attributes:
        unescape: HTML entities become characters.
        normalize: Unicode normal form; "none" = unchanged.
    """

    unescape: bool
    normalize: NormalForm

    changes_spaces = False

    @property
    def names(self) -> list[str]:
        """See `Step`; none if lines stay as they are."""
        form = [] if self.normalize == "none" else [self.normalize]
        return [*(["unescape"] if self.unescape else []), *form]

    @property
    def key(self) -> str:
        """See `Step`."""
        return " ".join(self.names)

    def prepare(self, line: str) -> str:
        """See `Step`."""
        text = unescape(line) if self.unescape else line
        if self.normalize == "none":
            return text
        form = cast(Literal["NFC", "NFKC"], self.normalize.upper())
        return unicodedata.normalize(form, text)

    def restore(self, text: str) -> str:
        """See `Step`."""
        return text


class MosesTokens:
    """Moses' tokeniser, without escapes; tags `<...>` at the start of a line are kept."""

    names = ("moses",)
    changes_spaces = True

    def __init__(self, lang: str) -> None:
        """Load the rules of a language, by its code, such as de."""
        self.key = f"moses {lang}"
        self._moses = Moses(lang)

    def prepare(self, line: str) -> str:
        """Return the normalised tokens of a line, with spaces between them."""
        tags = _TAGS.match(line)
        text = line[tags.end() :] if tags else line
        moses = self._moses
        tokens = _JOINER.sub(r"\1", moses.tokenize(moses.normalize(text), escapes=False))
        return " ".join([*tags[1].split(), tokens]).rstrip() if tags else tokens

    def restore(self, text: str) -> str:
        """Return the detokenised text."""
        return self._moses.detokenize(text, unescapes=False)


def steps_of(cleaning: Cleaning, moses_lang: str | None) -> tuple[Step, ...]:
    """Return the steps in order; none for a cleaning and a tokeniser that do nothing.

    Args:
        cleaning: what is done first.
        moses_lang: language of Moses' tokeniser; None = text is not tokenised.
    """
    tokens = (MosesTokens(moses_lang),) if moses_lang else ()
    return (*((cleaning,) if cleaning.names else ()), *tokens)


def prepare(line: str, steps: Iterable[Step]) -> str:
    """Return a line after all steps."""
    for step in steps:
        line = step.prepare(line)
    return line


def check_unchanged(tokens: Iterable[str], steps: Sequence[Step]) -> None:
    """Raise DataError for a token that steps split or change."""
    for token in tokens:
        found = prepare(token, steps)
        if found != token:
            keys = ", ".join(step.key for step in steps)
            raise DataError(
                f"token {token!r} is {found!r} after the vocabulary's steps ({keys}); give that if "
                "it is one token, or leave it out"
            )


class Prepared:
    """A vocabulary and the steps before it; input and output are plain text."""

    def __init__(self, vocabulary: Subword | Words, steps: tuple[Step, ...]) -> None:
        """Put them together; there is at least one step."""
        assert steps, "without a step, the vocabulary is enough"
        self.vocabulary = vocabulary
        self.steps = steps
        self.kind = vocabulary.kind
        self.suffix = vocabulary.suffix
        self.size = vocabulary.size
        self.unknown_ids = vocabulary.unknown_ids

    @property
    def segmentation(self) -> str:
        """Name of the segmentation of the prepared text."""
        return self.vocabulary.segmentation

    @property
    def data(self) -> bytes:
        """Bytes that determine the encoding: the steps, and the vocabulary."""
        keys = "".join(f"{step.key}\n" for step in self.steps)
        return keys.encode() + self.vocabulary.data

    def with_tokens(self, tokens: Sequence[str]) -> "Prepared":
        """Return a vocabulary with further entries at its end.

        Raises:
            DataError: a step changes a token, or it cannot be an entry.
        """
        check_unchanged(tokens, self.steps)
        return Prepared(self.vocabulary.with_tokens(tokens), self.steps)

    def with_marks(self, number: int) -> "Prepared":
        """Return a vocabulary with marks at its end."""
        assert isinstance(self.vocabulary, Subword), self.kind
        return Prepared(self.vocabulary.with_marks(number), self.steps)

    @property
    def marks(self) -> Marks | None:
        """The marks of the vocabulary; None = it has none."""
        return self.vocabulary.marks

    def save(self, path: Path) -> None:
        """Write the file of the vocabulary."""
        self.vocabulary.save(path)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line, without special symbols; a blank line has none."""
        return self.vocabulary.encode(prepare(line, self.steps))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the restored text of ids without begin and end symbols."""
        return self._restored(self.vocabulary.decode(ids))

    def normalize(self, line: str) -> str:
        """Return the restored text of the prepared line as the vocabulary normalises it."""
        return self._restored(self.vocabulary.normalize(prepare(line, self.steps)))

    def piece(self, index: int) -> str:
        """Return the entry of an id."""
        return self.vocabulary.piece(index)

    def word_ranges(self, ids: Sequence[int]) -> list[range]:
        """Return the words of `decode(ids)`, by index from 0, that each token is part of."""
        ranges = self.vocabulary.word_ranges(ids)
        if not any(step.changes_spaces for step in self.steps):
            return ranges
        text = self.vocabulary.decode(ids)
        tokens = text.split() if isinstance(self.vocabulary, Words) else words_of(text)
        # Restoring only removes spaces, so both have the same other characters in order.
        ends = [*accumulate(map(len, words_of(self.decode(ids))))]
        words = words_of_parts(tokens, [*pairwise([0, *ends])])
        return [range(words[one.start].start, words[one.stop - 1].stop) for one in ranges]

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token, before it is restored."""
        return self.vocabulary.texts(ids)

    def spell(self, line: str) -> list[str]:
        """Return the text of each token of a line, also of unknown ones, before it is restored."""
        return self.vocabulary.spell(prepare(line, self.steps))

    def _restored(self, text: str) -> str:
        for step in reversed(self.steps):
            text = step.restore(text)
        return text


def with_steps(vocabulary: AnyVocabulary, steps: tuple[Step, ...]) -> AnyVocabulary | Prepared:
    """Return a vocabulary behind steps; without a step, the vocabulary itself."""
    if not steps:
        return vocabulary
    assert isinstance(vocabulary, Subword | Words), vocabulary
    return Prepared(vocabulary, steps)


def steps_before(vocabulary: object) -> tuple[Step, ...]:
    """Return what is done to text before a vocabulary segments it."""
    return vocabulary.steps if isinstance(vocabulary, Prepared) else ()


def cleaning_of(vocabulary: object) -> Cleaning:
    """Return how text is cleaned before a vocabulary."""
    found = (step for step in steps_before(vocabulary) if isinstance(step, Cleaning))
    return next(found, Cleaning(False, "none"))


def innermost(vocabulary: object) -> object:
    """Return the vocabulary that segments text, without the steps before it."""
    return vocabulary.vocabulary if isinstance(vocabulary, Prepared) else vocabulary
