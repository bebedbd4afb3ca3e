"""The dataset folder: ids of sentence pairs, read by memory map.

    manifest.json     contents, counts, recipe, hashes
    codec/            the codec that made the ids
    train.00000.*     a shard, an even sample of the corpus; as many as its size needs
    valid.*           the validation pairs that the dev loss is taken of
    valid.source.txt  all of the validation text as it was read, a line a pair; valid.target.txt

Each side of a shard, and of the validation pairs, is two files: `.source.ids`, sequences laid end
to end, each ending with the end symbol, as uint16 where the vocabularies allow, else uint32; and
`.source.offsets`, where they begin and, last, their total, as uint32. All are little-endian.
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from nmtkit.errors import DamagedError
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.manifest import gone, verify_files
from nmtkit.text.codec import TextCodec

FORMAT = "nmtkit-dataset"
PART_FORMAT = "nmtkit-dataset-part"
VERSION = 2
"""Version 1 knew no weights: each shard was of one corpus."""

SIDES = ("source", "target")
TRAIN = "train"
VALID = "valid"
ID_TYPES = {"uint16": "<u2", "uint32": "<u4"}
"""Types of ids on disk, by their names in manifest.json."""

OFFSET_TYPE = "<u4"

Ids = NDArray[np.unsignedinteger[Any]]
Offsets = NDArray[np.uint32]
Indices = NDArray[np.int64]

_MEND = "restore the folder from a copy, or run `nmtkit preprocess` again"


def id_type_for(vocabulary_size: int) -> str:
    """Return the name of the smallest type that holds every id."""
    largest = {name: int(np.iinfo(id_type).max) for name, id_type in ID_TYPES.items()}
    fitting = [name for name in largest if vocabulary_size - 1 <= largest[name]]
    return min(fitting, key=largest.__getitem__)


@dataclass(frozen=True)
class Contents:
    """What the manifest must say for a dataset to be read.

    Attributes:
        id_type: a name in `ID_TYPES`.
        weights: of each corpus, how many times an epoch each of its pairs comes.
        shards: of each shard, the training pairs of each corpus, which lie in this order.
        valid_pairs: validation pairs with ids.
        valid_lines: lines of the validation text.
        codec: fingerprint of the codec.
        fingerprint: sha256 of training pairs, codec and weights, which with the seed and the
            configuration decide the sequence of updates.
    """

    id_type: str
    weights: tuple[float, ...]
    shards: tuple[tuple[int, ...], ...]
    valid_pairs: int
    valid_lines: int
    codec: str
    fingerprint: str

    def to_manifest(self) -> dict[str, Any]:
        """Return the fields that `from_manifest` reads."""
        return asdict(self)

    @staticmethod
    def from_manifest(manifest: Mapping[str, Any]) -> "Contents":
        """Read the fields of a manifest that `read_manifest` found undamaged."""
        shards = manifest["shards"]
        is_weighted = manifest["version"] > 1
        return Contents(
            id_type=manifest["id_type"],
            weights=tuple(manifest["weights"]) if is_weighted else (1.0,),
            shards=tuple(tuple(runs) if is_weighted else (runs,) for runs in shards),
            valid_pairs=manifest["valid_pairs"],
            valid_lines=manifest["valid_lines"],
            codec=manifest["codec"],
            fingerprint=manifest["fingerprint"],
        )


@dataclass(frozen=True)
class Part:
    """One of several parts of a dataset that are made apart, such as on one machine each.

    A part has every n-th shard.

    Attributes:
        number: which, from 1.
        count: how many there are.
    """

    number: int
    count: int

    def has(self, shard: int) -> bool:
        """Whether a shard is made in this part."""
        return shard % self.count == self.number - 1


WHOLE = Part(1, 1)


def fingerprint_of(
    codec: str, hashes: Mapping[str, bytes], weights: Sequence[float], shards: Sequence[Any]
) -> str:
    """Compute the fingerprint of a dataset.

    Args:
        codec: its codec's fingerprint.
        hashes: sha256 of each of its files, by name; those of training pairs are taken.
        weights, shards: see `Contents`; without a weight, they change nothing.
    """
    digest = hashlib.sha256(codec.encode())
    for name in sorted(hashes):
        if name.startswith(f"{TRAIN}."):
            digest.update(hashes[name])
    if any(weight != 1 for weight in weights):
        digest.update(json.dumps([weights, shards]).encode())
    return digest.hexdigest()


def shard_name(number: int) -> str:
    """Return the name of a shard, which its files' names begin with."""
    return f"{TRAIN}.{number:05}"


def side_paths(stem: Path) -> tuple[Path, Path]:
    """Return the paths of a side's ids and offsets."""
    return stem.with_name(f"{stem.name}.ids"), stem.with_name(f"{stem.name}.offsets")


def text_path(folder: Path, side: str) -> Path:
    """Return the path of one side's validation text."""
    return folder / f"{VALID}.{side}.txt"


@dataclass(frozen=True)
class Sequences:
    """Id sequences in memory: ids (X,) laid end to end, lengths (B,)."""

    ids: Ids
    lengths: Offsets

    @staticmethod
    def pack(sequences: Sequence[Sequence[int]], id_type: str) -> "Sequences":
        """Lay sequences end to end."""
        lengths = np.array([len(sequence) for sequence in sequences], OFFSET_TYPE)
        ids = np.fromiter(chain.from_iterable(sequences), ID_TYPES[id_type], lengths.sum())
        return Sequences(ids, lengths)


class Side:
    """One side of the pairs of a shard, mapped from its files.

    Offsets are checked when the files are mapped, and so for all shards when the dataset is
    opened: 4 bytes a sentence. Ids are checked, by their hash and against the vocabulary, when
    they are first asked for, a shard at a time, as they are about to be read anyway.

    Attributes:
        offsets: (sequences + 1,) where each sequence begins in the ids, and their total.
    """

    def __init__(
        self,
        stem: Path,
        num_sequences: int,
        id_type: str,
        vocabulary_size: int,
        verify: Callable[[Path], None],
    ) -> None:
        """Map a side.

        Args:
            stem: path of its files without `.ids` and `.offsets`.
            num_sequences: how many there are.
            id_type: a name in `ID_TYPES`.
            vocabulary_size: V; every id is smaller.
            verify: raises DamagedError for a file whose content is not what was written.

        Raises:
            DamagedError: offsets that cannot be.
        """
        self._ids_path, offsets_path = side_paths(stem)
        self._vocabulary_size = vocabulary_size
        self._verify = verify
        self._unchecked_ids: Ids = _map(self._ids_path, ID_TYPES[id_type])
        self.offsets: Offsets = _map(offsets_path, OFFSET_TYPE)
        are_good = (
            len(self.offsets) == num_sequences + 1
            and self.offsets[0] == 0
            and (self.offsets[1:] > self.offsets[:-1]).all()
            and self.offsets[-1] == len(self._unchecked_ids)
        )
        if not are_good:
            raise DamagedError(f"{offsets_path}: damaged, offsets are out of order; {_MEND}")

    @cached_property
    def ids(self) -> Ids:
        """Ids (X,) of all sequences, laid end to end.

        Raises:
            DamagedError: the file is damaged, or an id is not in the vocabulary.
        """
        self._verify(self._ids_path)
        largest = int(self._unchecked_ids.max(initial=0))
        if largest >= self._vocabulary_size:
            raise DamagedError(
                f"{self._ids_path}: id {largest} in a vocabulary of {self._vocabulary_size}; "
                f"{_MEND}"
            )
        return self._unchecked_ids

    def lengths(self) -> Offsets:
        """Compute the number of tokens of each sequence, end symbols counted."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Ids:
        """Return the ids of a sequence."""
        assert 0 <= index < len(self), f"sequence {index} of {len(self)}"
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def take(self, indices: Indices) -> Sequences:
        """Copy some sequences, in the order of their indices (B,), without a loop over them."""
        first = self.offsets[indices].astype(np.int64)
        lengths = self.offsets[indices + 1] - self.offsets[indices]
        ends = np.cumsum(lengths, dtype=np.int64)
        places = np.arange(ends[-1]) + np.repeat(first - ends + lengths, lengths)
        return Sequences(self.ids[places], lengths)


@dataclass(frozen=True)
class Pairs:
    """The sentence pairs of a shard, or those of the validation set.

    Attributes:
        source, target: the sides.
        runs: pairs in a row that an epoch has equally often, and how often.
    """

    source: Side
    target: Side
    runs: tuple[tuple[int, float], ...]

    def __len__(self) -> int:
        return len(self.source)


class Shards(Sequence[Pairs]):
    """Shards that are mapped when they are asked for.

    Only the last one stays mapped, so that memory does not grow with the corpus; what takes one
    shard after the other, as training does, loses nothing by that.
    """

    def __init__(self, open_shard: Callable[[int], Pairs], num_shards: int) -> None:
        """Store how to open a shard by its number."""
        self._open = lru_cache(maxsize=1)(open_shard)
        self._num_shards = num_shards

    def __len__(self) -> int:
        return self._num_shards

    @overload
    def __getitem__(self, number: int) -> Pairs: ...
    @overload
    def __getitem__(self, number: slice) -> list[Pairs]: ...
    def __getitem__(self, number: int | slice) -> Pairs | list[Pairs]:
        """Return a shard, whose offsets are checked then, or several."""
        place = range(self._num_shards)[number]
        return self._open(place) if isinstance(place, int) else list(map(self._open, place))


@dataclass(frozen=True)
class Dataset:
    """A dataset folder that is open for reading.

    Attributes:
        folder: where it is.
        manifest: all that manifest.json says.
        codec: line to ids and back.
        train: the shards of the training pairs.
        num_train_pairs: how many they hold together.
        valid: validation pairs for the dev loss, without those that are empty or too long.
        valid_source, valid_target: all of the validation text, as it was read.
        fingerprint: see `Contents`.
    """

    folder: Path
    manifest: dict[str, Any]
    codec: TextCodec
    train: Shards
    num_train_pairs: int
    valid: Pairs
    valid_source: list[str]
    valid_target: list[str]
    fingerprint: str

    @staticmethod
    def open(folder: Path) -> "Dataset":
        """Open a dataset; reads and verifies all of it but the ids of the training pairs.

        Raises:
            DamagedError: missing, incomplete, damaged or of another version; names the file.
        """
        manifest = read_manifest(folder, FORMAT, VERSION)
        files: dict[str, Any] = manifest["files"]
        read_now = {name: entry for name, entry in files.items() if not _is_of_train_ids(name)}
        verify_files(folder, {"files": read_now})
        contents = Contents.from_manifest(manifest)
        codec = TextCodec.load(folder / "codec")
        if contents.codec != codec.fingerprint:
            raise DamagedError(f"{folder / 'codec'}: not the codec of this dataset; {_MEND}")

        def verify(path: Path) -> None:
            verify_files(folder, {"files": {path.name: files[path.name]}})

        def open_part(name: str, runs: Sequence[tuple[int, float]]) -> Pairs:
            id_type, num_pairs = contents.id_type, sum(length for length, _ in runs)
            return Pairs(
                Side(folder / f"{name}.source", num_pairs, id_type, codec.source.size, verify),
                Side(folder / f"{name}.target", num_pairs, id_type, codec.target.size, verify),
                tuple(runs),
            )

        def open_shard(number: int) -> Pairs:
            runs = zip(contents.shards[number], contents.weights, strict=True)
            return open_part(shard_name(number), list(runs))

        train = Shards(open_shard, len(contents.shards))
        deque(train, maxlen=0)  # opening a shard checks its offsets
        return Dataset(
            folder=folder,
            manifest=manifest,
            codec=codec,
            train=train,
            num_train_pairs=sum(map(sum, contents.shards)),
            valid=open_part(VALID, [(contents.valid_pairs, 1.0)]),
            valid_source=_read_text(text_path(folder, "source"), contents.valid_lines),
            valid_target=_read_text(text_path(folder, "target"), contents.valid_lines),
            fingerprint=contents.fingerprint,
        )


def _is_of_train_ids(name: str) -> bool:
    return name.startswith(f"{TRAIN}.") and name.endswith(".ids")


def _map(path: Path, data_type: str) -> NDArray[Any]:
    try:
        if path.stat().st_size == 0:
            return np.zeros(0, data_type)
        return np.memmap(path, data_type, "r").view(np.ndarray)
    except FileNotFoundError:
        raise gone(path) from None


def _read_text(path: Path, num_lines: int) -> list[str]:
    try:
        lines = path.read_bytes().decode().split("\n")
    except UnicodeDecodeError:
        raise DamagedError(f"{path}: damaged, not valid UTF-8; {_MEND}") from None
    if len(lines) != num_lines + 1 or lines.pop():
        raise DamagedError(f"{path}: damaged, not {num_lines} lines; {_MEND}")
    return lines
