"""The codec of a dataset or model: converts lines to ids and back, for source and target.

It is saved as a folder: codec.json, and the files of one shared vocabulary or of one per side.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nmtkit.config.metrics import TargetType
from nmtkit.errors import RESTORE, ConfigError, DamagedError, DataError
from nmtkit.parsing.linearize import complete, summarize_repairs
from nmtkit.parsing.vocabulary import TreeTokens, check_parses
from nmtkit.symbols import EOS_ID
from nmtkit.text.cleaned import NORMAL_FORMS, Cleaned, Cleaning, cleaned, steps_before
from nmtkit.text.corpus import Corpus
from nmtkit.text.marian import UNKNOWN_LANGUAGES, MarianVocabulary
from nmtkit.text.subword import Subword
from nmtkit.text.tokenized import Tokenized
from nmtkit.text.words import Words

_FORMAT = "nmtkit-codec"
_VERSION = 3
_PREPARATION = ("tokenizer", "unescape", "normalize")


class Vocabulary(Protocol):
    """One language's mapping between text and ids, without the end symbol."""

    @property
    def kind(self) -> str:
        """Name of the kind in codec.json."""

    @property
    def segmentation(self) -> str:
        """Name of the segmentation in the manifest of a dataset."""

    @property
    def suffix(self) -> str:
        """Suffix of the file name."""

    @property
    def size(self) -> int:
        """V, the number of ids."""

    @property
    def data(self) -> bytes:
        """The saved bytes; vocabularies with equal bytes behave equally."""

    @property
    def unknown_ids(self) -> frozenset[int]:
        """Ids that stand for text outside the vocabulary: <unk> and the bytes of byte fallback."""

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line; a blank line has none."""

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Split the language symbol, such as `>>fra<<`, from the beginning of a line.

        Returns:
            the symbol, or "", and the rest. If the line is split, each part needs the symbol.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids without begin and end symbols."""

    def normalize(self, line: str) -> str:
        """Return the normalised line, which equals `decode(encode(line))` for known text."""

    def piece(self, index: int) -> str:
        """Return the entry of an id."""

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        """Return the index, from 0, of the space-separated word that each token is part of."""

    def save(self, path: Path) -> None:
        """Write the file, and files with the same stem if the kind has more than one."""


class VocabularyClass(Protocol):
    """The class that implements a kind of vocabulary."""

    @property
    def kind(self) -> str:
        """See `Vocabulary`."""

    @property
    def suffix(self) -> str:
        """See `Vocabulary`."""

    def load(self, path: Path) -> Vocabulary:
        """Read a file; ConfigError or DataError if it cannot be used."""


def _as_decoded(text: str, _source_line: str) -> tuple[str, bool | None]:
    return text, None


def _no_summary(_counts: Counter[bool | None]) -> str:
    return ""


def _accept(_corpora: Sequence[Corpus]) -> None:
    pass


@dataclass(frozen=True)
class Kind:
    """Facts about a kind of vocabulary.

    Attributes:
        vocabulary: its class.
        target_type: type of target lines with this vocabulary.
        is_tokenizable: the text may be cleaned, and Moses may tokenise it, first.
        is_per_side: each side has its own files, even if both share the ids.
        check: reads the text of a dataset; DataError for a line that cannot be encoded.
        complete: see `TextCodec.complete`.
        summarize: returns a line about outputs, counted by the second value of `complete`; "" =
            nothing to report.
        no_export: why models with this target cannot be exported, as other libraries lack
            `complete`; "" = they can.
    """

    vocabulary: VocabularyClass
    target_type: TargetType = "text"
    is_tokenizable: bool = False
    is_per_side: bool = False
    check: Callable[[Sequence[Corpus]], None] = _accept
    complete: Callable[[str, str], tuple[str, bool | None]] = _as_decoded
    summarize: Callable[[Counter[bool | None]], str] = _no_summary
    no_export: str = ""


KINDS: dict[str, Kind] = {
    "sentencepiece": Kind(Subword, is_tokenizable=True),
    "words": Kind(Words, is_tokenizable=True),
    "marian": Kind(MarianVocabulary, is_per_side=True),
    "trees": Kind(
        TreeTokens,
        target_type="trees",
        check=check_parses,
        complete=complete,
        summarize=summarize_repairs,
        no_export="the words of the source, which belong in the trees, cannot be put there",
    ),
}
"""Kinds of vocabulary by their names in codec.json."""


@dataclass(frozen=True)
class TextCodec:
    """The vocabularies of source and target, which may be of different kinds.

    With `is_shared`, an id stands for the same entry on both sides. Both then use one vocabulary;
    only Marian's has a segmentation model for each side.
    """

    source_lang: str
    target_lang: str
    source: Vocabulary
    target: Vocabulary
    is_shared: bool

    def encode_source(self, line: str) -> list[int]:
        """Return the ids of a source line with the end symbol; a blank line gives [EOS_ID]."""
        return [*self.source.encode(line), EOS_ID]

    def encode_target(self, line: str) -> list[int]:
        """Return the ids of a target line with the end symbol; a blank line gives [EOS_ID].

        Raises:
            DataError: the line is not of the target's type.
        """
        return [*self.target.encode(line), EOS_ID]

    def decode_target(self, ids: Sequence[int]) -> str:
        """Return the target text of ids without begin and end symbols."""
        return self.target.decode(ids)

    def complete(self, text: str, source_line: str) -> tuple[str, bool | None]:
        """Return the final form of a decoded text, and whether it was repaired.

        The second value is None for blank lines and for plain text, which cannot be malformed.
        """
        return KINDS[self.target.kind].complete(text, source_line)

    def accepts_languages(self, source: str, target: str) -> bool:
        """Return whether these are the languages, as far as they are known.

        An imported model need not name its languages.
        """
        return all(
            own == lang or (side.kind == MarianVocabulary.kind and own == unknown)
            for own, lang, side, unknown in zip(
                (self.source_lang, self.target_lang),
                (source, target),
                (self.source, self.target),
                UNKNOWN_LANGUAGES,
                strict=True,
            )
        )

    @property
    def target_type(self) -> TargetType:
        """Type of the target lines, which determines the metrics that can compare them."""
        return KINDS[self.target.kind].target_type

    @property
    def segmentation(self) -> str:
        """Description of the segmentation of both sides, such as `nfc, moses, bpe and words`."""
        sides = self.source, self.target
        steps = dict.fromkeys(step for side in sides for step in steps_before(side))
        return ", ".join([*steps, " and ".join(dict.fromkeys(side.segmentation for side in sides))])

    @property
    def fingerprint(self) -> str:
        """sha256 in hex of all that determines the encoding; equal for equal codecs."""
        kinds = dict.fromkeys((self.source.kind, self.target.kind))
        digest = hashlib.sha256(f"{' '.join(kinds)} shared={self.is_shared}".encode())
        for vocabulary in (self.source, self.target):
            digest.update(hashlib.sha256(vocabulary.data).digest())
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the content of codec.json."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "source": _describe(self.source_lang, self.source),
            "target": _describe(self.target_lang, self.target),
            "is_shared": self.is_shared,
        }

    def save(self, folder: Path) -> None:
        """Write codec.json and the vocabularies into an empty folder."""
        text = json.dumps(self.to_json(), indent=2) + "\n"
        (folder / "codec.json").write_text(text, encoding="utf-8")
        names = _names(self.source.kind, self.is_shared)
        for name, vocabulary in zip(names, (self.source, self.target), strict=False):
            vocabulary.save(folder / f"{name}{vocabulary.suffix}")

    @staticmethod
    def load(folder: Path) -> "TextCodec":
        """Read a folder that `save` wrote.

        Raises:
            DamagedError: a file is missing, damaged, or of a later version; names the file.
        """
        description = _read_description(folder / "codec.json")
        sides = description["source"], description["target"]
        names = _names(sides[0]["kind"], description["is_shared"])
        vocabularies = [
            _load_vocabulary(KINDS[side["kind"]], folder, name)
            for name, side in zip(names, sides, strict=False)
        ]
        source, target = (
            _prepared(vocabulary, side)
            for vocabulary, side in zip((vocabularies[0], vocabularies[-1]), sides, strict=True)
        )
        return TextCodec(
            source_lang=sides[0]["lang"],
            target_lang=sides[1]["lang"],
            source=source,
            target=target,
            is_shared=description["is_shared"],
        )


def tokenized(vocabulary: Vocabulary, lang: str) -> Tokenized:
    """Add Moses' tokeniser of a language in front of a vocabulary."""
    assert isinstance(vocabulary, Subword | Words), vocabulary.kind
    return Tokenized(vocabulary, lang)


def _prepared(vocabulary: Vocabulary, side: Mapping[str, Any]) -> Vocabulary:
    """Add the described tokeniser and cleaning in front of a vocabulary."""
    if side["tokenizer"] == "moses":
        vocabulary = tokenized(vocabulary, side["lang"])
    return cleaned(vocabulary, Cleaning(side["unescape"], side["normalize"]))


def _names(source_kind: str, is_shared: bool) -> tuple[str, ...]:
    """Return the file names, without suffix, of the vocabularies."""
    has_one_file = is_shared and not KINDS[source_kind].is_per_side
    return ("shared",) if has_one_file else ("source", "target")


def _describe(lang: str, vocabulary: Vocabulary) -> dict[str, str | bool]:
    cleaning = vocabulary.cleaning if isinstance(vocabulary, Cleaned) else Cleaning(False, "none")
    return {
        "lang": lang,
        "kind": vocabulary.kind,
        "tokenizer": "moses" if "moses" in steps_before(vocabulary) else "none",
        "unescape": cleaning.unescape,
        "normalize": cleaning.normalize,
    }


def _read_description(path: Path) -> dict[str, Any]:
    """Read codec.json and check its fields."""
    if not path.is_file():
        raise DamagedError(f"{path}: missing; {RESTORE}")
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
            f"{path}: this nmtkit reads codecs up to version {_VERSION}, not {version}; "
            "use the nmtkit that wrote it, or a newer one"
        )
    if version < 2:
        description = _upgrade_to_2(description)
    if version < 3:
        description = _upgrade_to_3(description)
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


def _upgrade_to_3(description: Mapping[str, Any]) -> dict[str, Any]:
    """Upgrade version 2, which did not clean text."""
    upgraded = dict(description)
    for name in ("source", "target"):
        side = description.get(name)
        if isinstance(side, dict):
            upgraded[name] = {**side, "unescape": False, "normalize": "none"}
    return upgraded


def _can_share(description: Mapping[str, Any]) -> bool:
    """Return whether the described sides can share one vocabulary."""
    source, target = description["source"], description["target"]
    return all(source[name] == target[name] for name in ("kind", *_PREPARATION))


def _is_side(side: object) -> bool:
    """Return whether the description of a side is valid."""
    if not isinstance(side, dict):
        return False
    kind, tokenizer = side.get("kind"), side.get("tokenizer")
    if kind not in [*KINDS] or not isinstance(side.get("lang"), str):
        return False
    form = side.get("normalize")
    if tokenizer not in ("none", "moses") or form not in NORMAL_FORMS:
        return False
    is_plain = tokenizer == form == "none" and side.get("unescape") is False
    return isinstance(side.get("unescape"), bool) and (is_plain or KINDS[kind].is_tokenizable)


def _load_vocabulary(kind: Kind, folder: Path, name: str) -> Vocabulary:
    path = folder / f"{name}{kind.vocabulary.suffix}"
    if not path.is_file():
        raise DamagedError(f"{path}: missing; {RESTORE}")
    try:
        return kind.vocabulary.load(path)
    except (ConfigError, DataError) as error:
        raise DamagedError(f"damaged codec ({error}); {RESTORE}") from error
