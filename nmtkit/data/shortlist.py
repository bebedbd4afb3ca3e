"""A shortlist: for each source token, the target tokens among which a search may choose.

The candidates of a source token are the target tokens with the highest score
n(s, t)^2 / (n(s) n(t)), where n counts the training pairs that have the tokens. The folder has
`manifest.json` and `candidates.ids`, one row per source token.

Source: Jean et al. 2015 (arXiv 1412.2007), section 3, for candidates per source token in addition
to the most frequent ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.data.binary import Dataset, Pairs
from nmtkit.errors import RESTORE, DamagedError
from nmtkit.storage.disk import check_is_file
from nmtkit.storage.durable import new_folder, read_manifest
from nmtkit.storage.manifest import verify_files
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID

FORMAT = "nmtkit-shortlist"
VERSION = 1

_FILE = "candidates.ids"
_TYPE = "<u4"
PAIRS_AT_ONCE = 2000
"""Pairs of a slice, at most."""

COUNTS_AT_ONCE = 20_000_000
"""Pairs of tokens in memory before they are merged."""

_SPECIAL = (UNK_ID, BOS_ID, EOS_ID)

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Shortlist:
    """Candidates among V target tokens.

    Attributes:
        candidates: (source tokens, K) target ids.
        frequent: (F,) sorted ids that are candidates for every sentence, including special ones.
        size: V.
        codec: fingerprint of the codec of these ids.
    """

    candidates: Ids
    frequent: Ids
    size: int
    codec: str

    @staticmethod
    def learn(
        dataset: Dataset, num_candidates: int, num_frequent: int, max_pairs: int
    ) -> "Shortlist":
        """Learn a shortlist by counting an even sample of the training pairs.

        Args:
            dataset: the dataset.
            num_candidates: K, candidates per source token.
            num_frequent: number of the most frequent target tokens that are always candidates.
            max_pairs: approximate maximum number of pairs to count.
        """
        sizes = dataset.codec.source.size, dataset.codec.target.size
        counts = _Counts(*sizes)
        for pairs, first, end in _slices(dataset, max_pairs, min(PAIRS_AT_ONCE, max_pairs)):
            counts.add(pairs, first, end)
        frequent = np.argsort(-counts.target, kind="stable")[:num_frequent]
        return Shortlist(
            candidates=counts.best(min(num_candidates, sizes[1])),
            frequent=np.union1d(frequent, _SPECIAL).astype(np.int64),
            size=sizes[1],
            codec=dataset.codec.fingerprint,
        )

    def save(self, folder: Path, overwrite: bool) -> None:
        """Write the folder.

        Raises:
            ConfigError, ResourceError: as `nmtkit.storage.durable.new_folder`.
        """
        with new_folder(folder, FORMAT, VERSION, overwrite=overwrite) as staged:
            # tofile would not notice if the disk becomes full.
            (staged.path / _FILE).write_bytes(self.candidates.astype(_TYPE).tobytes())
            staged.fields.update(
                codec=self.codec,
                size=self.size,
                frequent=self.frequent.tolist(),
                num_candidates=self.candidates.shape[1],
            )

    @staticmethod
    def load(folder: Path) -> "Shortlist":
        """Read a folder that `save` wrote.

        Raises:
            DamagedError: it is missing, damaged, or of another version; names the file.
        """
        manifest = read_manifest(folder, FORMAT, VERSION)
        verify_files(folder, manifest)
        check_is_file(folder / _FILE)
        candidates = np.fromfile(folder / _FILE, _TYPE).astype(np.int64)
        num_candidates = max(manifest["num_candidates"], 1)
        if len(candidates) % num_candidates:
            raise DamagedError(
                f"{folder / _FILE}: not rows of {num_candidates} candidates; {RESTORE}"
            )
        shortlist = Shortlist(
            candidates=candidates.reshape(-1, num_candidates),
            frequent=np.array(manifest["frequent"], np.int64),
            size=manifest["size"],
            codec=manifest["codec"],
        )
        if max(shortlist.candidates.max(initial=0), shortlist.frequent.max()) >= shortlist.size:
            raise DamagedError(
                f"{folder / _FILE}: ids outside the vocabulary of {shortlist.size}; {RESTORE}"
            )
        return shortlist


def _slices(dataset: Dataset, max_pairs: int, size: int) -> Iterator[tuple[Pairs, int, int]]:
    """Yield evenly spaced slices of at most `size` pairs: the shard, the first index and the end.

    The pair at the end is not part of the slice. Every k-th slice is used, where k is the number of
    training pairs divided by `max_pairs`, rounded up.
    """
    step = -(-dataset.num_train_pairs // max_pairs)
    for shard in dataset.train:
        for first in range(0, len(shard), size * step):
            yield shard, first, min(first + size, len(shard))


class _Counts:
    """Counts of the pairs that have a token, or a source and a target token.

    Attributes:
        source, target: (V,) number of pairs with each token.
    """

    def __init__(self, source_size: int, target_size: int) -> None:
        self.source = np.zeros(source_size, np.int64)
        self.target = np.zeros(target_size, np.int64)
        self._keys = np.zeros(0, np.int64)  # source id * target size + target id, sorted
        self._together = np.zeros(0, np.int64)
        self._new: list[Ids] = []

    def add(self, pairs: Pairs, first: int, end: int) -> None:
        """Count the pairs with indices from `first` to `end`, exclusive."""
        source_pairs, sources = _types(pairs.source, first, end)
        target_pairs, targets = _types(pairs.target, first, end)
        self.source += np.bincount(sources, minlength=len(self.source))
        self.target += np.bincount(targets, minlength=len(self.target))
        begins = np.searchsorted(target_pairs, source_pairs)
        sizes = np.searchsorted(target_pairs, source_pairs, side="right") - begins
        # For each source token, all target tokens of its pair.
        positions = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        self._new.append(np.repeat(sources, sizes) * len(self.target) + targets[positions])
        if sum(map(len, self._new)) > COUNTS_AT_ONCE:
            self._merge()

    def best(self, count: int) -> Ids:
        """Return the best target tokens (source V, count) of each source token.

        Rows with fewer tokens are filled with the end symbol.
        """
        self._merge()
        sources, targets = np.divmod(self._keys, len(self.target))
        scores = self._together**2 / (self.source[sources] * self.target[targets])
        order = np.lexsort((-scores, sources))
        sources, targets = sources[order], targets[order]
        ranks = np.arange(len(sources)) - np.searchsorted(sources, sources)
        is_chosen = ranks < count
        best = np.full((len(self.source), count), EOS_ID, np.int64)
        best[sources[is_chosen], ranks[is_chosen]] = targets[is_chosen]
        return best

    def _merge(self) -> None:
        keys, together = np.unique(np.concatenate([*self._new, self._keys[:0]]), return_counts=True)
        keys = np.concatenate([self._keys, keys])
        together = np.concatenate([self._together, together])
        self._keys, indices = np.unique(keys, return_inverse=True)
        self._together = np.bincount(indices, together, len(self._keys)).astype(np.int64)
        self._new = []


def _types(side: Any, first: int, end: int) -> tuple[Ids, Ids]:
    """Return the distinct tokens of each sequence: sorted sequence numbers from 0, and ids."""
    offsets = side.offsets[first : end + 1].astype(np.int64)
    ids = side.ids[offsets[0] : offsets[-1]].astype(np.int64)
    size = int(ids.max(initial=0)) + 1
    sequence_of_id = np.repeat(np.arange(end - first), np.diff(offsets))
    sequences, tokens = np.divmod(np.unique(sequence_of_id * size + ids), size)
    return sequences, tokens
