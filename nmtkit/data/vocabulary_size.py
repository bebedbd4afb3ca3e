"""Findings about learnt vocabularies that are too large for their training text."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.preprocessing import (
    SEGMENTATIONS,
    SENTENCEPIECE,
    VocabularyConfig,
    segmentations,
)
from nmtkit.data.binary import ID_TYPES, SIDES, Contents, shard_name, side_paths
from nmtkit.data.findings import Finding
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.codec import TextCodec, Vocabulary

MIN_OCCURRENCES = 10
"""Entries with fewer occurrences are rare.

Gowda and May (2020), "Finding the Optimal Vocabulary Size for Neural Machine Translation", find the
best size where 95 % of the entries occur 100 times. A finding is for vocabularies far above that.
"""

_CHUNK_IDS = 2**20


def rare_entries(
    config: VocabularyConfig, codec: TextCodec, folder: Path, contents: Contents
) -> Iterator[Finding]:
    """Yield a finding for each learnt subword vocabulary whose entries are mostly rare.

    Ids are read until enough entries are frequent, so a large text costs little.

    Args:
        config: settings of the vocabularies.
        codec: the vocabularies.
        folder: the dataset, whose files are written; all parts of it.
        contents: its contents.
    """
    given = (config.source_vocabulary, config.target_vocabulary)
    flags = ("--vocab-size", "--target-vocab-size")
    sides = [(SIDES, 0)] if codec.is_shared else [(SIDES[:1], 0), (SIDES[1:], 1)]
    for names, number in sides:
        is_subwords = SEGMENTATIONS[segmentations(config)[number]].vocabulary == SENTENCEPIECE
        if config.vocabulary_of or given[number] or not is_subwords:
            continue
        vocabulary = (codec.source, codec.target)[number]
        enough = _num_frequent(vocabulary, _ids(folder, names, contents))
        if 2 * enough > vocabulary.size:
            continue
        yield Finding(
            "vocabulary",
            f"{names[0]} vocabulary" if len(names) == 1 else "vocabulary",
            1 - enough / vocabulary.size,
            (),
            f"only {enough} of {vocabulary.size} entries occur at least {MIN_OCCURRENCES} times, "
            f"or have to exist; the others are too rare: give {flags[number]} {_rounded(enough)}",
        )


def _num_frequent(vocabulary: Vocabulary, chunks: Iterator[NDArray[np.integer]]) -> int:
    """Return the number of entries that are frequent, or have to exist; half of all is enough.

    Special symbols, bytes and characters have to exist; SentencePiece refuses smaller vocabularies.
    """
    counts = np.zeros(vocabulary.size, np.int64)
    needed = np.array(
        [
            entry in (UNK_ID, BOS_ID, EOS_ID)
            or entry in vocabulary.unknown_ids
            or len(vocabulary.piece(entry)) == 1
            for entry in range(vocabulary.size)
        ]
    )
    enough = int(needed.sum())
    for ids in chunks:
        counts += np.bincount(ids, minlength=vocabulary.size)
        enough = int(np.count_nonzero(needed | (counts >= MIN_OCCURRENCES)))
        if 2 * enough > vocabulary.size:
            break
    return enough


def _ids(folder: Path, sides: Sequence[str], contents: Contents) -> Iterator[NDArray[np.integer]]:
    for number in range(len(contents.shards)):
        for side in sides:
            path, _ = side_paths(folder / f"{shard_name(number)}.{side}")
            with path.open("rb") as file:
                while data := file.read(_CHUNK_IDS * 4):
                    yield np.frombuffer(data, ID_TYPES[contents.id_type])


def _rounded(number: int) -> int:
    """Return a number rounded up to one significant digit."""
    unit = int(10 ** (len(str(number)) - 1))
    return -(-number // unit) * unit
