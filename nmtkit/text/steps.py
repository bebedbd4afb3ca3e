"""Steps between a line and the text that a vocabulary segments: cleaning, Moses' tokeniser.

Most published systems at the time of "Attention Is All You Need" used tokenised text.

Source: Unicode Standard Annex #15, https://unicode.org/reports/tr15/ (normal forms)
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

from nmtkit.errors import DataError
from nmtkit.text.characters import unescape
from nmtkit.text.moses import Moses

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


def _tokenized(text: str, moses: Moses) -> str:
    """Return Moses' tokens without escapes; tags `<...>` at the start of a line are kept."""
    tags = _TAGS.match(text)
    rest = text[tags.end() :] if tags else text
    tokens = _JOINER.sub(r"\1", moses.tokenize(moses.normalize(rest), escapes=False))
    return " ".join([*tags[1].split(), tokens]).rstrip() if tags else tokens
