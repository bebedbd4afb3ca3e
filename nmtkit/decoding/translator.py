"""Text to text: lines are read ahead in chunks, translated in batches, answered in order.

A line in is a line out, whatever the line holds. Reading and writing files, and when output is
flushed, are the caller's business.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import torch

from nmtkit.config.schema import SearchConfig, TranslationConfig
from nmtkit.decoding.lengths import batches_by_length, num_positions
from nmtkit.decoding.search import beam_search
from nmtkit.errors import DataError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import one_line


class Translator:
    """A model with its codec, ready to translate."""

    def __init__(
        self,
        model: Transformer,
        codec: TextCodec,
        search: SearchConfig,
        translation: TranslationConfig,
        warn: Callable[[str], None],
    ) -> None:
        """Put the parts together.

        Args:
            model: in evaluation mode, on the device to use.
            codec: the one that the model was trained with.
            search: beam, length penalty and longest translation.
            translation: chunks, batches, and what to do with long lines.
            warn: takes a one-line warning, that of the first line that is too long.
        """
        self._model = model
        self._codec = codec
        self._search = search
        self._config = translation
        self._warn = warn
        self._num_positions = num_positions(model.config)
        self._max_source_length = min(translation.max_source_length, self._num_positions)
        self._is_warned = False

    def translate(self, lines: Iterable[str]) -> Iterator[str]:
        """Translate lines lazily; exactly one line comes out for each line that goes in.

        Raises:
            DataError: a line is too long, and the configuration makes that an error.
        """
        for chunk in self.translate_chunks(lines):
            yield from chunk

    def translate_chunks(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Translate lines as `translate` does, and yield the answers to each chunk as a list.

        Nothing is read beyond a chunk before its answers are out.
        """
        remaining = iter(lines)
        line_number = 1
        self._is_warned = False
        while chunk := list(islice(remaining, self._config.chunk_lines)):
            yield self.translate_chunk(chunk, line_number)
            line_number += len(chunk)

    @torch.inference_mode()
    def translate_chunk(self, lines: Sequence[str], first_line_number: int) -> list[str]:
        """Translate lines together, in batches of sentences of similar length.

        Args:
            lines: any number of them.
            first_line_number: the number of the first, for messages.

        Returns:
            the translation of each, one line; that of a blank line is empty.
        """
        assert not self._model.training, "translation needs the model in evaluation mode"
        pieces_of_lines = [
            self._pieces(line, number) for number, line in enumerate(lines, first_line_number)
        ]
        pieces = [piece for pieces_of_line in pieces_of_lines for piece in pieces_of_line]
        translations = [""] * len(pieces)
        lengths = [len(piece) for piece in pieces]
        config = self._config
        for batch in batches_by_length(lengths, config.batch_tokens, config.batch_size):
            answers = self._translate_batch([pieces[index] for index in batch])
            for index, answer in zip(batch, answers, strict=True):
                translations[index] = answer
        remaining = iter(translations)
        return [
            " ".join(filter(None, islice(remaining, len(of_line)))) for of_line in pieces_of_lines
        ]

    def _pieces(self, line: str, number: int) -> list[list[int]]:
        """Encode a line as the sequences that are translated for it: none if it is blank."""
        ids = self._codec.encode_source(line)
        pieces = [ids] if len(ids) <= self._max_source_length else self._shorten(line, number, ids)
        return [piece for piece in pieces if piece != [EOS_ID]]

    def _shorten(self, line: str, number: int, ids: list[int]) -> list[list[int]]:
        """Make a line that is too long into pieces that are not, as the configuration says."""
        limit = self._max_source_length
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
        encode = self._codec.encode_source
        return [encode(text) for text in split_text(line, lambda t: len(encode(t)) <= limit)]

    def _translate_batch(self, sources: list[list[int]]) -> list[str]:
        """Translate id sequences together."""
        device = self._model.output_weight.device
        memory = self._model.encode(pack_sequences(sources, device))
        max_lengths = torch.tensor([len(source) for source in sources], device=device)
        max_lengths = (max_lengths + self._search.extra_length).clamp(max=self._num_positions)
        found = beam_search(self._model.step, self._model.start(memory), max_lengths, self._search)
        return [one_line(self._codec.decode_target(hypotheses[0].ids)) for hypotheses in found]


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
