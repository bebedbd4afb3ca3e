"""The codec of a dataset or model: converts lines to ids and back, for source and target.

It is saved as a folder: codec.json, and the files of one shared vocabulary or of one per side.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from nmtkit.config.metrics import TargetType, base_language
from nmtkit.errors import RESTORE, ConfigError, DamagedError, DataError
from nmtkit.parsing.vocabulary import TREE_VOCABULARIES
from nmtkit.storage.json_data import JsonError, decode, decode_text
from nmtkit.symbols import EOS_ID, source_symbol, target_symbol
from nmtkit.text.closed_words import Words
from nmtkit.text.marian import UNKNOWN_LANGUAGES, MarianVocabulary
from nmtkit.text.subword import SentencePieceVocabulary, Subword
from nmtkit.text.vocabulary import NormalForm, Steps, Vocabulary
from nmtkit.text.words import joined

_OLDEST_VERSION = 3
_VERSION = 4

SEVERAL = "mul"
"""The code of ISO 639 for several languages."""


KINDS: dict[str, type[Vocabulary]] = {
    **{one.kind: one for one in (Subword, Words, MarianVocabulary)},
    **{one.kind: one for one in TREE_VOCABULARIES.values()},
}
"""Kinds of vocabulary by their names in codec.json."""


@dataclass(frozen=True)
class SideDescription:
    """A side in codec.json: its language, the kind of its vocabulary, and the steps before it."""

    lang: str
    kind: str
    tokenizer: Literal["none", "moses"]
    unescape: bool
    normalize: NormalForm

    @property
    def steps(self) -> Steps:
        """The steps before the vocabulary."""
        lang = self.lang if self.tokenizer == "moses" else ""
        return Steps(self.unescape, self.normalize, lang)


@dataclass(frozen=True)
class Description:
    """The content of codec.json."""

    format: Literal["nmtkit-codec"]
    version: int
    source: SideDescription
    target: SideDescription
    is_shared: bool
    directions: tuple[str, ...] = ()
    has_source_symbols: bool = False


@dataclass(frozen=True)
class TextCodec:
    """The vocabularies of source and target, which may be of different kinds.

    With `is_shared`, an id stands for the same entry on both sides. Both then use one vocabulary;
    only Marian's has a segmentation model for each side.

    Attributes:
        source_lang, target_lang: the languages; `SEVERAL` if a side has more than one.
        source, target: their vocabularies.
        is_shared: see above.
        directions: such as en-sv, in which each source line begins with the symbol of its target
            language; none of two languages.
        has_source_symbols: the symbol of the source language follows.
    """

    source_lang: str
    target_lang: str
    source: Vocabulary
    target: Vocabulary
    is_shared: bool
    directions: tuple[str, ...] = ()
    has_source_symbols: bool = False

    def with_directions(self, directions: Iterable[str], has_source_symbols: bool) -> "TextCodec":
        """Return the codec with further directions."""
        found = tuple(dict.fromkeys([*self.directions, *directions]))
        languages = [[*dict.fromkeys(side)] for side in zip(*map(languages_of, found), strict=True)]
        source, target = (side[0] if len(side) == 1 else SEVERAL for side in languages)
        return replace(
            self,
            source_lang=source,
            target_lang=target,
            directions=found,
            has_source_symbols=has_source_symbols,
        )

    @property
    def symbols(self) -> list[str]:
        """The language symbols of the directions."""
        return symbols_of(self.directions, self.has_source_symbols)

    @property
    def target_langs(self) -> list[str]:
        """The target languages that the model has symbols of; none of two languages."""
        if isinstance(self.source, MarianVocabulary):
            return self.source.languages
        return [*dict.fromkeys(target for _, target in map(languages_of, self.directions))]

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Split the language symbols, such as `<2sv>` or `>>fra<<`, from the beginning of a line.

        Returns:
            the symbols, or "", and the rest. If the line is split, each part needs them.
        """
        if isinstance(self.source, MarianVocabulary):
            return self.source.split_symbol(line)
        words = takewhile({*self.symbols}.__contains__, line.split(" ", 2)) if self.symbols else ()
        symbol = " ".join(words)
        return symbol, line[len(symbol) :]

    def encode_source(self, line: str) -> list[int]:
        """Return the ids of a source line with the end symbol; a blank line gives [EOS_ID].

        Raises:
            DataError: the line begins with a language symbol that an imported model does not have.
        """
        if isinstance(self.source, MarianVocabulary):
            self.source.check_language(line)
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

    def join_target(self, texts: Iterable[str]) -> str:
        """Join the translations of a line's parts, by spaces if their script has them."""
        if self.target.is_segmented and not self.target.steps.moses_lang:
            return " ".join(filter(None, texts))
        return joined(texts, are_sentences=False)

    def complete(self, text: str, source_line: str) -> tuple[str, bool | None]:
        """Return the final form of a decoded text; see `Vocabulary.complete`."""
        return self.target.complete(text, source_line)

    def accepts_languages(self, source: str, target: str) -> bool:
        """Return whether these are the languages, as far as they are known.

        An imported model need not name its languages.
        """
        own, unknown = (self.source_lang, self.target_lang), UNKNOWN_LANGUAGES
        is_imported = isinstance(self.source, MarianVocabulary)
        return all(
            found == wanted or (is_imported and found == name)
            for found, wanted, name in zip(own, (source, target), unknown, strict=True)
        )

    def with_marks(self, number: int) -> "TextCodec":
        """Return a codec with marks in both vocabularies.

        Raises:
            ConfigError: a vocabulary is not of raw text that SentencePiece segments.
        """
        marked = []
        for side in (self.source, self.target):
            if not isinstance(side, SentencePieceVocabulary) or side.steps.moses_lang:
                raise ConfigError(
                    f"marks are for raw text that SentencePiece segments, and a vocabulary of the "
                    f"model is of {self.segmentation}; leave out --marks [vocabulary.marks]"
                )
            marked.append(side.with_marks(number))
        source, target = marked
        return replace(self, source=source, target=source if self.target is self.source else target)

    @property
    def num_marks(self) -> int:
        """Number of marks that both vocabularies have."""
        return min(len(side.marks or ()) for side in (self.source, self.target))

    @property
    def language_pair(self) -> str:
        """The languages as --language-pair names them, such as `en-de`."""
        return f"{base_language(self.source_lang)}-{base_language(self.target_lang)}"

    @property
    def target_type(self) -> TargetType:
        """Type of the target lines, which determines the metrics that can compare them."""
        return self.target.target_type

    @property
    def segmentation(self) -> str:
        """Description of the segmentation of both sides, such as `nfc, moses, bpe and words`."""
        sides = self.source, self.target
        names = dict.fromkeys(name for side in sides for name in side.steps.names)
        return ", ".join([*names, " and ".join(dict.fromkeys(side.segmentation for side in sides))])

    @property
    def fingerprint(self) -> str:
        """sha256 in hex of all that determines the encoding; equal for equal codecs."""
        kinds = dict.fromkeys((self.source.kind, self.target.kind))
        digest = hashlib.sha256(f"{' '.join(kinds)} shared={self.is_shared}".encode())
        for vocabulary in (self.source, self.target):
            digest.update(hashlib.sha256(vocabulary.data).digest())
        return digest.hexdigest()

    @property
    def description(self) -> dict[str, object]:
        """The content of codec.json."""
        symbols = {"directions": self.directions, "has_source_symbols": self.has_source_symbols}
        return {
            "format": "nmtkit-codec",
            "version": _VERSION,
            "source": _described(self.source_lang, self.source),
            "target": _described(self.target_lang, self.target),
            "is_shared": self.is_shared,
            **(symbols if self.directions else {}),
        }

    def save(self, folder: Path) -> None:
        """Write codec.json and the vocabularies into an empty folder."""
        text = json.dumps(self.description, indent=2) + "\n"
        (folder / "codec.json").write_text(text, encoding="utf-8")
        names = _names(self.source.kind, self.is_shared)
        for name, vocabulary in zip(names, (self.source, self.target), strict=False):
            vocabulary.save(folder / f"{name}{vocabulary.suffix}")

    @staticmethod
    def load(folder: Path) -> "TextCodec":
        """Read a folder that `save` wrote.

        Raises:
            DamagedError: a file is missing, damaged, or of another version; names the file.
        """
        description = _read_description(folder / "codec.json")
        source, target = description.source, description.target
        names = _names(source.kind, description.is_shared)
        vocabularies = [
            _load_vocabulary(KINDS[side.kind], folder, name)
            for name, side in zip(names, (source, target), strict=False)
        ]
        return TextCodec(
            source_lang=source.lang,
            target_lang=target.lang,
            source=vocabularies[0].with_steps(source.steps),
            target=vocabularies[-1].with_steps(target.steps),
            is_shared=description.is_shared,
            directions=description.directions,
            has_source_symbols=description.has_source_symbols,
        )


def languages_of(direction: str) -> tuple[str, str]:
    """Return the source and target language of a direction such as en-sv."""
    source, _, target = direction.partition("-")
    return source, target


def symbols_of(directions: Iterable[str], has_source_symbols: bool) -> list[str]:
    """Return the language symbols of directions: of their targets, and of their sources."""
    pairs = [*map(languages_of, directions)]
    targets = [target_symbol(target) for _, target in pairs]
    return targets + [source_symbol(source) for source, _ in pairs if has_source_symbols]


def _described(lang: str, vocabulary: Vocabulary) -> dict[str, object]:
    """Return a side in codec.json."""
    steps = vocabulary.steps
    tokenizer = "moses" if steps.moses_lang else "none"
    written = {"tokenizer": tokenizer, "unescape": steps.unescape, "normalize": steps.normalize}
    return {"lang": lang, "kind": vocabulary.kind, **written}


def _names(source_kind: str, is_shared: bool) -> tuple[str, ...]:
    """Return the file names, without suffix, of the vocabularies."""
    has_one_file = is_shared and not KINDS[source_kind].is_per_side
    return ("shared",) if has_one_file else ("source", "target")


def _read_description(path: Path) -> Description:
    """Read codec.json and check its fields."""
    if not path.is_file():
        raise DamagedError(f"{path}: missing; {RESTORE}")
    try:
        values = decode_text(dict[str, Any], path.read_bytes())
        version = values.get("version")
        if not isinstance(version, int) or _OLDEST_VERSION <= version <= _VERSION:
            return _checked(decode(Description, values))
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}; {RESTORE}") from error
    except JsonError as error:
        raise DamagedError(f"{path}: {error}; {RESTORE}") from None
    raise DamagedError(
        f"{path}: this nmtkit reads codecs of versions {_OLDEST_VERSION} to {_VERSION}, not "
        f"{version}; use the nmtkit that wrote it, or make it again"
    )


def _checked(described: Description) -> Description:
    """Return a description; JsonError if a kind is unknown, takes no steps, or is not shared."""
    for name, side in (("source", described.source), ("target", described.target)):
        if side.kind not in KINDS:
            raise JsonError("unknown", f"{name}.kind")
        if side.steps.names and not KINDS[side.kind].is_preparable:
            raise JsonError("of a vocabulary that takes no steps", f"{name}.kind")
    same = replace(described.source, lang=described.target.lang)
    if described.is_shared and described.target != same:
        raise JsonError("true, but the sides differ", "is_shared")
    if not all(all(languages_of(one)) for one in described.directions):
        raise JsonError("not all two languages", "directions")
    return described


def _load_vocabulary(kind: type[Vocabulary], folder: Path, name: str) -> Vocabulary:
    path = folder / f"{name}{kind.suffix}"
    if not path.is_file():
        raise DamagedError(f"{path}: missing; {RESTORE}")
    try:
        return kind.load(path)
    except (ConfigError, DataError) as error:
        raise DamagedError(f"damaged codec ({error}); {RESTORE}") from error
