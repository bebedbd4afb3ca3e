"""A shortlist: which target tokens may come where a source token stands, learnt by counting.

Two tokens belong together the more, the larger the share of the training pairs with either of them
that have both. The folder holds `manifest.json` and `candidates.ids`, a row a source token.

Source: Jean et al. 2015 (arXiv 1412.2007), section 3, for candidates by source token beside the
most frequent ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.data.binary import Dataset, Pairs
from nmtkit.errors import DamagedError
from nmtkit.storage.durable import new_folder, read_manifest
from nmtkit.storage.manifest import RESTORE, verify_files
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID

FORMAT = "nmtkit-shortlist"
VERSION = 1

_FILE = "candidates.ids"
_TYPE = "<u4"
_PAIRS_AT_ONCE = 2000
_COUNTS_AT_ONCE = 20_000_000
_SPECIAL = (UNK_ID, BOS_ID, EOS_ID)

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Shortlist:
    """Candidates among V target tokens.

    Attributes:
        candidates: (source tokens, K) target ids.
        frequent: (F,) ids that are candidates of every sentence, sorted; the special ones, too.
        size: V.
        codec: fingerprint of the codec whose ids these are.
    """

    candidates: Ids
    frequent: Ids
    size: int
    codec: str

    @staticmethod
    def learn(
        dataset: Dataset, num_candidates: int, num_frequent: int, max_pairs: int
    ) -> "Shortlist":
        """Count in an even sample of the training pairs.

        Args:
            dataset: whose pairs.
            num_candidates: K, for each source token.
            num_frequent: how many of the most frequent target tokens are always candidates.
            max_pairs: about how many pairs are counted at most.
        """
        sizes = dataset.codec.source.size, dataset.codec.target.size
        counts = _Counts(*sizes)
        for pairs, first, end in _slices(dataset, max_pairs):
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
            self.candidates.astype(_TYPE).tofile(staged.path / _FILE)
            staged.fields.update(
                codec=self.codec,
                size=self.size,
                frequent=self.frequent.tolist(),
                num_candidates=self.candidates.shape[1],
            )

    @staticmethod
    def load(folder: Path) -> "Shortlist":
        """Read what `save` wrote.

        Raises:
            DamagedError: it is missing, damaged, or of another version; names the file.
        """
        manifest = read_manifest(folder, FORMAT, VERSION)
        verify_files(folder, manifest)
        candidates = np.fromfile(folder / _FILE, _TYPE).astype(np.int64)
        shortlist = Shortlist(
            candidates=candidates.reshape(-1, max(manifest["num_candidates"], 1)),
            frequent=np.array(manifest["frequent"], np.int64),
            size=manifest["size"],
            codec=manifest["codec"],
        )
        if max(shortlist.candidates.max(initial=0), shortlist.frequent.max()) >= shortlist.size:
            raise DamagedError(f"{folder / _FILE}: names tokens that there are not; {RESTORE}")
        return shortlist


def _slices(dataset: Dataset, max_pairs: int) -> Iterator[tuple[Pairs, int, int]]:
    """Yield slices of the shards, from where to where, at even distances: of all corpora, that is.

    Every k-th slice is taken, where k is how many times as many pairs there are as are wanted.
    """
    size = min(_PAIRS_AT_ONCE, max_pairs)
    step = -(-dataset.num_train_pairs // max_pairs)
    for shard in dataset.train:
        for first in range(0, len(shard), size * step):
            yield shard, first, min(first + size, len(shard))


class _Counts:
    """In how many pairs tokens stand, alone and together.

    Attributes:
        source, target: (V,) pairs with each token.
    """

    def __init__(self, source_size: int, target_size: int) -> None:
        self.source = np.zeros(source_size, np.int64)
        self.target = np.zeros(target_size, np.int64)
        self._keys = np.zeros(0, np.int64)  # source id * target size + target id, sorted
        self._together = np.zeros(0, np.int64)
        self._new: list[Ids] = []

    def add(self, pairs: Pairs, first: int, end: int) -> None:
        """Count pairs first to end."""
        source_pairs, sources = _types(pairs.source, first, end)
        target_pairs, targets = _types(pairs.target, first, end)
        self.source += np.bincount(sources, minlength=len(self.source))
        self.target += np.bincount(targets, minlength=len(self.target))
        begins = np.searchsorted(target_pairs, source_pairs)
        sizes = np.searchsorted(target_pairs, source_pairs, side="right") - begins
        # For each source token, all the target tokens of its pair.
        places = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        self._new.append(np.repeat(sources, sizes) * len(self.target) + targets[places])
        if sum(map(len, self._new)) > _COUNTS_AT_ONCE:
            self._merge()

    def best(self, count: int) -> Ids:
        """Return for each source token the target tokens (source V, count) that belong to it most.

        Where there are fewer, the row goes on with the end symbol.
        """
        self._merge()
        sources, targets = np.divmod(self._keys, len(self.target))
        shares = self._together**2 / (self.source[sources] * self.target[targets])
        order = np.lexsort((-shares, sources))
        sources, targets = sources[order], targets[order]
        ranks = np.arange(len(sources)) - np.searchsorted(sources, sources)
        is_in = ranks < count
        best = np.full((len(self.source), count), EOS_ID, np.int64)
        best[sources[is_in], ranks[is_in]] = targets[is_in]
        return best

    def _merge(self) -> None:
        keys, together = np.unique(np.concatenate([*self._new, self._keys[:0]]), return_counts=True)
        keys = np.concatenate([self._keys, keys])
        together = np.concatenate([self._together, together])
        self._keys, places = np.unique(keys, return_inverse=True)
        self._together = np.bincount(places, together, len(self._keys)).astype(np.int64)
        self._new = []


def _types(side: Any, first: int, end: int) -> tuple[Ids, Ids]:
    """Return the distinct tokens of each sequence: their sequences, from 0 and sorted, and ids."""
    offsets = side.offsets[first : end + 1].astype(np.int64)
    ids = side.ids[offsets[0] : offsets[-1]].astype(np.int64)
    size = int(ids.max(initial=0)) + 1
    owners = np.repeat(np.arange(end - first), np.diff(offsets))
    sequences, tokens = np.divmod(np.unique(owners * size + ids), size)
    return sequences, tokens
