"""A vocabulary: one language's mapping between lines and ids, and the steps before it.

Each kind is a class; `KINDS` in nmtkit/text/codec.py lists them. The steps clean a line, and Moses
may tokenise it: most published systems at the time of "Attention Is All You Need" used such text.

Source: Unicode Standard Annex #15, https://unicode.org/reports/tr15/ (normal forms)
"""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal, Self, cast

from nmtkit.config.metrics import TargetType
from nmtkit.errors import DataError
from nmtkit.symbols import UNK_ID
from nmtkit.text.characters import unescape
from nmtkit.text.corpus import Corpus
from nmtkit.text.marks import Marks
from nmtkit.text.moses import Moses
from nmtkit.text.words import word_spans, words_of, words_of_parts

NormalForm = Literal["none", "nfc", "nfkc"]

_JOINER = re.compile(" ([\u200c\u200d]) ")  # within words, but not in Moses' list of letters
_TAGS = re.compile(r"\s*((?:<\S+>(?:\s+|$))+)")


@dataclass(frozen=True)
class Steps:
    """What is done to a line before its segmentation, in this order; only Moses is undone.

    Attributes:
        unescape: HTML entities become characters.
        normalize: Unicode normal form; "none" = unchanged.
        moses_lang: language of Moses' tokeniser, such as de; "" = text is not tokenised.
    """

    unescape: bool = False
    normalize: NormalForm = "none"
    moses_lang: str = ""

    @property
    def names(self) -> list[str]:
        """The names in descriptions of a segmentation; none if lines stay as they are."""
        return [*self._cleaning, *(["moses"] if self.moses_lang else [])]

    @property
    def keys(self) -> list[str]:
        """All that determines what the steps do."""
        moses = f"moses {self.moses_lang}" if self.moses_lang else ""
        return [*filter(None, [" ".join(self._cleaning), moses])]

    def prepare(self, line: str) -> str:
        """Return a line after all steps."""
        text = unescape(line) if self.unescape else line
        if self.normalize != "none":
            form = cast(Literal["NFC", "NFKC"], self.normalize.upper())
            text = unicodedata.normalize(form, text)
        return _tokenized(text, self._moses) if self._moses else text

    def restore(self, text: str) -> str:
        """Return decoded text without the spaces that Moses' tokeniser adds."""
        return self._moses.detokenize(text, unescapes=False) if self._moses else text

    def check_unchanged(self, tokens: Iterable[str]) -> None:
        """Raise DataError for a token that the steps split or change."""
        for token in tokens:
            found = self.prepare(token)
            if found != token:
                raise DataError(
                    f"token {token!r} is {found!r} after the vocabulary's steps "
                    f"({', '.join(self.keys)}); give that if it is one token, or leave it out"
                )

    @property
    def _cleaning(self) -> list[str]:
        form = [] if self.normalize == "none" else [self.normalize]
        return [*(["unescape"] if self.unescape else []), *form]

    @cached_property
    def _moses(self) -> Moses | None:
        return Moses(self.moses_lang) if self.moses_lang else None


class Vocabulary(ABC):
    """A vocabulary behind steps: input and output are plain text.

    Attributes:
        kind: name of the kind in codec.json.
        suffix: suffix of the file name.
        target_type: type of target lines with this vocabulary.
        is_preparable: it may have steps.
        is_segmented: the text has spaces between its tokens, unless Moses tokenises it.
        is_per_side: each side has its own files, even if both share the ids.
        no_export: why models with this target cannot be exported, as other libraries lack
            `complete`; "" = they can.
        size: V, the number of ids.
        steps: what is done to a line before it is segmented.
    """

    kind: str
    suffix: str
    target_type: TargetType = "text"
    is_preparable = is_segmented = is_per_side = False
    no_export = ""
    size: int
    steps = Steps()

    @property
    @abstractmethod
    def segmentation(self) -> str:
        """Name of the segmentation in the manifest of a dataset."""

    @property
    def unknown_ids(self) -> frozenset[int]:
        """Ids that stand for text outside the vocabulary: <unk> and the bytes of byte fallback."""
        return frozenset({UNK_ID})

    @property
    def marks(self) -> Marks | None:
        """Ids of the symbols that no text has; None = there are none."""
        return None

    @classmethod
    @abstractmethod
    def load(cls, path: Path) -> Self:
        """Read a file without steps; ConfigError or DataError if it cannot be used."""

    def save(self, path: Path) -> None:
        """Write the file, and files with the same stem if the kind has more than one."""
        path.write_bytes(self.content)

    @property
    @abstractmethod
    def content(self) -> bytes:
        """The bytes of the files that `save` writes."""

    @property
    def data(self) -> bytes:
        """Bytes that determine the encoding: the steps, and the vocabulary."""
        return "".join(f"{key}\n" for key in self.steps.keys).encode() + self.content

    def with_steps(self, steps: Steps) -> Self:
        """Return the vocabulary behind steps."""
        if steps == self.steps:
            return self
        prepared = copy(self)
        prepared.steps = steps
        return prepared

    def with_tokens(self, tokens: Sequence[str]) -> Self:
        """Return a vocabulary with further entries at its end, whole where they follow a space.

        Args:
            tokens: words; those that are entries already are left out.

        Raises:
            DataError: a step changes a token, or it cannot be an entry.
        """
        self.steps.check_unchanged(tokens)
        return self._with_tokens(tokens).with_steps(self.steps)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line; a blank line has none."""
        return self._encode(self.steps.prepare(line))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids without begin and end symbols."""
        return self.steps.restore(self._decode(ids))

    def normalize(self, line: str) -> str:
        """Return the normalised line, which equals `decode(encode(line))` for known text."""
        return self.steps.restore(self._normalize(self.steps.prepare(line)))

    @abstractmethod
    def piece(self, index: int) -> str:
        """Return the entry of an id."""

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token; concatenated, spaces aside, it is `decode(ids)`."""
        return [*map(self.piece, ids)]

    def spell(self, line: str) -> list[str]:
        """Return the text of each token of a line, also of unknown ones, before it is restored."""
        return self._spell(self.steps.prepare(line))

    def word_ranges(self, ids: Sequence[int]) -> list[range]:
        """Return the words of `decode(ids)`, by index from 0, that each token is part of.

        They are in order. A space belongs to the word after it; at the end of the text, to the
        last word. An unknown token is decoded with spaces on both sides, so it is a separate word.
        """
        if self.is_segmented:
            ranges = [range(index, index + 1) for index in range(len(ids))]
        else:
            texts = self.texts(ids)
            ranges = words_of_parts(texts, word_spans("".join(texts)))
        if not self.steps.moses_lang:
            return ranges
        text = self._decode(ids)
        tokens = text.split() if self.is_segmented else words_of(text)
        # Restoring only removes spaces, so both have the same other characters in order.
        ends = [*accumulate(map(len, words_of(self.decode(ids))))]
        words = words_of_parts(tokens, [*pairwise([0, *ends])])
        return [range(words[one.start].start, words[one.stop - 1].stop) for one in ranges]

    @staticmethod  # noqa: B027
    def check(corpora: Sequence[Corpus]) -> None:
        """Read the text of a dataset; DataError for a line that cannot be encoded."""

    def complete(self, text: str, _source_line: str) -> tuple[str, bool | None]:
        """Return the final form of a decoded text, and whether it was repaired.

        The second value is None for blank lines and for plain text, which cannot be malformed.
        """
        return text, None

    @staticmethod
    def summarize(counts: Counter[bool | None]) -> str:  # noqa: ARG004
        """Return a line about outputs, counted by the second value of `complete`; "" = nothing."""
        return ""

    # Of text after the steps:

    @abstractmethod
    def _encode(self, line: str) -> list[int]: ...

    @abstractmethod
    def _decode(self, ids: Sequence[int]) -> str: ...

    @abstractmethod
    def _normalize(self, line: str) -> str: ...

    @abstractmethod
    def _spell(self, line: str) -> list[str]: ...

    @abstractmethod
    def _with_tokens(self, tokens: Sequence[str]) -> Self: ...


def _tokenized(text: str, moses: Moses) -> str:
    """Return Moses' tokens without escapes; tags `<...>` at the start of a line are kept."""
    tags = _TAGS.match(text)
    rest = text[tags.end() :] if tags else text
    tokens = _JOINER.sub(r"\1", moses.tokenize(moses.normalize(rest), escapes=False))
    return " ".join([*tags[1].split(), tokens]).rstrip() if tags else tokens
