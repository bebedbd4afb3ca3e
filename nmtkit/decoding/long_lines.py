"""Encode lines; a line that is too long for the model is split into parts, or truncated.

The first such line is a warning, and at the end the number of the others.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.answers import BatchResult
from nmtkit.errors import DataError
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec


@dataclass(frozen=True)
class EncodedLine:
    """A line as ids.

    Attributes:
        parts: ids of each part; a blank line has no part.
        warning: how a line that is too long is translated; "" = as a whole.
        words_before: of each part of a line that is split, the number of words that end before it;
            a part may begin within a word.
        num_symbols: number of language symbols with which each part begins.
    """

    parts: list[list[int]]
    warning: str = ""
    words_before: tuple[int, ...] = ()
    num_symbols: int = 0

    def word_of(self, part: int, word: int) -> int:
        """Return the index in a line that is split of a word of a part."""
        return word if word < self.num_symbols else word + self.words_before[part]


_BLANK = EncodedLine([])
"""An empty line; the codec needs 10 times as long to find this."""


class LineSplitter:
    """Encodes lines, and splits or truncates those that are too long."""

    def __init__(
        self,
        codec: TextCodec,
        config: TranslationConfig,
        num_positions: int,
    ) -> None:
        """Store the codec and the limits.

        Args:
            codec: the codec of the model.
            config: the longest source, and what to do with a longer one.
            num_positions: the longest sequence that the model can read.
        """
        self._codec = codec
        self._config = config
        self._limit = min(config.max_source_length, num_positions)

    def encode(self, line: str, number: int) -> EncodedLine:
        """Encode a line; one that is too long is split or truncated.

        A language symbol at the beginning of the line, such as `>>fra<<`, begins each part.

        Args:
            line: the text.
            number: its number, for messages.

        Raises:
            DataError: the line is too long, and `on_too_long` is "error".
        """
        if not line:
            return _BLANK
        ids = self._codec.encode_source(line)
        is_whole = len(ids) <= self._limit
        symbol, _ = self._codec.source.split_symbol(line)
        blank = self._codec.encode_source(symbol)
        if is_whole:
            return EncodedLine([ids]) if ids != blank else _BLANK
        return self._shorten(line, number, ids, blank)

    def _shorten(self, line: str, number: int, ids: list[int], blank: list[int]) -> EncodedLine:
        """Split or truncate a line that is too long; parts with the ids of `blank` are left out."""
        limit = self._limit
        is_model_limit = limit < self._config.max_source_length
        name = "the model's learned positions" if is_model_limit else "--max-source-length"
        what = f"line {number}: {len(ids)} tokens, more than {limit} [{name}]"
        if self._config.on_too_long == "error":
            raise DataError(f"{what}; shorten the line, or choose --on-too-long split")
        is_split = self._config.on_too_long == "split"
        how = "it is translated in parts" if is_split else "its end is not translated"
        warning = f"{what}; {how} [--on-too-long {self._config.on_too_long}]"
        if not is_split:
            shortened = [*ids[: limit - 1], EOS_ID]
            return EncodedLine([shortened] if shortened != blank else [], warning)
        symbol, text = self._codec.source.split_symbol(line)

        def encode(part: str) -> list[int]:
            return self._codec.encode_source(symbol + part)

        num_symbols = int(bool(symbol))
        parts, words_before = [], []
        num_words = end = 0
        for part in split_text(text, lambda t: len(encode(t)) <= limit):
            begin = text.index(part, end)
            is_inside = begin > 0 and not (text[begin - 1].isspace() or part[:1].isspace())
            end = begin + len(part)
            if (encoded := encode(part)) != blank:
                parts.append(encoded)
                words_before.append(num_words - is_inside)
                num_words += max(self._codec.source.word_indices(encoded[:-1])) + 1
                num_words -= num_symbols + is_inside
        return EncodedLine(parts, warning, tuple(words_before), num_symbols)


def with_warnings(
    results: Iterable[BatchResult], warn: Callable[[str], None]
) -> Iterator[BatchResult]:
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


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Split a text into parts that fit, by halving parts that do not.

    A text is split at the space nearest to its middle, which is dropped, or without spaces between
    two characters. A single character is a part even if it does not fit.

    Args:
        text: not empty.
        fits: returns whether a part is short enough.
    """
    if len(text) < 2 or fits(text):
        return [text]
    middle = len(text) // 2
    spaces = (match.start() for match in re.finditer(r"\s", text))
    split = min(spaces, key=lambda space: abs(space - middle), default=None)
    left, right = (
        (text[:middle], text[middle:]) if split is None else (text[:split], text[split + 1 :])
    )
    return split_text(left, fits) + split_text(right, fits)
