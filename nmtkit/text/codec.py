"""The codec of a dataset or model: line to ids, ids to line, for its two languages.

Saved as a folder: codec.json, and the files of one vocabulary a side or of one that both share.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nmtkit.config.metrics import TargetType
from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.parsing.linearize import complete
from nmtkit.parsing.vocabulary import TreeTokens, check_parses
from nmtkit.storage.manifest import RESTORE
from nmtkit.symbols import EOS_ID
from nmtkit.text.corpus import Corpus
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword
from nmtkit.text.tokenised import Tokenised
from nmtkit.text.words import Words

_FORMAT = "nmtkit-codec"
_VERSION = 2


class Vocabulary(Protocol):
    """One language's mapping between text and ids, without the end symbol."""

    @property
    def kind(self) -> str:
        """The name of the kind in codec.json."""

    @property
    def suffix(self) -> str:
        """The suffix of its file's name."""

    @property
    def size(self) -> int:
        """V, the number of ids."""

    @property
    def data(self) -> bytes:
        """The bytes of what is saved, which decide everything the vocabulary does."""

    @property
    def unknown_ids(self) -> frozenset[int]:
        """Ids for what it lacks: <unk>, and the bytes of characters that are spelled out."""

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line; a blank line has none."""

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Return the symbol that a line begins with, such as `>>fra<<`, or "", and the rest.

        The symbol applies to the whole text and belongs before each part of it.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, begin and end symbols skipped."""

    def normalise(self, line: str) -> str:
        """Return what encoding keeps: on known text, `decode(encode(line))` is just this."""

    def piece(self, index: int) -> str:
        """Return the entry of an id."""

    def words(self, ids: Sequence[int]) -> list[int]:
        """Number, from 0, the word between spaces that each token is part of."""

    def save(self, path: Path) -> None:
        """Write the file, and others of its name if the kind has any."""


class VocabularyClass(Protocol):
    """The class of the vocabularies of a kind."""

    @property
    def kind(self) -> str:
        """See `Vocabulary`."""

    @property
    def suffix(self) -> str:
        """See `Vocabulary`."""

    def load(self, path: Path) -> Vocabulary:
        """Read a file; ConfigError or DataError where it cannot be used."""


def _as_decoded(text: str, _source_line: str) -> tuple[str, bool | None]:
    return text, None


def _accept(_corpora: Sequence[Corpus]) -> None:
    pass


@dataclass(frozen=True)
class Kind:
    """Facts about a kind of vocabulary.

    Attributes:
        vocabulary: its class.
        target_type: type of the lines of a target with this vocabulary.
        is_tokenisable: Moses may tokenise the text before it.
        is_per_side: where both sides share the ids, each still has files of its own.
        check: reads the text of a dataset; DataError for a line that cannot be encoded.
        complete: see `TextCodec.complete`.
    """

    vocabulary: VocabularyClass
    target_type: TargetType = "text"
    is_tokenisable: bool = False
    is_per_side: bool = False
    check: Callable[[Sequence[Corpus]], None] = _accept
    complete: Callable[[str, str], tuple[str, bool | None]] = _as_decoded


KINDS: dict[str, Kind] = {
    "sentencepiece": Kind(Subword, is_tokenisable=True),
    "words": Kind(Words, is_tokenisable=True),
    "marian": Kind(MarianVocabulary, is_per_side=True),
    "trees": Kind(TreeTokens, target_type="trees", check=check_parses, complete=complete),
}
"""Kinds of vocabulary, by their names in codec.json."""


@dataclass(frozen=True)
class TextCodec:
    """Two vocabularies, which may be of different kinds.

    With `is_shared` an id stands for the same entry on both sides. They then use one vocabulary,
    except Marian's, which has a segmentation model for each side.
    """

    source_lang: str
    target_lang: str
    source: Vocabulary
    target: Vocabulary
    is_shared: bool

    def encode_source(self, line: str) -> list[int]:
        """Return the ids of a source line and the end symbol; a blank line is [EOS_ID]."""
        return [*self.source.encode(line), EOS_ID]

    def encode_target(self, line: str) -> list[int]:
        """Return the ids of a target line and the end symbol; a blank line is [EOS_ID].

        Raises:
            DataError: the line is not of the target's type.
        """
        return [*self.target.encode(line), EOS_ID]

    def decode_target(self, ids: Sequence[int]) -> str:
        """Return the target text of ids, begin and end symbols skipped."""
        return self.target.decode(ids)

    def complete(self, text: str, source_line: str) -> tuple[str, bool | None]:
        """Return the final form of a decoded text, and whether it had to be repaired.

        The second is None for plain text, which cannot be malformed, and for blank lines.
        """
        return KINDS[self.target.kind].complete(text, source_line)

    @property
    def target_type(self) -> TargetType:
        """Type of the target's lines, which decides what metrics can compare."""
        return KINDS[self.target.kind].target_type

    @property
    def fingerprint(self) -> str:
        """The sha256 of what decides encoding, in hex; equal for equal codecs."""
        kinds = dict.fromkeys((self.source.kind, self.target.kind))
        digest = hashlib.sha256(f"{' '.join(kinds)} shared={self.is_shared}".encode())
        for vocabulary in (self.source, self.target):
            digest.update(hashlib.sha256(vocabulary.data).digest())
        return digest.hexdigest()

    def save(self, folder: Path) -> None:
        """Write codec.json and the vocabularies into an empty folder."""
        description = {
            "format": _FORMAT,
            "version": _VERSION,
            "source": _describe(self.source_lang, self.source),
            "target": _describe(self.target_lang, self.target),
            "is_shared": self.is_shared,
        }
        text = json.dumps(description, indent=2) + "\n"
        (folder / "codec.json").write_text(text, encoding="utf-8")
        names = _names(self.source.kind, self.is_shared)
        for name, vocabulary in zip(names, (self.source, self.target), strict=False):
            vocabulary.save(folder / f"{name}{vocabulary.suffix}")

    @staticmethod
    def load(folder: Path) -> "TextCodec":
        """Read what `save` wrote.

        Raises:
            DamagedError: a file is missing, damaged, or of a later version; it is named.
        """
        description = _read_description(folder / "codec.json")
        sides = description["source"], description["target"]
        names = _names(sides[0]["kind"], description["is_shared"])
        vocabularies = [
            _load_vocabulary(KINDS[side["kind"]], folder, name)
            for name, side in zip(names, sides, strict=False)
        ]
        source, target = (
            vocabulary if side["tokenizer"] == "none" else tokenised(vocabulary, side["lang"])
            for vocabulary, side in zip((vocabularies[0], vocabularies[-1]), sides, strict=True)
        )
        return TextCodec(
            source_lang=sides[0]["lang"],
            target_lang=sides[1]["lang"],
            source=source,
            target=target,
            is_shared=description["is_shared"],
        )


def tokenised(vocabulary: Vocabulary, lang: str) -> Tokenised:
    """Put Moses' tokeniser of a language before a vocabulary."""
    assert isinstance(vocabulary, Subword | Words), vocabulary.kind
    return Tokenised(vocabulary, lang)


def _names(source_kind: str, is_shared: bool) -> tuple[str, ...]:
    """Return the names of the files of the source's vocabulary and, if it has its own, target's."""
    is_one = is_shared and not KINDS[source_kind].is_per_side
    return ("shared",) if is_one else ("source", "target")


def _describe(lang: str, vocabulary: Vocabulary) -> dict[str, str]:
    tokenizer = "moses" if isinstance(vocabulary, Tokenised) else "none"
    return {"lang": lang, "kind": vocabulary.kind, "tokenizer": tokenizer}


def _read_description(path: Path) -> dict[str, Any]:
    """Read codec.json and check its fields."""
    try:
        description: dict[str, Any] = json.loads(path.read_bytes())
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}; {RESTORE}") from error
    except (ValueError, RecursionError):
        raise DamagedError(f"{path}: not JSON; {RESTORE}") from None
    if not isinstance(description, dict) or description.get("format") != _FORMAT:
        raise DamagedError(f"{path}: not a codec; {RESTORE}")
    version = description.get("version")
    if not isinstance(version, int) or not 1 <= version <= _VERSION:
        raise DamagedError(
            f"{path}: version {version} of the codec, which this nmtkit does not read (it reads "
            f"up to {_VERSION}); use the nmtkit that wrote it, or a newer one"
        )
    if version < 2:
        description = _upgrade_to_2(description)
    wrong = [name for name in ("source", "target") if not _is_side(description.get(name))]
    if not isinstance(description.get("is_shared"), bool) or (
        description["is_shared"] and not wrong and not _can_share(description)
    ):
        wrong.append("is_shared")
    if wrong:
        raise DamagedError(f"{path}: missing or wrong: {', '.join(wrong)}; {RESTORE}")
    return description


def _upgrade_to_2(description: Mapping[str, Any]) -> dict[str, Any]:
    """Upgrade version 1, which had one kind for both sides and no tokenizer."""
    return {
        **{
            side: {
                "lang": description.get(f"{side}_lang"),
                "kind": description.get("kind"),
                "tokenizer": "none",
            }
            for side in ("source", "target")
        },
        "is_shared": description.get("is_shared"),
    }


def _can_share(description: Mapping[str, Any]) -> bool:
    """Return whether one vocabulary can serve both sides as they are described."""
    source, target = description["source"], description["target"]
    return all(source[name] == target[name] for name in ("kind", "tokenizer"))


def _is_side(side: object) -> bool:
    """Return whether the description of a side can be used."""
    if not isinstance(side, dict):
        return False
    kind, tokenizer = side.get("kind"), side.get("tokenizer")
    if kind not in [*KINDS] or not isinstance(side.get("lang"), str):
        return False
    return tokenizer == "none" or (tokenizer == "moses" and KINDS[kind].is_tokenisable)


def _load_vocabulary(kind: Kind, folder: Path, name: str) -> Vocabulary:
    path = folder / f"{name}{kind.vocabulary.suffix}"
    if not path.is_file():
        raise DamagedError(f"{path}: missing; {RESTORE}")
    try:
        return kind.vocabulary.load(path)
    except (ConfigError, DataError) as error:
        raise DamagedError(f"damaged codec ({error}); {RESTORE}") from error
