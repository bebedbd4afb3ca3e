"""SentencePiece vocabularies: raw text to subword ids and back.

Every vocabulary trained here has byte fallback, so no text is unknown, and
decode(encode(line)) == normalize(line) for any line. SentencePiece's symbol for a space, U+2581, is
text like any other: the model's own normalisation replaces it, and the model's decoding restores
it. Models trained elsewhere have no such rule and read it as a space.
Source: Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226
"""

import io
import re
import sys
from abc import abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Literal, Self

import numpy as np
import sentencepiece

from nmtkit.config.problems import shown
from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.lines import read_whole
from nmtkit.text.marks import Marks, mark_names
from nmtkit.text.subword_file import SubwordFile, with_controls, with_denormalizer, with_pieces
from nmtkit.text.vocabulary import Vocabulary

Algorithm = Literal["bpe", "unigram"]

# Part of a text that characters with entries cover; the rarest are spelled in bytes, since one
# occurrence is too few to train an embedding. SentencePiece's default, made for thousands of
# characters. A small alphabet would lose letters and digits, so common characters have entries too.
_CHARACTER_COVERAGE = 0.9995
_COMMON_SHARE = 1e-5
_COMMON_OCCURRENCES = 10
_COUNTED_LINES = 8192

_LONGEST_PIECE_CHARACTERS = 16
_LONGEST_LINE = 4192
"""Bytes of the longest line that SentencePiece learns from; it skips longer ones."""
_SKIPPED = "\u2585"
"""SentencePiece learns from no line with this character."""

_NORMALIZATION = "nmt_nfkc"
_JOINERS = "\u200c\u200d"
"""Characters within words of many scripts; `nmt_nfkc` has a space for the first."""
_IGNORED = (
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # direction
    "\u200b\u2060\ufeff"  # a possible line end, none, and the byte order mark
)
"""Invisible characters without a meaning of their own: Default_Ignorable_Code_Point of Unicode."""
# The number of threads changes the last bits of unigram's sums, so it is the same everywhere.
_NUM_THREADS = 16
_LOG_ERRORS_ONLY = 2
SPACE_SYMBOL = "\u2581"
"""SentencePiece's symbol for a space."""

_ESCAPED_SPACE_SYMBOL = "\uff3f"
"""Stands for U+2581 of a text; no other text has it, as it becomes `_`, which NFKC does too."""

_LONGEST_PIECE = 7999
"""Bytes of the longest piece that SentencePiece loads."""

_UNKNOWN = " \u2047 "
"""SentencePiece's text for `<unk>`."""


@dataclass(frozen=True)
class SubwordRules:
    """Rules of a vocabulary that is trained.

    Attributes:
        normalizes: text is normalised by NFKC, without invisible characters; False = unchanged.
        splits_digits: no entry has more than one digit.
    """

    normalizes: bool = True
    splits_digits: bool = False


USUAL_RULES = SubwordRules()


class SentencePieceVocabulary(Vocabulary):
    """A vocabulary of text that a SentencePiece model segments.

    Attributes:
        model: the bytes of the model.
    """

    suffix = ".model"

    def __init__(self, model: bytes, name: str) -> None:
        """Load a model; DamagedError, with this name, if the bytes are none."""
        self.model = model
        self._processor = load_processor(model, name)

    def with_marks(self, number: int) -> Self:
        """Return a vocabulary with marks at its end; those that it has are left out."""
        return self._with_marks(mark_names(number)).with_steps(self.steps)

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token; a character in bytes is the text of its last one."""
        texts = [""]
        decoder = getincrementaldecoder("utf-8")("replace")
        for index in ids:
            if index in self.unknown_ids and index != UNK_ID:
                texts.append(decoder.decode(bytes.fromhex(self.piece(index)[3:5])))  # <0xE4>
            else:
                texts[-1] += decoder.decode(b"", final=True)  # half a character
                texts.append("" if index in self._silent else self._spelled(index))
        texts[-1] += decoder.decode(b"", final=True)
        return texts[1:]

    @abstractmethod
    def _segment(self, line: str) -> list[str]:
        """Return the pieces of a line as the model spells them."""

    @abstractmethod
    def _with_marks(self, names: Sequence[str]) -> Self: ...

    @cached_property
    def _silent(self) -> frozenset[int]:
        """Ids without a text."""
        return frozenset({BOS_ID, EOS_ID, *(self.marks.ids if self.marks else ())})

    def _spelled(self, index: int) -> str:
        """Return SentencePiece's text for an id inside a sequence."""
        return _UNKNOWN if index == UNK_ID else self.piece(index).replace(SPACE_SYMBOL, " ")

    def _normalize(self, line: str) -> str:
        """Return a line as the model normalises it, with plain spaces and none at the ends."""
        # Decoding restores U+2581 if the model has the rule, and only then.
        literal: str = self._processor.decode_pieces([_ESCAPED_SPACE_SYMBOL])
        return _as_text(self._processor.normalize(line), literal)

    def _spell(self, line: str) -> list[str]:
        ids, pieces = self._encode(line), self._segment(line)
        return [
            piece.replace(SPACE_SYMBOL, " ") if index == UNK_ID else text
            for text, index, piece in zip(self.texts(ids), ids, pieces, strict=True)
        ]

    def _with_pieces(self, tokens: Sequence[str]) -> tuple[list[str], bytes]:
        """Return the pieces of tokens, and the model with those that it lacks."""
        pieces = whole_pieces(tokens, self._normalize)
        unknown = self._processor.unk_id()
        lacking = [piece for piece in pieces if self._processor.piece_to_id(piece) == unknown]
        return pieces, with_pieces(self.model, lacking)

    def _check_whole(self, tokens: Iterable[str]) -> None:
        """Raise DataError for a token that is not encoded as one id."""
        for token in tokens:
            if len(self._encode(token)) != 1:
                raise DataError(
                    f"token {token!r} cannot be one entry of this vocabulary, whose own rules "
                    "split it; leave it out"
                )


class Subword(SentencePieceVocabulary):
    """A SentencePiece model with its own ids."""

    kind = "sentencepiece"
    is_preparable = True

    def __init__(self, model: bytes, name: str) -> None:
        """Load a model.

        Args:
            model: its bytes.
            name: name of the model in messages.

        Raises:
            DamagedError: the bytes are not a SentencePiece model.
            ConfigError: its special symbols have other ids than nmtkit's.
        """
        super().__init__(model, name)
        processor = self._processor
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
        tokens: Sequence[str] = (),
        size_flag: str = "--vocab-size",
        rules: SubwordRules = USUAL_RULES,
    ) -> "Subword":
        """Train a vocabulary; equal lines give an equal vocabulary on every machine.

        Args:
            lines: text, which is held in memory.
            algorithm: bpe or unigram.
            size: number of entries, including the 3 special symbols and the 256 bytes.
            text: name of the text in messages, such as its languages.
            tokens: words that become entries, whole where they follow a space.
            size_flag: option for the size, named in messages.
            rules: how text is normalised, and which pieces there may be.

        Raises:
            ConfigError: the text is too small for this size, or its characters need more entries.
            DataError: there is no text to learn from, or a token cannot be an entry.
        """
        pieces = trained_pieces(tokens, rules)
        text_lines = [*chain.from_iterable(map(_learnable, lines))]
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(text_lines),
                model_writer=model,
                model_type=algorithm,
                vocab_size=size,
                byte_fallback=True,
                character_coverage=_CHARACTER_COVERAGE,
                required_chars=_common_characters(text_lines, rules),
                max_sentencepiece_length=_LONGEST_PIECE_CHARACTERS,
                max_sentence_length=_LONGEST_LINE,
                split_digits=rules.splits_digits,
                normalizer=_normalizer(rules),
                unk_id=UNK_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                pad_id=-1,
                user_defined_symbols=pieces,
                num_threads=_NUM_THREADS,
                minloglevel=_LOG_ERRORS_ONLY,
            )
        except RuntimeError as error:
            raise _explain(str(error), size, text, size_flag) from None
        data = with_denormalizer(model.getvalue(), _decoding_rule())
        return Subword(data, f"subwords of {text}")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a model file.

        Raises:
            ConfigError: the file cannot be read, or its special symbols have other ids.
            DataError: it is too large.
            DamagedError: it is not a SentencePiece model.
        """
        try:
            model = read_whole(path)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}; give a SentencePiece model") from error
        return cls(model, str(path))

    @property
    def content(self) -> bytes:
        """The model file."""
        return self.model

    @cached_property
    def segmentation(self) -> str:
        """SentencePiece's algorithm: "bpe", "unigram", "word" or "char"."""
        return SubwordFile.of(self.model).algorithm

    @cached_property
    def marks(self) -> Marks | None:
        """The marks of the vocabulary; None = it has none."""
        return Marks.of(self._control_id)

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        """Ids that stand for text outside the vocabulary: <unk> and the bytes of byte fallback."""
        return frozenset({UNK_ID, *filter(self._processor.is_byte, range(self.size))})

    def piece(self, index: int) -> str:
        """Return the entry of an id as SentencePiece spells it."""
        text: str = self._processor.id_to_piece(index)
        return text

    def _encode(self, line: str) -> list[int]:
        ids: list[int] = self._processor.encode(line)
        return ids

    def _segment(self, line: str) -> list[str]:
        pieces: list[str] = self._processor.encode(line, out_type=str)
        return pieces

    def _decode(self, ids: Sequence[int]) -> str:
        # SentencePiece skips marks too, but not within the bytes of a character.
        text: str = self._processor.decode([i for i in ids if i not in self._silent])
        return text

    def _with_tokens(self, tokens: Sequence[str]) -> Self:
        _, model = self._with_pieces(tokens)
        extended = type(self)(model, "the extended vocabulary")
        extended._check_whole(tokens)
        return extended

    def _with_marks(self, names: Sequence[str]) -> Self:
        added = [name for name in names if self._control_id(name) is None]
        return type(self)(with_controls(self.model, added), "the vocabulary with marks")

    def _control_id(self, name: str) -> int | None:
        """Return the id of a control piece, which no text has; None = there is none."""
        index: int = self._processor.piece_to_id(name)
        return index if self._processor.is_control(index) else None


def load_processor(model: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    """Load a model from its bytes; DamagedError, with this name, if they are not a model."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
    except (RuntimeError, UnicodeDecodeError):  # decoding the RuntimeError's message may fail
        raise DamagedError(
            f"{name}: not a SentencePiece model, or damaged; copy or train it again, and give its "
            ".model, not its .vocab"
        ) from None
    return processor


def trained_pieces(tokens: Iterable[str], rules: SubwordRules) -> list[str]:
    """Return the pieces of tokens that follow a space, for a model that is trained here.

    Raises:
        DataError: a token is too long, or not one word after normalisation.
    """
    return whole_pieces(
        tokens, lambda line: _as_text(_normalizer(rules).normalize(line), SPACE_SYMBOL)
    )


def whole_pieces(tokens: Iterable[str], normalize: Callable[[str], str]) -> list[str]:
    """Return the pieces of tokens that follow a space, as a model spells its own.

    Args:
        tokens: the tokens.
        normalize: the model's normalisation.

    Raises:
        DataError: a token is too long, or not one word after normalisation.
    """
    words = {token: normalize(token) for token in tokens}
    for token, word in words.items():
        if not word or not {" ", "\0"}.isdisjoint(word):  # a piece cannot have NUL
            raise DataError(
                f"token {token!r} is {word!r} after the vocabulary's normalisation, not one word; "
                "leave it out"
            )
    pieces = [*dict.fromkeys(_as_in_pieces(f" {word}") for word in words.values())]
    for piece in pieces:
        size = len(piece.encode())
        if size > _LONGEST_PIECE:
            raise DataError(
                f"token {shown(piece[1:])} has {size:,} bytes with the symbol for a space, above "
                f"SentencePiece's {_LONGEST_PIECE:,}; leave it out"
            )
    return pieces


@cache
def _normalizer(rules: SubwordRules) -> sentencepiece.SentencePieceNormalizer:
    """Return a normaliser that escapes U+2581; made once, as NFKC takes a second."""
    sentencepiece.set_min_log_level(_LOG_ERRORS_ONLY)
    table = {}
    if rules.normalizes:
        table = dict(sentencepiece.SentencePieceNormalizer(rule_name=_NORMALIZATION).decompile())
        table = {text: found for text, found in table.items() if text not in _JOINERS}
        table |= dict.fromkeys(_IGNORED, "")
    table |= {SPACE_SYMBOL: _ESCAPED_SPACE_SYMBOL, _ESCAPED_SPACE_SYMBOL: "_"}
    return sentencepiece.SentencePieceNormalizer(norm_map=[*table.items()])


def _learnable(line: str) -> Iterator[str]:
    """Yield a line in parts that SentencePiece does not skip, split at spaces if there are any."""
    rest = line.replace(_SKIPPED, " ")
    while len(rest.encode()) > _LONGEST_LINE:
        part = rest.encode()[:_LONGEST_LINE].decode(errors="ignore")
        end = part.rfind(" ") + 1 or len(part)
        yield rest[:end]
        rest = rest[end:]
    yield rest


def _common_characters(lines: Iterable[str], rules: SubwordRules) -> str:
    """Return the characters, other than spaces, that are common in lines after normalisation."""
    normalize = _normalizer(rules).normalize
    counts = np.zeros(sys.maxunicode + 1, np.int64)
    remaining = iter(lines)
    while block := [*islice(remaining, _COUNTED_LINES)]:
        codes = np.frombuffer(normalize(" ".join(block)).encode("utf-32-le"), "<u4")
        counts += np.bincount(codes, minlength=counts.size)
    counts[[ord(SPACE_SYMBOL), 0]] = 0  # which no piece can have
    least = max(_COMMON_OCCURRENCES, _COMMON_SHARE * counts.sum())
    return "".join(map(chr, np.flatnonzero(counts >= least)))


def _decoding_rule() -> bytes:
    """Return the rule that restores U+2581 when ids are decoded; the trainer takes none."""
    return sentencepiece.SentencePieceNormalizer(
        norm_map=[(_ESCAPED_SPACE_SYMBOL, SPACE_SYMBOL)],
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=False,
    ).serialized_normalizer_spec()


def _as_text(normalized_line: str, literal: str) -> str:
    """Return what SentencePiece normalised as text, in which `literal` stands for U+2581."""
    text = normalized_line.replace(SPACE_SYMBOL, " ").lstrip(" ")
    return text.replace(_ESCAPED_SPACE_SYMBOL, literal)


def _as_in_pieces(text: str) -> str:
    """Return a text as pieces spell it."""
    return text.replace(SPACE_SYMBOL, _ESCAPED_SPACE_SYMBOL).replace(" ", SPACE_SYMBOL)


def _explain(message: str, size: int, text: str, size_flag: str) -> ConfigError | DataError:
    """Convert SentencePiece's message into an error that says how to fix it."""
    too_high = re.search(r"Vocabulary size too high .* value <= (\d+)", message)
    if too_high:
        return ConfigError(
            f"a vocabulary of {size} entries is too large for the text of {text}; set "
            f"{size_flag} to at most {too_high[1]}; a tenth of that is enough for so little text"
        )
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if too_low:
        return ConfigError(
            f"a vocabulary of {size} entries is too small for the characters of {text}, 256 bytes "
            f"and 3 special symbols; set {size_flag} to at least {too_low[1]}"
        )
    is_empty = "!sentences_.empty()" in message or "(all_chars_count) > (0)" in message
    reason = "every line is blank; " if is_empty else ""
    return DataError(
        f"no vocabulary can be learnt from the text of {text}: {reason}check the files "
        f"(SentencePiece: {message.strip()})"
    )
