"""Lines to sequences of ids that a model can read: one a line, or several where it is too long."""

import re
from collections.abc import Callable

from nmtkit.config.schema import TranslationConfig
from nmtkit.errors import DataError
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec


class Cutter:
    """Encodes lines, and cuts those that are too long as the configuration says."""

    def __init__(
        self,
        codec: TextCodec,
        config: TranslationConfig,
        num_positions: int,
        warn: Callable[[str], None],
    ) -> None:
        """Store the parts.

        Args:
            codec: encodes.
            config: how long a line may be, and what to do with a longer one.
            num_positions: the longest sequence that the model can read.
            warn: takes a one-line warning, that of the first line that is too long.
        """
        self._codec = codec
        self._config = config
        self._limit = min(config.max_source_length, num_positions)
        self._warn = warn
        self._is_warned = False

    def pieces(self, line: str, number: int) -> list[list[int]]:
        """Encode a line as the sequences that are translated for it: none if it is blank.

        What a line begins with for the whole of it, such as `>>fra<<`, begins each sequence.

        Args:
            line: the text.
            number: of the line, for messages.

        Raises:
            DataError: the line is too long, and the configuration makes that an error.
        """
        ids = self._codec.encode_source(line)
        pieces = [ids] if len(ids) <= self._limit else self._shorten(line, number, ids)
        symbol, _ = self._codec.source.split_symbol(line)
        blank = self._codec.encode_source(symbol)
        return [piece for piece in pieces if piece != blank]

    def _shorten(self, line: str, number: int, ids: list[int]) -> list[list[int]]:
        """Make a line that is too long into pieces that are not."""
        limit = self._limit
        is_models = limit < self._config.max_source_length
        name = "the model's learned positions" if is_models else "--max-source-length"
        what = f"line {number}: {len(ids)} tokens, more than {limit} [{name}]"
        if self._config.on_too_long == "error":
            raise DataError(f"{what}; shorten the line, or choose --on-too-long split")
        is_split = self._config.on_too_long == "split"
        if not self._is_warned:
            self._is_warned = True
            how = "it is translated in pieces" if is_split else "its end is not translated"
            self._warn(f"{what}; {how} [--on-too-long {self._config.on_too_long}]")
        if not is_split:
            return [[*ids[: limit - 1], EOS_ID]]
        symbol, text = self._codec.source.split_symbol(line)

        def encode(part: str) -> list[int]:
            return self._codec.encode_source(symbol + part)

        return [encode(part) for part in split_text(text, lambda t: len(encode(t)) <= limit)]


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a text into pieces that fit, by halving what does not.

    A cut is made at the space nearest to the middle, which is dropped; a text without spaces is cut
    between two characters. A single character is a piece even if it does not fit.

    Args:
        text: not empty.
        fits: whether a piece is short enough.
    """
    if len(text) < 2 or fits(text):
        return [text]
    middle = len(text) // 2
    spaces = (match.start() for match in re.finditer(r"\s", text))
    cut = min(spaces, key=lambda space: abs(space - middle), default=None)
    left, right = (text[:middle], text[middle:]) if cut is None else (text[:cut], text[cut + 1 :])
    return split_text(left, fits) + split_text(right, fits)
