"""Noise while training: the text of drawn pairs is changed, and segmented again.

The draws of an update follow from (seed, update) for all of its pairs, before they are split into
micro-batches: ranks, micro-batches and resuming do not change them. nmtkit/text/noise.py has the
modifiers. A pair that is not drawn keeps the stored ids and costs nothing. Validation has no noise.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.noise import JOIN_LINES, noise_probabilities
from nmtkit.config.noise import MODIFIERS as FACTS
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset, Indices, Pairs, Sequences
from nmtkit.errors import ConfigError
from nmtkit.text.codec import KINDS, TextCodec
from nmtkit.text.editable import EditableLine, EditableText
from nmtkit.text.noise import MODIFIERS, Texts, join
from nmtkit.training.micro_batches import pairs_of
from nmtkit.training.seeds import noise_seed

TRIED_PAIRS = 300
"""Number of pairs from which the growth of noised pairs is measured."""

FITTING_SHARE = 0.99
"""Share of these pairs that grow at most by the measured growth."""

JOINED_GROWTH = 2.0
"""Growth of a pair to which a pair of its length is joined."""

_CLOSED = ("words", "word")
"""Segmentations whose vocabularies are closed lists of words."""

_NO_PAIR = -1

Draws = NDArray[np.uint64]


@dataclass(frozen=True)
class DrawnLines:
    """The lines of an update, shortest first: its pairs, some of them joined, with their noise.

    Attributes:
        first: (B,) index of the pair of each line.
        second: (B,) index of the pair to join to it; -1 = none.
        draws: (M, B) random number of each modifier of single pairs; 0 = it is not drawn.
    """

    first: Indices
    second: Indices
    draws: Draws

    def __len__(self) -> int:
        return len(self.first)

    def part(self, number: int, num_micro_batches: int) -> "DrawnLines":
        """Return the lines that belong to one micro-batch."""
        return self.at(pairs_of(np.arange(len(self)), number, num_micro_batches))

    def at(self, places: Indices) -> "DrawnLines":
        """Return the lines at some places, in that order."""
        return DrawnLines(self.first[places], self.second[places], self.draws[:, places])

    def touched(self) -> Indices:
        """Return the places of the lines with noise."""
        return np.flatnonzero((self.second != _NO_PAIR) | self.draws.any(axis=0))


@dataclass(frozen=True)
class _Pair:
    """A pair as read: its index in the shard, and the ids of source and target."""

    index: int
    ids: tuple[list[int], list[int]]


@dataclass(frozen=True)
class _Decoded:
    """The text of a pair, and the ids of the symbols before source and target."""

    texts: Texts
    symbols: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Noise:
    """Reads training pairs with noise on their text.

    Attributes:
        probabilities: of each modifier that is used, in the order in which they are applied.
        seed: seed of the run.
        longest: largest number of tokens per sequence, end symbol included.
        sides: the text of source and target; nothing without noise.
        growth: largest factor by which a noised source and target may be longer than stored; a
            pair that would be longer stays clean.
    """

    probabilities: Mapping[str, float]
    seed: int
    longest: int
    sides: Sequence[EditableText]
    growth: tuple[float, float]

    @staticmethod
    def of(recipe: TrainRecipe, dataset: Dataset) -> "Noise":
        """Return the noise of a recipe; its growth is measured on some pairs of the dataset.

        Raises:
            ConfigError: a modifier does not fit the dataset, or has no effect on it.
        """
        probabilities = noise_probabilities(recipe.training.noise)
        longest = min(recipe.training.update_tokens, recipe.model.longest_sequence)
        if not probabilities:
            return Noise({}, recipe.seed.seed, longest, (), (1.0, 1.0))
        codec = dataset.codec
        _check(probabilities, codec)
        sides = EditableText(codec.source), EditableText(codec.target)
        endless = Noise(
            probabilities, recipe.seed.seed, sys.maxsize, sides, growth=(math.inf, math.inf)
        )
        growth = endless._measured_growth(next(shard for shard in dataset.train if len(shard)))
        return replace(endless, longest=longest, growth=growth)

    @property
    def is_active(self) -> bool:
        """At least one modifier is used."""
        return bool(self.probabilities)

    @property
    def share(self) -> float:
        """Probability that a pair has noise."""
        return 1 - math.prod(1 - probability for probability in self.probabilities.values())

    def lines(self, pairs: Pairs, indices: Indices, update: int) -> DrawnLines:
        """Draw the noise of an update.

        Args:
            pairs: a shard.
            indices: (B,) indices of the pairs of the update, shortest first.
            update: its number, from 1.

        Returns:
            its lines, each pair once; a line of two pairs has at most `longest` tokens.
        """
        draws = np.zeros((len(self._modifiers), len(indices)), np.uint64)
        for row, name in zip(draws, self._modifiers, strict=True):
            drawn, random = self._draw(update, name, len(indices))
            row[drawn] = random[drawn] | np.uint64(1)
        lines = DrawnLines(indices, np.full(len(indices), _NO_PAIR), draws)
        return self._joined(pairs, lines, update) if JOIN_LINES in self.probabilities else lines

    def read(self, pairs: Pairs, lines: DrawnLines) -> tuple[Indices, Sequences, Sequences]:
        """Read lines of a shard.

        Returns:
            The index of the pair of each sequence (of two joined ones, of the first), and the ids
            of source and target. Two pairs that cannot be joined are two sequences.
        """
        stored = pairs.source.take(lines.first), pairs.target.take(lines.first)
        places = lines.touched()
        if not len(places):
            return lines.first, *stored
        noised = [self._noised(*line) for line in self._stored_lines(pairs, lines.at(places))]
        indices = _with_runs(
            lines.first, places, places + 1, [[pair.index for pair in line] for line in noised]
        )
        source, target = (
            _with_sequences(old, places, [[pair.ids[side] for pair in line] for line in noised])
            for side, old in enumerate(stored)
        )
        return indices, source, target

    @property
    def _modifiers(self) -> list[str]:
        """Names of the used modifiers of single pairs, in order."""
        return [name for name in self.probabilities if name != JOIN_LINES]

    def _draw(self, update: int, name: str, size: int) -> tuple[NDArray[np.bool_], Draws]:
        """Draw, for each pair of an update, whether it has a modifier, and its random number."""
        draws = np.random.Philox(noise_seed(self.seed, update, name)).random_raw(size)
        # The upper 53 bits are a float from 0 to 1, 1 excluded.
        return (draws >> np.uint64(11)) * 2.0**-53 < self.probabilities[name], draws

    def _joined(self, pairs: Pairs, lines: DrawnLines, update: int) -> DrawnLines:
        """Join the pairs that are drawn for it, two by two at random; an odd one stays alone."""
        is_drawn, random = self._draw(update, JOIN_LINES, len(lines))
        drawn = np.flatnonzero(is_drawn)
        drawn = drawn[np.argsort(random[drawn], kind="stable")]
        first, second = drawn[0 : len(drawn) - 1 : 2], drawn[1::2]
        offsets = pairs.source.offsets, pairs.target.offsets
        lengths = np.stack([side[lines.first + 1] - side[lines.first] for side in offsets])
        lengths = lengths.astype(np.int64)
        joined = lengths[:, first] + lengths[:, second] - 1  # one end symbol
        fits = (joined <= self.longest).all(axis=0)
        first, second = first[fits], second[fits]
        lengths[:, first] = joined[:, fits]
        with_second = replace(lines, second=lines.second.copy())
        with_second.second[first] = lines.first[second]
        kept = np.delete(np.arange(len(lines)), second)
        return with_second.at(kept[np.lexsort(tuple(lengths[:, kept]))])

    def _stored_lines(
        self, pairs: Pairs, lines: DrawnLines
    ) -> Iterator[tuple[list[_Pair], dict[str, int]]]:
        """Yield the stored pairs of each line, and the random numbers of its modifiers."""
        members = zip(lines.first.tolist(), lines.second.tolist(), strict=True)
        for indices, draws in zip(members, lines.draws.T.tolist(), strict=True):
            stored = [_stored_pair(pairs, index) for index in indices if index != _NO_PAIR]
            drawn = zip(self._modifiers, draws, strict=True)
            yield stored, {name: draw for name, draw in drawn if draw}

    def _noised(self, pairs: list[_Pair], draws: Mapping[str, int]) -> list[_Pair]:
        """Return one pair or two with their noise, joined if they are two.

        Args:
            pairs: as stored.
            draws: the random number of each modifier to apply.
        """
        is_joined = len(pairs) > 1
        has_target = is_joined or any(FACTS[name].changes_target for name in draws)
        decoded = [one for pair in pairs if (one := self._decoded(pair, has_target))]
        if len(decoded) < len(pairs):
            return pairs
        limits = [
            min(self.longest, growth * max(len(pair.ids[side]) for pair in pairs))
            for side, growth in enumerate(self.growth)
        ]
        clean, old = pairs[0], decoded[0]
        if is_joined:
            both = replace(old, texts=join(old.texts, decoded[1].texts))
            is_alike = old.symbols == decoded[1].symbols
            joined = self._encoded(clean, old, both, limits) if is_alike else None
            if joined is None:
                return [*self._noised(pairs[:1], draws), pairs[1]]
            clean, old = joined, both
        texts = old.texts
        for name, draw in draws.items():
            texts = MODIFIERS[name](texts, Random(draw))
        return [self._encoded(clean, old, replace(old, texts=texts), limits) or clean]

    def _decoded(self, pair: _Pair, has_target: bool) -> _Decoded | None:
        """Return the text of a pair, without that of the target if it is not needed."""
        source = self.sides[0].decode(pair.ids[0])
        target = self.sides[1].decode(pair.ids[1]) if has_target else EditableLine((), "")
        if source is None or target is None:
            return None
        return _Decoded(Texts(source.text, target.text), (source.symbols, target.symbols))

    def _encoded(
        self, pair: _Pair, old: _Decoded, new: _Decoded, limits: Sequence[float]
    ) -> _Pair | None:
        """Return a pair with its new text; None if that cannot be encoded or is too long.

        A side whose text is the old one keeps its ids.
        """
        ids = [*pair.ids]
        texts = zip(vars(old.texts).values(), vars(new.texts).values(), strict=True)
        for side, (before, after) in enumerate(texts):
            if after != before:
                line = EditableLine(new.symbols[side], after)
                encoded = self.sides[side].encode(line)
                if encoded is None or len(encoded) > limits[side]:
                    return None
                ids[side] = encoded
        source, target = ids
        return _Pair(pair.index, (source, target))

    def _measured_growth(self, pairs: Pairs) -> tuple[float, float]:
        """Measure by which factor each modifier lengthens pairs; return the largest factors.

        Raises:
            ConfigError: a modifier changes none of them.
        """
        tried = np.linspace(0, len(pairs) - 1, min(len(pairs), TRIED_PAIRS)).astype(np.int64)
        stored = [_stored_pair(pairs, index) for index in tried.tolist()]
        least = JOINED_GROWTH if JOIN_LINES in self.probabilities else 1.0
        growths = [(least, least)]
        for name in self._modifiers:
            ratios = [
                [len(after) / len(before) for before, after in zip(old.ids, new.ids, strict=True)]
                for seed, old in enumerate(stored)
                for new in self._noised([old], {name: seed})
                if new != old
            ]
            if not ratios:
                raise ConfigError(
                    f"noise: {name} has no effect, as it changes none of {len(tried)} pairs of the "
                    "dataset; leave it out [training.noise]"
                )
            source, target = np.quantile(ratios, FITTING_SHARE, axis=0, method="higher").tolist()
            growths.append((source, target))
        sources, targets = zip(*growths, strict=True)
        return max(sources), max(targets)


def _check(probabilities: Mapping[str, float], codec: TextCodec) -> None:
    """Raise ConfigError for a modifier that does not fit the text of a dataset."""
    target_type = KINDS[codec.target.kind].target_type
    for name in probabilities:
        changes_target = FACTS[name].changes_target
        if changes_target and target_type != "text":
            raise ConfigError(
                f"noise: {name} changes the target, and the target side of this dataset is "
                f"{target_type}; leave it out [training.noise]"
            )
        sides = {"source": codec.source, **({"target": codec.target} if changes_target else {})}
        closed = [side for side, one in sides.items() if one.segmentation in _CLOSED]
        if closed:
            raise ConfigError(
                f"noise: {name} changes words, and the {' and '.join(closed)} vocabulary is a "
                "closed list of the words of segmented text; leave it out, or preprocess plain "
                "text with --segmentation bpe or unigram [training.noise]"
            )


def _stored_pair(pairs: Pairs, index: int) -> _Pair:
    return _Pair(index, (pairs.source[index].tolist(), pairs.target[index].tolist()))


def _with_sequences(
    stored: Sequences, places: Indices, new: Sequence[Sequence[Sequence[int]]]
) -> Sequences:
    """Replace the sequences at some places by others, one or two each."""
    ends = np.cumsum(stored.lengths, dtype=np.int64)
    starts = ends - stored.lengths
    ids = [[index for sequence in line for index in sequence] for line in new]
    lengths = [[len(sequence) for sequence in line] for line in new]
    return Sequences(
        _with_runs(stored.ids, starts[places], ends[places], ids),
        _with_runs(stored.lengths, places, places + 1, lengths),
    )


def _with_runs(
    values: NDArray[Any], starts: Indices, ends: Indices, new: Sequence[Sequence[int]]
) -> NDArray[Any]:
    """Replace the values from each start to its end."""
    parts = np.split(values, np.column_stack([starts, ends]).ravel())
    parts[1::2] = [np.array(run, values.dtype) for run in new]
    return np.concatenate(parts)
