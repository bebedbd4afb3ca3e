"""SentencePiece vocabularies: raw text to subword ids and back.

Every vocabulary learnt here has byte fallback, so that no text is unknown. Its law:
decode(encode(line)) == normalise(line).
Source: Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import sentencepiece

from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID

Algorithm = Literal["bpe", "unigram"]

# Characters beyond this share of the text, the rarest ones, are spelled in bytes. With byte
# fallback nothing is lost by that, while an entry for each symbol that noisy text holds once would
# be learnt from nothing. SentencePiece's default, which also suits Chinese and Japanese.
_CHARACTER_COVERAGE = 0.9995
# The sums of unigram depend on the number of threads in their last bits: one number everywhere
# makes the model a function of the text alone.
_NUM_THREADS = 16
_LOG_ERRORS_ONLY = 2
SPACE_SYMBOL = "\u2581"
"""What SentencePiece writes for a space."""

_UNKNOWN = " \u2047 "
"""What it spells for `<unk>`."""


class Subword:
    """A SentencePiece model; U+2581, its symbol for a space, is a space in text too."""

    kind = "sentencepiece"
    suffix = ".model"

    def __init__(self, model: bytes, name: str) -> None:
        """Take the bytes of a model; `name` is what messages call it.

        Raises:
            DamagedError: the bytes are no SentencePiece model.
            ConfigError: its special symbols have other ids than nmtkit's.
        """
        self.data = model
        self._processor = processor = load_processor(model, name)
        found = (processor.unk_id(), processor.bos_id(), processor.eos_id())
        if found != (UNK_ID, BOS_ID, EOS_ID):
            raise ConfigError(
                f"{name}: <unk>, <s>, </s> have the ids {found}, not {(UNK_ID, BOS_ID, EOS_ID)}; "
                "train it with SentencePiece's default ids"
            )
        self.size: int = processor.get_piece_size()

    @staticmethod
    def train(
        lines: Iterable[str],
        algorithm: Algorithm,
        size: int,
        text: str,
        symbols: Sequence[str] = (),
        size_flag: str = "--vocab-size",
    ) -> "Subword":
        """Learn a vocabulary; equal lines give the same one on every machine.

        Args:
            lines: text; SentencePiece skips empty lines and those above 4192 bytes.
            algorithm: how subwords are chosen.
            size: entries, with the 3 special symbols and the 256 bytes.
            text: what messages call the text, such as its languages.
            symbols: tokens that are an entry each, wherever they stand.
            size_flag: what messages tell to set for another size.

        Raises:
            ConfigError: the text cannot give that many entries, or its characters need more.
            DataError: there is no text to learn from.
        """
        failures: list[BaseException] = []
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_remember_failure(lines, failures),
                model_writer=model,
                model_type=algorithm,
                vocab_size=size,
                byte_fallback=True,
                character_coverage=_CHARACTER_COVERAGE,
                normalization_rule_name="nmt_nfkc",
                unk_id=UNK_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                pad_id=-1,
                user_defined_symbols=list(symbols),
                num_threads=_NUM_THREADS,
                minloglevel=_LOG_ERRORS_ONLY,
            )
        except RuntimeError as error:
            if failures:
                raise failures[0] from None
            raise _explain(str(error), size, text, size_flag) from None
        return Subword(model.getvalue(), f"subwords of {text}")

    @staticmethod
    def load(path: Path) -> "Subword":
        """Read a model file.

        Raises:
            ConfigError: the file cannot be read, or has other special ids.
            DamagedError: it is no SentencePiece model.
        """
        try:
            model = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}; give a SentencePiece model") from error
        return Subword(model, str(path))

    def save(self, path: Path) -> None:
        """Write the model as SentencePiece does."""
        path.write_bytes(self.data)

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        """Ids that spell what the vocabulary lacks: <unk> and the bytes."""
        return frozenset({UNK_ID, *filter(self._processor.is_byte, range(self.size))})

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line, without special symbols; a blank line has none."""
        ids: list[int] = self._processor.encode(line)
        return ids

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Return no symbol, and the line: nothing in it is meant for the whole of it."""
        return "", line

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, begin and end symbols skipped."""
        text: str = self._processor.decode([i for i in ids if i not in (BOS_ID, EOS_ID)])
        return text

    def normalise(self, line: str) -> str:
        """Return what `encode` sees of a line: NFKC, single spaces, none at the ends."""
        return normalised(self._processor, line)

    def piece(self, index: int) -> str:
        """Return the entry of an id as SentencePiece spells it."""
        text: str = self._processor.id_to_piece(index)
        return text

    def words(self, ids: Sequence[int]) -> list[int]:
        """Number, from 0, the word of `decode(ids)` between spaces that each token is part of.

        A space belongs to the word after it, or to the last one if none follows. What is unknown is
        spelled between spaces, and so is a word of its own.
        """
        return word_numbers(ids, self.piece)


def word_numbers(ids: Sequence[int], piece: Callable[[int], str]) -> list[int]:
    """Number, from 0, the word that each token of a text is part of; see `Subword.words`."""
    numbers = []
    num_begun, is_inside = 0, False
    for index in ids:
        text = _spelled(index, piece)
        is_inside = is_inside and not text.startswith(" ")
        numbers.append(num_begun - is_inside)
        if text.strip(" "):
            num_begun += not is_inside
            is_inside = not text.endswith(" ")
    last = max(0, num_begun - 1)
    return [min(number, last) for number in numbers]


def _spelled(index: int, piece: Callable[[int], str]) -> str:
    """Return what SentencePiece spells for an id in the midst of a text."""
    if index in (BOS_ID, EOS_ID):
        return ""
    return _UNKNOWN if index == UNK_ID else piece(index).replace(SPACE_SYMBOL, " ")


def load_processor(model: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    """Load the bytes of a model; DamagedError, which calls it `name`, if they are none."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
    except (RuntimeError, UnicodeDecodeError):  # the latter of the former's message
        raise DamagedError(
            f"{name}: not a SentencePiece model, or damaged; copy or train it again"
        ) from None
    return processor


def normalised(processor: sentencepiece.SentencePieceProcessor, line: str) -> str:
    """Return what a model sees of a line, spaces as spaces and none at the ends."""
    text: str = processor.normalize(line)
    return text.replace(SPACE_SYMBOL, " ").removeprefix(" ")


def _remember_failure(lines: Iterable[str], failures: list[BaseException]) -> Iterator[str]:
    """Pass lines on; SentencePiece turns any error of its reader into a RuntimeError."""
    try:
        yield from lines
    except BaseException as error:
        failures.append(error)
        raise


def _explain(message: str, size: int, text: str, size_flag: str) -> ConfigError | DataError:
    """Turn SentencePiece's message into one that says what to do."""
    too_high = re.search(r"Vocabulary size too high .* value <= (\d+)", message)
    if too_high:
        return ConfigError(
            f"a vocabulary of {size} entries is more than the text of {text} gives; set "
            f"{size_flag} to at most {too_high[1]}"
        )
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if too_low:
        return ConfigError(
            f"a vocabulary of {size} entries cannot hold the characters of {text}, 256 bytes and "
            f"3 special symbols; set {size_flag} to at least {too_low[1]}"
        )
    return DataError(
        f"no vocabulary can be learnt from the text of {text}: no line has text within 4192 "
        f"bytes; check the files (SentencePiece says: {message.strip()})"
    )
