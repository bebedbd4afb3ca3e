"""The dataset folder: memory-mapped ids of sentence pairs.

    manifest.json     contents, counts, recipe, hashes
    codec/            the codec that made the ids
    train.00000.*     the first shard, an even sample of the corpus; further shards as needed
    valid.*           ids of the validation pairs, for the validation loss
    valid.source.txt  the validation text, unchanged, one line per pair; also valid.target.txt
    valid.links.txt   its word alignment, one line per pair, if there is one

Each side of a shard or of the validation pairs has two files. `.source.ids` has the sequences end
to end, each with the end symbol, as uint16 if the vocabularies allow it, else uint32.
`.source.offsets` has the start of each sequence and the total, as uint32. All are little-endian.
With word alignments, `.links.ids` and `.links.offsets` have a sequence per pair in the same form,
as uint16: the source piece and the target piece of each link, as places in the pair from 0.
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from nmtkit.errors import DamagedError
from nmtkit.storage.disk import read_file
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.json_data import decode
from nmtkit.storage.manifest import missing_file_error, verify_files
from nmtkit.text.codec import TextCodec

FORMAT = "nmtkit-dataset"
VERSION = 3

SIDES = ("source", "target")
TRAIN = "train"
VALID = "valid"
LINKS = "links"
ID_TYPES = {"uint16": "<u2", "uint32": "<u4"}
"""Types of ids on disk by their names in manifest.json."""

LINK_TYPE = "uint16"
"""The type of links, a name in `ID_TYPES`."""

OFFSET_TYPE = "<u4"

Ids = NDArray[np.unsignedinteger[Any]]
Offsets = NDArray[np.uint32]
Indices = NDArray[np.int64]

_RESTORE = "restore the folder from a copy, or run `nmtkit preprocess` again"


def id_type_for(vocabulary_size: int) -> str:
    """Return the name of the smallest type that can hold every id."""
    largest = {name: int(np.iinfo(id_type).max) for name, id_type in ID_TYPES.items()}
    fitting = [name for name in largest if vocabulary_size - 1 <= largest[name]]
    return min(fitting, key=largest.__getitem__)


@dataclass(frozen=True)
class ValidText:
    """The validation text of a direction; the texts follow each other in the files.

    Attributes:
        direction: such as en-sv; "" = the dataset is of two languages.
        num_lines: number of its lines.
        num_pairs: number of its pairs with ids.
    """

    direction: str
    num_lines: int
    num_pairs: int


@dataclass(frozen=True)
class Contents:
    """Fields of the manifest that are needed to read a dataset.

    Attributes:
        id_type: a name in `ID_TYPES`.
        weights: per corpus, occurrences of each of its pairs per epoch.
        shards: per shard, the number of training pairs of each corpus, in the order of the file.
        valid_pairs: number of validation pairs with ids.
        valid_lines: number of lines of the validation text.
        has_links, has_valid_links: whether training and validation pairs have word alignments.
        codec: fingerprint of the codec.
        directions: per corpus, such as en-sv; none of a dataset of two languages.
        valid_texts: of the directions.
        fingerprint: sha256 of training pairs, codec and weights. With the seed and the
            configuration, these determine the sequence of updates.
    """

    id_type: str
    weights: tuple[float, ...]
    shards: tuple[tuple[int, ...], ...]
    valid_pairs: int
    valid_lines: int
    has_links: bool
    has_valid_links: bool
    codec: str
    fingerprint: str
    directions: tuple[str, ...] = ()
    valid_texts: tuple[ValidText, ...] = ()


def fingerprint_of(
    codec: str, hashes: Mapping[str, bytes], weights: Sequence[float], shards: Sequence[Any]
) -> str:
    """Compute the fingerprint of a dataset.

    Args:
        codec: fingerprint of its codec.
        hashes: sha256 of its files, by name; only files of training pairs are used.
        weights, shards: see `Contents`; used only if a weight is not 1.
    """
    digest = hashlib.sha256(codec.encode())
    for name in sorted(hashes):
        if name.startswith(f"{TRAIN}."):
            digest.update(hashes[name])
    if any(weight != 1 for weight in weights):
        digest.update(json.dumps([weights, shards]).encode())
    return digest.hexdigest()


def shard_name(number: int) -> str:
    """Return the name of a shard, with which the names of its files begin."""
    return f"{TRAIN}.{number:05}"


def side_paths(stem: Path) -> tuple[Path, Path]:
    """Return the paths of the ids and of the offsets of a side."""
    return stem.with_name(f"{stem.name}.ids"), stem.with_name(f"{stem.name}.offsets")


def text_path(folder: Path, side: str) -> Path:
    """Return the path of the validation text of a side, or of its links."""
    return folder / f"{VALID}.{side}.txt"


@dataclass(frozen=True)
class Sequences:
    """Id sequences in memory: ids (X,) laid end to end, lengths (B,)."""

    ids: Ids
    lengths: Offsets

    @staticmethod
    def pack(sequences: Sequence[Sequence[int]], id_type: str) -> "Sequences":
        """Pack sequences of ids."""
        lengths = np.array([len(sequence) for sequence in sequences], OFFSET_TYPE)
        ids = np.fromiter(chain.from_iterable(sequences), ID_TYPES[id_type], lengths.sum())
        return Sequences(ids, lengths)


@dataclass(frozen=True)
class PairIds:
    """Sentence pairs in memory.

    Attributes:
        source, target: ids (X,) and (Y,) of the sides, each sequence with its end symbol.
        links: of each pair, the source piece and the target piece of each link, by target and then
            by source; None = the pairs have no word alignment.
    """

    source: Sequences
    target: Sequences
    links: Sequences | None = None


class Side:
    """One side of the pairs of a shard, or their links, memory-mapped from its files.

    Offsets, 4 bytes per sentence, are checked when the files are mapped; opening a dataset maps all
    shards. Ids are checked against their hash and the vocabulary at their first use, because
    training then reads the whole shard.

    Attributes:
        offsets: (sequences + 1,) start of each sequence in the ids, and their total.
    """

    def __init__(
        self,
        stem: Path,
        num_sequences: int,
        id_type: str,
        vocabulary_size: int,
        verify: Callable[[Path], None],
        *,
        may_be_empty: bool = False,
    ) -> None:
        """Map a side.

        Args:
            stem: path of its files without `.ids` and `.offsets`.
            num_sequences: number of sequences.
            id_type: a name in `ID_TYPES`.
            vocabulary_size: V; every id is smaller.
            verify: raises DamagedError for a file that does not match its hash.
            may_be_empty: a sequence may have no ids.

        Raises:
            DamagedError: the offsets are damaged.
        """
        self._ids_path, offsets_path = side_paths(stem)
        self._vocabulary_size = vocabulary_size
        self._verify = verify
        self._unchecked_ids: Ids = _map(self._ids_path, ID_TYPES[id_type])
        self.offsets: Offsets = _map(offsets_path, OFFSET_TYPE)
        is_after = np.greater_equal if may_be_empty else np.greater
        are_good = (
            len(self.offsets) == num_sequences + 1
            and self.offsets[0] == 0
            and is_after(self.offsets[1:], self.offsets[:-1]).all()
            and self.offsets[-1] == len(self._unchecked_ids)
        )
        if not are_good:
            raise DamagedError(f"{offsets_path}: damaged, offsets are out of order; {_RESTORE}")

    @cached_property
    def ids(self) -> Ids:
        """Ids (X,) of all sequences, laid end to end.

        Raises:
            DamagedError: the file is damaged, or an id is outside the vocabulary.
        """
        self._verify(self._ids_path)
        largest = int(self._unchecked_ids.max(initial=0))
        if largest >= self._vocabulary_size:
            raise DamagedError(
                f"{self._ids_path}: id {largest} in a vocabulary of {self._vocabulary_size}; "
                f"{_RESTORE}"
            )
        return self._unchecked_ids

    def lengths(self) -> Offsets:
        """Return the number of tokens of each sequence, including end symbols."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Ids:
        """Return the ids of a sequence."""
        assert 0 <= index < len(self), f"sequence {index} of {len(self)}"
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def take(self, indices: Indices) -> Sequences:
        """Copy the sequences with the given indices (B,), in that order."""
        first = self.offsets[indices].astype(np.int64)
        lengths = self.offsets[indices + 1] - self.offsets[indices]
        ends = np.cumsum(lengths, dtype=np.int64)
        positions = np.arange(int(lengths.sum())) + np.repeat(first - ends + lengths, lengths)
        return Sequences(self.ids[positions], lengths)


@dataclass(frozen=True)
class Pairs:
    """The sentence pairs of a shard or of the validation set.

    Attributes:
        source, target: the sides.
        weight_runs: run-length encoded weights of the pairs: number of pairs, and their occurrences
            per epoch.
        links: see `PairIds`.
    """

    source: Side
    target: Side
    weight_runs: tuple[tuple[int, float], ...]
    links: Side | None = None

    def take(self, indices: Indices) -> PairIds:
        """Copy the pairs with the given indices (B,), in that order."""
        links = None if self.links is None else self.links.take(indices)
        return PairIds(self.source.take(indices), self.target.take(indices), links)

    def __len__(self) -> int:
        return len(self.source)


class Shards(Sequence[Pairs]):
    """Shards that are mapped when they are used.

    Only the last used one stays mapped, so memory does not grow with the corpus. Training uses one
    shard after the other, so it maps each only once.
    """

    def __init__(self, open_shard: Callable[[int], Pairs], num_shards: int) -> None:
        """Store the function that opens a shard, given its number."""
        self._open = lru_cache(maxsize=1)(open_shard)
        self._num_shards = num_shards

    def __len__(self) -> int:
        return self._num_shards

    @overload
    def __getitem__(self, number: int) -> Pairs: ...
    @overload
    def __getitem__(self, number: slice) -> list[Pairs]: ...
    def __getitem__(self, number: int | slice) -> Pairs | list[Pairs]:
        """Return a shard, after a check of its offsets, or several."""
        chosen = range(self._num_shards)[number]
        return self._open(chosen) if isinstance(chosen, int) else list(map(self._open, chosen))


@dataclass(frozen=True)
class Dataset:
    """An open dataset folder.

    Attributes:
        folder: the dataset folder.
        manifest: content of manifest.json.
        codec: the codec that made the ids.
        train: the shards of the training pairs.
        num_train_pairs: training pairs of all shards.
        weights: per corpus, see `Contents`.
        has_links: whether the training pairs have word alignments.
        valid: validation pairs for the validation loss, without empty or too long ones.
        valid_source, valid_target: the whole validation text, unchanged.
        valid_links: the word alignment of each of its lines; () = there is none.
        directions: direction of each training text, such as en-sv; none of two languages.
        valid_texts: its texts, one for each direction.
        fingerprint: see `Contents`.
    """

    folder: Path
    manifest: dict[str, Any]
    codec: TextCodec
    train: Shards
    num_train_pairs: int
    weights: Sequence[float]
    has_links: bool
    valid: Pairs
    valid_source: list[str]
    valid_target: list[str]
    valid_links: Sequence[str]
    directions: Sequence[str]
    valid_texts: Sequence[ValidText]
    fingerprint: str

    @staticmethod
    def open(folder: Path) -> "Dataset":
        """Open a dataset; reads and verifies everything except the ids of the training pairs.

        Raises:
            DamagedError: missing, incomplete, damaged or of another version; names the file.
        """
        manifest = read_manifest(folder, FORMAT, VERSION)
        files: dict[str, Any] = manifest["files"]
        verified = {name: entry for name, entry in files.items() if not _has_train_ids(name)}
        verify_files(folder, {"files": verified})
        contents = decode(Contents, manifest)
        codec = TextCodec.load(folder / "codec")
        if contents.codec != codec.fingerprint:
            raise DamagedError(f"{folder / 'codec'}: not the codec of this dataset; {_RESTORE}")

        def verify(path: Path) -> None:
            verify_files(folder, {"files": {path.name: files[path.name]}})

        def open_part(
            name: str, weight_runs: Sequence[tuple[int, float]], has_links: bool
        ) -> Pairs:
            num_pairs = sum(length for length, _ in weight_runs)

            def side(kind: str, id_type: str, size: int) -> Side:
                may_be_empty = kind == LINKS
                stem = folder / f"{name}.{kind}"
                return Side(stem, num_pairs, id_type, size, verify, may_be_empty=may_be_empty)

            return Pairs(
                side("source", contents.id_type, codec.source.size),
                side("target", contents.id_type, codec.target.size),
                tuple(weight_runs),
                side(LINKS, LINK_TYPE, 2**16) if has_links else None,
            )

        def open_shard(number: int) -> Pairs:
            weight_runs = zip(contents.shards[number], contents.weights, strict=True)
            return open_part(shard_name(number), list(weight_runs), contents.has_links)

        train = Shards(open_shard, len(contents.shards))
        deque(train, maxlen=0)  # opening a shard checks its offsets
        return Dataset(
            folder=folder,
            manifest=manifest,
            codec=codec,
            train=train,
            num_train_pairs=sum(map(sum, contents.shards)),
            weights=contents.weights,
            has_links=contents.has_links,
            valid=open_part(VALID, [(contents.valid_pairs, 1.0)], contents.has_valid_links),
            valid_source=_read_text(text_path(folder, "source"), contents.valid_lines),
            valid_target=_read_text(text_path(folder, "target"), contents.valid_lines),
            valid_links=(
                _read_text(text_path(folder, LINKS), contents.valid_lines)
                if contents.has_valid_links
                else ()
            ),
            directions=contents.directions,
            valid_texts=contents.valid_texts
            or [ValidText("", contents.valid_lines, contents.valid_pairs)],
            fingerprint=contents.fingerprint,
        )

    @property
    def has_markup(self) -> bool:
        """Whether its text had tags, which are marks."""
        recipe: dict[str, Any] = self.manifest["recipe"]
        return bool(recipe["corpus"].get("markup", "none") != "none")

    @property
    def valid_fingerprint(self) -> str:
        """Hash of the validation text, both sides; runs with the same one can be compared."""
        hashes = [self.manifest["files"][f"{VALID}.{side}.txt"]["sha256"] for side in SIDES]
        return hashlib.sha256("".join(hashes).encode()).hexdigest()


def _has_train_ids(name: str) -> bool:
    return name.startswith(f"{TRAIN}.") and name.endswith(".ids")


def _map(path: Path, data_type: str) -> NDArray[Any]:
    try:
        if path.stat().st_size == 0:
            return np.zeros(0, data_type)
        return np.memmap(path, data_type, "r").view(np.ndarray)
    except FileNotFoundError:
        raise missing_file_error(path) from None


def _read_text(path: Path, num_lines: int) -> list[str]:
    try:
        lines = read_file(path).decode().split("\n")
    except UnicodeDecodeError:
        raise DamagedError(f"{path}: damaged, not valid UTF-8; {_RESTORE}") from None
    if len(lines) != num_lines + 1 or lines.pop():
        raise DamagedError(f"{path}: damaged, not {num_lines} lines; {_RESTORE}")
    return lines
