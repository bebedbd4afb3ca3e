"""Writer of the files of a dataset, whose memory use does not grow with them."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from nmtkit.data.binary import (
    LINKS,
    OFFSET_TYPE,
    SIDES,
    TRAIN,
    VALID,
    Contents,
    PairIds,
    Sequences,
    fingerprint_of,
    shard_name,
    side_paths,
    text_path,
)
from nmtkit.errors import DataError
from nmtkit.text.codec import TextCodec

MAX_TOKENS = int(np.iinfo(OFFSET_TYPE).max)
"""Most tokens of one side of a shard."""
BUFFERED_BYTES_PER_SHARD = 2**19
MIN_BUFFERED_BYTES, MAX_BUFFERED_BYTES = 2**24, 2**28
"""Most bytes that stay in memory between two calls.

Writing the buffer opens the files of all shards, so it grows with them, within bounds.
"""


class DatasetWriter:
    """Appends to the files of a dataset; memory use is bounded by a buffer."""

    def __init__(
        self,
        folder: Path,
        id_type: str,
        num_shards: int,
        weights: Sequence[float],
        linked: Collection[str] = (),
    ) -> None:
        """Begin a dataset.

        Args:
            folder: folder without files of a dataset.
            id_type: a name in `ID_TYPES`.
            num_shards: number of shards to write.
            weights: weight of each corpus, see `Contents`.
            linked: which pairs have word alignments, of `TRAIN` and `VALID`.
        """
        self._folder = folder
        self._id_type = id_type
        self._weights = weights
        wanted = max(MIN_BUFFERED_BYTES, num_shards * BUFFERED_BYTES_PER_SHARD)
        self._max_buffered_bytes = min(wanted, MAX_BUFFERED_BYTES)
        self._linked = linked
        self._valid = self._sides(VALID, VALID in linked)
        self._shards = [self._sides(shard_name(n), TRAIN in linked) for n in range(num_shards)]
        self._num_pairs = [[0] * len(weights) for _ in range(num_shards)]
        self._num_valid_lines = 0
        self._num_buffered = 0

    def add(self, shard: int, corpus: int, pairs: PairIds) -> None:
        """Append pairs to a shard; corpora must come in their order.

        Raises:
            DataError: a side of the shard has more tokens than its offsets can count.
        """
        num_pairs = self._num_pairs[shard]
        assert not any(num_pairs[corpus + 1 :]), f"corpus {corpus} after a later one"
        num_pairs[corpus] += len(pairs.source.lengths)
        self._add(self._shards[shard], pairs)

    def add_valid(self, pairs: PairIds) -> None:
        """Append validation pairs."""
        self._add(self._valid, pairs)

    def write_valid_links(self, lines: Iterable[str]) -> None:
        """Write the word alignment of the validation text."""
        with text_path(self._folder, LINKS).open("wb") as file:
            file.writelines(f"{line}\n".encode() for line in lines)

    def write_valid_text(self, pairs: Iterable[tuple[str, str]]) -> int:
        """Append to the validation text; return the number of lines."""
        num_before = self._num_valid_lines
        with (
            text_path(self._folder, "source").open("ab") as source,
            text_path(self._folder, "target").open("ab") as target,
        ):
            for source_line, target_line in pairs:
                source.write(f"{source_line}\n".encode())
                target.write(f"{target_line}\n".encode())
                self._num_valid_lines += 1
        return self._num_valid_lines - num_before

    def finish(self, codec: TextCodec) -> Contents:
        """Write the buffer, and return the contents of the dataset for its manifest."""
        self._flush()
        names = [path.name for path in self._folder.glob(f"{TRAIN}.*")]
        shards = tuple(map(tuple, self._num_pairs))
        hashes = {name: _hash(self._folder / name) for name in names}
        return Contents(
            id_type=self._id_type,
            weights=tuple(self._weights),
            shards=shards,
            valid_pairs=self._valid[0].num_sequences,
            valid_lines=self._num_valid_lines,
            has_links=TRAIN in self._linked,
            has_valid_links=VALID in self._linked,
            codec=codec.fingerprint,
            fingerprint=fingerprint_of(codec.fingerprint, hashes, self._weights, shards),
        )

    def _sides(self, name: str, has_links: bool) -> list["_SideWriter"]:
        kinds = (*SIDES, LINKS) if has_links else SIDES
        return [_SideWriter(self._folder / f"{name}.{kind}") for kind in kinds]

    def _add(self, sides: list["_SideWriter"], pairs: PairIds) -> None:
        parts = filter(None, (pairs.source, pairs.target, pairs.links))
        self._num_buffered += sum(side.add(part) for side, part in zip(sides, parts, strict=True))
        if self._num_buffered > self._max_buffered_bytes:
            self._flush()

    def _flush(self) -> None:
        for side in chain(self._valid, *self._shards):
            side.flush()
        self._num_buffered = 0


class _SideWriter:
    """Writer of one side of a shard.

    Its files are open only during a write, because there may be thousands of shards.
    """

    def __init__(self, stem: Path) -> None:
        self.num_sequences = 0
        self._num_tokens = 0
        self._paths = side_paths(stem)
        self._ids = bytearray()
        self._offsets = bytearray(np.zeros(1, OFFSET_TYPE).tobytes())

    def add(self, sequences: Sequences) -> int:
        """Append sequences; returns the number of bytes added to the buffer."""
        ends = self._num_tokens + np.cumsum(sequences.lengths, dtype=np.int64)
        self._num_tokens += len(sequences.ids)
        self.num_sequences += len(sequences.lengths)
        if self._num_tokens > MAX_TOKENS:
            raise DataError(
                f"{self._paths[0].name}: more than {MAX_TOKENS} tokens; lower --max-length"
            )
        before = len(self._ids) + len(self._offsets)
        self._ids += sequences.ids.tobytes()
        self._offsets += ends.astype(OFFSET_TYPE).tobytes()
        return len(self._ids) + len(self._offsets) - before

    def flush(self) -> None:
        """Append the buffer to the files and clear it."""
        for path, data in zip(self._paths, (self._ids, self._offsets), strict=True):
            with path.open("ab") as file:
                file.write(data)
            data.clear()


def _hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
