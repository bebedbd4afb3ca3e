"""Duplicate pairs of the training text: pairs equal to an earlier one.

The hashes of all pairs are partitioned by value into files on disk, and each file is sorted in
memory. Memory does not grow with the text, except one bit per pair.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from nmtkit.progress.counting import QUICK_ITEMS, SILENT, WorkReporter
from nmtkit.text.corpus import Corpus, Pair, line_key

_PART_PAIRS = 2**22
_BATCH_PAIRS = 2**18

_RECORD = np.dtype([("key", "<u8"), ("number", "<u8")])
Records = NDArray[np.void]


class Duplicates:
    """A flag for each pair, by its number over all corpora; True = duplicate."""

    def __init__(self, num_pairs: int) -> None:
        """Set all flags to False."""
        self._bits = np.zeros(-(-num_pairs // 8), np.uint8)

    def flag(self, numbers: NDArray[np.unsignedinteger]) -> None:
        """Set the flags of these pairs."""
        bits = np.left_shift(1, numbers % 8, dtype=np.uint8, casting="unsafe")
        np.bitwise_or.at(self._bits, (numbers // 8).astype(np.int64), bits)

    def flags_of(self, first: int, num_pairs: int) -> NDArray[np.bool_]:
        """Return the flags (num_pairs,) of consecutive pairs."""
        start = first // 8
        bits = self._bits[start : -(-(first + num_pairs) // 8)]
        flags = np.unpackbits(bits, bitorder="little").view(np.bool_)
        return flags[first - 8 * start :][:num_pairs]


def find_duplicates(
    corpora: Sequence[Corpus], folder: Path, reporter: WorkReporter = SILENT
) -> Duplicates:
    """Find the pairs whose lines equal those of an earlier pair; see `line_key`.

    Args:
        corpora: the training text.
        folder: place for temporary files, 16 bytes per pair.
        reporter: receives the progress.
    """
    num_pairs = sum(corpus.num_pairs for corpus in corpora)
    duplicates = Duplicates(num_pairs)
    num_parts = -(-num_pairs // _PART_PAIRS)
    with TemporaryDirectory(dir=folder) as scratch:
        paths = [Path(scratch) / str(part) for part in range(num_parts)]
        pairs = (pair for corpus in corpora for pair in corpus.pairs())
        with reporter.track(pairs, "compared", "pairs", num_pairs, QUICK_ITEMS) as compared:
            for records in _batches(compared):
                parts = records["key"] % np.uint64(num_parts)
                for part in np.unique(parts):
                    with paths[int(part)].open("ab") as file:
                        file.write(records[parts == part].tobytes())
        for path in filter(Path.exists, paths):
            duplicates.flag(_repeated(np.fromfile(path, _RECORD)))
    return duplicates


def _batches(pairs: Iterable[Pair]) -> Iterator[Records]:
    """Yield the keys and numbers of all pairs."""
    numbered = ((line_key(*pair), number) for number, pair in enumerate(pairs))
    while len(batch := np.array(list(islice(numbered, _BATCH_PAIRS)), _RECORD)):
        yield batch


def _repeated(records: Records) -> NDArray[np.uint64]:
    """Return the numbers of all records except the first of each key."""
    records = records[np.argsort(records["key"], kind="stable")]
    is_repeated = records["key"][1:] == records["key"][:-1]
    numbers: NDArray[np.uint64] = records["number"][1:][is_repeated]
    return numbers
