"""Encode lines; a line that is too long for the model is split into parts, or truncated."""

import re
from collections.abc import Callable

from nmtkit.config.schema import TranslationConfig
from nmtkit.errors import DataError
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec


class LineSplitter:
    """Encodes lines, and splits or truncates those that are too long."""

    def __init__(
        self,
        codec: TextCodec,
        config: TranslationConfig,
        num_positions: int,
        warn: Callable[[str], None],
    ) -> None:
        """Store the codec and the limits.

        Args:
            codec: the codec of the model.
            config: the longest source, and what to do with a longer one.
            num_positions: the longest sequence that the model can read.
            warn: takes a one-line warning; called once, for the first line that is too long.
        """
        self._codec = codec
        self._config = config
        self._limit = min(config.max_source_length, num_positions)
        self._warn = warn
        self._is_warned = False

    def encode(self, line: str, number: int) -> list[list[int]]:
        """Return the ids of each part of a line; a blank line has no part.

        A language symbol at the beginning of the line, such as `>>fra<<`, begins each part.

        Args:
            line: the text.
            number: its number, for messages.

        Raises:
            DataError: the line is too long, and `on_too_long` is "error".
        """
        ids = self._codec.encode_source(line)
        parts = [ids] if len(ids) <= self._limit else self._shorten(line, number, ids)
        symbol, _ = self._codec.source.split_symbol(line)
        blank = self._codec.encode_source(symbol)
        return [part for part in parts if part != blank]

    def _shorten(self, line: str, number: int, ids: list[int]) -> list[list[int]]:
        """Split or truncate a line that is too long; return the ids of each part."""
        limit = self._limit
        is_model_limit = limit < self._config.max_source_length
        name = "the model's learned positions" if is_model_limit else "--max-source-length"
        what = f"line {number}: {len(ids)} tokens, more than {limit} [{name}]"
        if self._config.on_too_long == "error":
            raise DataError(f"{what}; shorten the line, or choose --on-too-long split")
        is_split = self._config.on_too_long == "split"
        if not self._is_warned:
            self._is_warned = True
            how = "it is translated in parts" if is_split else "its end is not translated"
            self._warn(f"{what}; {how} [--on-too-long {self._config.on_too_long}]")
        if not is_split:
            return [[*ids[: limit - 1], EOS_ID]]
        symbol, text = self._codec.source.split_symbol(line)

        def encode(part: str) -> list[int]:
            return self._codec.encode_source(symbol + part)

        return [encode(part) for part in split_text(text, lambda t: len(encode(t)) <= limit)]


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
