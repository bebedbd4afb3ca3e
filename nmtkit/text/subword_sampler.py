"""Subword sampling: random segmentations of a text that SentencePiece has segmented.

BPE-dropout leaves out each merge with probability alpha. Unigram draws from all segmentations, each
in proportion to its probability to the power of alpha. SentencePiece draws from the same
distributions, but its random generator gives different results in different processes.
Source: Provilkov et al. 2020, https://arxiv.org/abs/1910.13267; Kudo 2018,
https://arxiv.org/abs/1804.10959
"""

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import accumulate
from random import Random

from nmtkit.text.subword import SPACE_SYMBOL
from nmtkit.text.subword_file import SubwordFile

SAMPLED = ("bpe", "unigram")
"""Algorithms with several segmentations of a text."""

_CACHED_LATTICES = 2**14
"""Words whose lattices are cached, a few kilobytes each."""
_LONGEST_CACHED = 40
"""Longest cached word in characters; longer ones are text without spaces, which rarely repeats."""


class SubwordSampler:
    """Draws segmentations that depend only on ids and seed."""

    def __init__(self, model: bytes, alpha: float) -> None:
        """Read a SentencePiece model.

        Args:
            model: its bytes, of an algorithm of `SAMPLED`.
            alpha: above 0; see the module.
        """
        contents = SubwordFile.of(model)
        self._texts = contents.texts
        ids = {text: index for index, text in enumerate(contents.texts) if text is not None}
        self._spans_are_words = not any(SPACE_SYMBOL in text[1:] for text in ids)
        self._segmenter: _Dropout | _Lattices
        if contents.algorithm == "bpe":
            self._segmenter = _Dropout(ids, contents.scores, alpha)
        else:
            self._segmenter = _Lattices(ids, contents.scores, alpha)

    def sample(self, ids: Sequence[int], seed: int) -> list[int]:
        """Draw a segmentation of the text that ids spell.

        Special symbols, bytes and user-defined symbols keep their places.

        Args:
            ids: the model's segmentation of a text.
            seed: of the random generator.

        Returns:
            ids that spell the same text.
        """
        random = Random(seed)
        drawn: list[int] = []
        for text, span in self._spans(ids):
            drawn += self._segmenter.segment(text, span, random) if text else span
        return drawn

    def _spans(self, ids: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
        """Yield the text and ids of spans that are segmented independently; "" = keep the ids."""
        text = ""
        span: list[int] = []
        for index in ids:
            piece = self._texts[index]
            is_word = self._spans_are_words and piece is not None and piece[0] == SPACE_SYMBOL
            if span and (is_word or piece is None or not text):
                yield text, span
                text, span = "", []
            span.append(index)
            text += piece or ""
        if span:
            yield text, span


class _Dropout:
    """BPE-dropout: merges are left out at random."""

    def __init__(self, ids: dict[str, int], scores: Sequence[float], alpha: float) -> None:
        self._ids = ids
        self._ranks = {text: -scores[index] for text, index in ids.items()}
        self._log_kept = math.log1p(-alpha) if alpha < 1 else -math.inf

    def segment(self, text: str, stored: list[int], random: Random) -> list[int]:
        num_kept = self._num_kept(random)
        # Each merge removes one symbol, so the stored segmentation took this many merges.
        if num_kept >= len(text) - len(stored):
            return stored
        symbols = self._merge(text, num_kept, random)
        ids = [self._ids[symbol] for symbol in symbols if symbol in self._ids]
        return ids if len(ids) == len(symbols) else stored

    def _num_kept(self, random: Random) -> int:
        """Draw the number of merges to keep before one is left out."""
        return int(math.log1p(-random.random()) / self._log_kept)

    def _merge(self, text: str, num_kept: int, random: Random) -> list[str]:
        """Merge the characters of a text; a merge that is left out is not tried again."""
        symbols = list(text)
        before, after = list(range(-1, len(text) - 1)), list(range(1, len(text) + 1))
        agenda: list[tuple[float, int, int, str]] = []

        def propose(left: int, right: int) -> None:
            if left >= 0 and right < len(symbols):
                merged = symbols[left] + symbols[right]
                if merged in self._ranks:
                    heappush(agenda, (self._ranks[merged], left, right, merged))

        for left in range(len(text) - 1):
            propose(left, left + 1)
        while agenda:
            _, left, right, merged = heappop(agenda)
            if not symbols[left] or not symbols[right] or symbols[left] + symbols[right] != merged:
                continue  # a merge with another neighbour has replaced one of them
            if num_kept == 0:
                num_kept = self._num_kept(random)
                continue
            num_kept -= 1
            symbols[left], symbols[right] = merged, ""
            after[left] = after[right]
            if after[left] < len(symbols):
                before[after[left]] = left
            propose(before[left], left)
            propose(left, after[left])
        return [symbol for symbol in symbols if symbol]


@dataclass(frozen=True)
class _LastPieces:
    """Starts and ids of all possible last pieces of a text, with cumulative weights."""

    pieces: list[tuple[int, int]]
    weights: list[float]


class _Lattices:
    """Unigram: forward filtering, backward sampling."""

    def __init__(self, ids: dict[str, int], scores: Sequence[float], alpha: float) -> None:
        self._ids = ids
        self._scores = [alpha * score for score in scores]
        self._longest = max(map(len, ids))
        self._cached_filter = lru_cache(_CACHED_LATTICES)(self._filter)

    def segment(self, text: str, stored: list[int], random: Random) -> list[int]:
        lattice = (self._cached_filter if len(text) <= _LONGEST_CACHED else self._filter)(text)
        end = len(text)
        ids: list[int] = []
        while end:
            pieces, weights = lattice[end].pieces, lattice[end].weights
            if not pieces:
                return stored
            place = bisect(weights, random.random() * weights[-1], hi=len(weights) - 1)
            end, index = pieces[place]
            ids.append(index)
        return ids[::-1]

    def _filter(self, text: str) -> list[_LastPieces]:
        """Return the possible last pieces of each prefix of a text, the empty prefix first."""
        sums = [0.0]  # log of the summed weights of all segmentations of each prefix
        lattice = [_LastPieces([], [])]
        for end in range(1, len(text) + 1):
            starts = range(max(0, end - self._longest), end)
            pieces = [
                (start, self._ids[text[start:end]])
                for start in starts
                if sums[start] > -math.inf and text[start:end] in self._ids
            ]
            logs = [sums[start] + self._scores[index] for start, index in pieces]
            largest = max(logs, default=-math.inf)
            weights = list(accumulate(math.exp(log - largest) for log in logs))
            sums.append(largest + math.log(weights[-1]) if weights else -math.inf)
            lattice.append(_LastPieces(pieces, weights))
        return lattice
