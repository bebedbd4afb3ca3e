"""Subword sampling: the text of training pairs is segmented at random each time it is read.

The vocabulary that made the dataset segments its text again. The draw follows from (seed, update,
pair, side), so ranks, micro-batches and earlier draws do not change it. Validation and translation
segment text as the dataset does.
Source: Kudo 2018, https://arxiv.org/abs/1804.10959; Provilkov et al. 2020,
https://arxiv.org/abs/1910.13267
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Indices, Pairs, Sequences, Side
from nmtkit.errors import ConfigError
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.resampling import Resampler, can_resample
from nmtkit.text.subword import Subword
from nmtkit.text.tokenised import Tokenised
from nmtkit.training.seeds import subword_seed

GROWTH_PAIRS = 1000
"""Number of pairs on which the growth of texts is measured."""


@dataclass(frozen=True)
class SubwordSampling:
    """How the text of training pairs is segmented.

    Attributes:
        source, target: the resampler of a side; None = ids as stored.
        seed: of the run.
        longest: largest number of tokens of a sequence, its end symbol counted; a sequence that
            would become longer stays as stored.
    """

    source: Resampler | None
    target: Resampler | None
    seed: int
    longest: int

    @staticmethod
    def of(recipe: TrainRecipe, codec: TextCodec) -> "SubwordSampling":
        """Return what a recipe asks for.

        Raises:
            ConfigError: a vocabulary has only one segmentation of a text.
        """
        return SubwordSampling(
            source=_resampler(recipe, "source", codec.source, codec.target),
            target=_resampler(recipe, "target", codec.target, codec.source),
            seed=recipe.seed.seed,
            longest=min(recipe.training.update_tokens, recipe.model.longest_sequence),
        )

    @property
    def is_active(self) -> bool:
        """Some side is sampled, which takes time."""
        return self.source is not None or self.target is not None

    def read(self, pairs: Pairs, indices: Indices, update: int) -> tuple[Sequences, Sequences]:
        """Read pairs of a shard.

        Args:
            pairs: the shard.
            indices: (B,) of the pairs to read.
            update: number of the update that they are for, from 1.

        Returns:
            their sources and their targets.
        """

        def read_side(name: str, side: Side, resampler: Resampler | None) -> Sequences:
            stored = side.take(indices)
            if resampler is None:
                return stored
            ends = np.cumsum(stored.lengths, dtype=np.int64).tolist()
            ids = stored.ids.tolist()
            sampled = [
                self._sample(resampler, ids[first:end], subword_seed(self.seed, update, pair, name))
                for (first, end), pair in zip(pairwise([0, *ends]), indices.tolist(), strict=True)
            ]
            return Sequences.pack(sampled, stored.ids.dtype.name)

        return (
            read_side("source", pairs.source, self.source),
            read_side("target", pairs.target, self.target),
        )

    def growth(self, pairs: Pairs) -> tuple[float, float]:
        """Measure by which factor sources, and targets, become longer than they are stored."""
        if not self.is_active:
            return 1.0, 1.0
        some = np.linspace(0, len(pairs) - 1, min(len(pairs), GROWTH_PAIRS)).astype(np.int64)
        drawn = self.read(pairs, some, update=0)
        stored = pairs.source.take(some), pairs.target.take(some)
        source, target = (
            len(new.ids) / len(old.ids) for new, old in zip(drawn, stored, strict=True)
        )
        return source, target

    def _sample(self, resampler: Resampler, stored: list[int], seed: int) -> list[int]:
        drawn = resampler.resample(stored, seed)  # the end symbol stays where it is
        return drawn if len(drawn) <= self.longest else stored


def _resampler(
    recipe: TrainRecipe, side: str, vocabulary: Vocabulary, other_vocabulary: Vocabulary
) -> Resampler | None:
    """Return the resampler of a side; None if it is not sampled."""
    chosen = recipe.training.subword_sampling
    if chosen not in (side, "both"):
        return None
    subword = _resampled(vocabulary)
    if subword is None:
        other = "target" if side == "source" else "source"
        has_other = chosen == "both" and _resampled(other_vocabulary)
        instead = f"take --subword-sampling {other}" if has_other else "leave it out"
        raise ConfigError(
            f"subword_sampling ({chosen!r}) has no effect: the {side} vocabulary has only "
            f"one segmentation of a text; {instead}, or preprocess with --segmentation bpe or "
            "unigram [training.subword_sampling]"
        )
    return Resampler(subword.data, recipe.training.subword_alpha)


def _resampled(vocabulary: Vocabulary) -> Subword | None:
    """Return the part of a vocabulary that has several segmentations of a text, if there is one."""
    if isinstance(vocabulary, Tokenised):
        vocabulary = vocabulary.vocabulary
    if isinstance(vocabulary, Subword) and can_resample(vocabulary.data):
        return vocabulary
    return None
