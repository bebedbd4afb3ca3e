"""Subword sampling: random segmentation of training pairs, each time they are read.

The dataset's vocabulary segments its text again. The seed of a draw follows from (seed, update,
pair, side), so ranks, micro-batches and earlier draws do not change it. Validation and translation
do not sample.
Source: Kudo 2018, https://arxiv.org/abs/1804.10959; Provilkov et al. 2020,
https://arxiv.org/abs/1910.13267
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Indices, Pairs, Sequences
from nmtkit.errors import ConfigError
from nmtkit.text.cleaned import Cleaned
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.subword import Subword
from nmtkit.text.subword_sampler import SubwordSampler, can_sample
from nmtkit.text.tokenized import Tokenized
from nmtkit.training.seeds import subword_seed

GROWTH_PAIRS = 1000
"""Number of pairs from which the growth of texts is estimated."""


@dataclass(frozen=True)
class SubwordSampling:
    """Reads training pairs, and samples their segmentation.

    Attributes:
        source, target: sampler of a side; None = ids as stored.
        seed: seed of the run.
        longest: largest number of tokens per sequence, end symbol included; if a sample is longer,
            the stored ids are used.
    """

    source: SubwordSampler | None
    target: SubwordSampler | None
    seed: int
    longest: int

    @staticmethod
    def of(recipe: TrainRecipe, codec: TextCodec) -> "SubwordSampling":
        """Return the subword sampling of a recipe.

        Raises:
            ConfigError: a vocabulary has only one segmentation of a text.
        """
        return SubwordSampling(
            source=_make_sampler(recipe, "source", codec.source, codec.target),
            target=_make_sampler(recipe, "target", codec.target, codec.source),
            seed=recipe.seed.seed,
            longest=min(recipe.training.update_tokens, recipe.model.longest_sequence),
        )

    @property
    def is_active(self) -> bool:
        """At least one side is sampled."""
        return self.source is not None or self.target is not None

    def read(self, pairs: Pairs, indices: Indices, update: int) -> tuple[Sequences, Sequences]:
        """Read pairs of a shard.

        Args:
            pairs: the shard.
            indices: (B,) indices of the pairs to read.
            update: number of the update that reads them, from 1.

        Returns:
            Source ids and target ids of the pairs.
        """
        return self.sample(indices, pairs.source.take(indices), pairs.target.take(indices), update)

    def sample(
        self, indices: Indices, source: Sequences, target: Sequences, update: int
    ) -> tuple[Sequences, Sequences]:
        """Sample the segmentation of pairs.

        Args:
            indices: (B,) indices of the pairs in their shard.
            source, target: their ids, segmented by the vocabulary.
            update: number of the update that reads them, from 1.

        Returns:
            Source ids and target ids of the pairs.
        """

        def sample_side(name: str, stored: Sequences, sampler: SubwordSampler | None) -> Sequences:
            if sampler is None:
                return stored
            ends = np.cumsum(stored.lengths, dtype=np.int64).tolist()
            ids = stored.ids.tolist()
            sampled = [
                self._sample(sampler, ids[first:end], subword_seed(self.seed, update, pair, name))
                for (first, end), pair in zip(pairwise([0, *ends]), indices.tolist(), strict=True)
            ]
            return Sequences.pack(sampled, stored.ids.dtype.name)

        return (
            sample_side("source", source, self.source),
            sample_side("target", target, self.target),
        )

    def growth(self, pairs: Pairs) -> tuple[float, float]:
        """Estimate the factors by which sources and targets become longer than stored."""
        if not self.is_active:
            return 1.0, 1.0
        some = np.linspace(0, len(pairs) - 1, min(len(pairs), GROWTH_PAIRS)).astype(np.int64)
        drawn = self.read(pairs, some, update=0)
        stored = pairs.source.take(some), pairs.target.take(some)
        source, target = (
            len(new.ids) / len(old.ids) for new, old in zip(drawn, stored, strict=True)
        )
        return source, target

    def _sample(self, sampler: SubwordSampler, stored: list[int], seed: int) -> list[int]:
        drawn = sampler.sample(stored, seed)  # keeps the end symbol
        return drawn if len(drawn) <= self.longest else stored


def _make_sampler(
    recipe: TrainRecipe, side: str, vocabulary: Vocabulary, other_vocabulary: Vocabulary
) -> SubwordSampler | None:
    """Return the sampler of a side; None if it is not sampled."""
    chosen = recipe.training.subword_sampling
    if chosen not in (side, "both"):
        return None
    subword = _sampled_part(vocabulary)
    if subword is None:
        other = "target" if side == "source" else "source"
        has_other = chosen == "both" and _sampled_part(other_vocabulary)
        instead = f"use --subword-sampling {other}" if has_other else "leave it out"
        raise ConfigError(
            f"subword_sampling ({chosen!r}) has no effect: the {side} vocabulary has only "
            f"one segmentation of a text; {instead}, or preprocess with --segmentation bpe or "
            "unigram [training.subword_sampling]"
        )
    return SubwordSampler(subword.data, recipe.training.subword_alpha)


def _sampled_part(vocabulary: Vocabulary) -> Subword | None:
    """Return the subword model of a vocabulary, or None if it cannot be sampled."""
    while isinstance(vocabulary, Cleaned | Tokenized):
        vocabulary = vocabulary.vocabulary
    if isinstance(vocabulary, Subword) and can_sample(vocabulary.data):
        return vocabulary
    return None
