"""Subword regularisation: the text of training pairs is cut anew each time it is seen.

What the dataset holds is cut at random once more, by the vocabulary that made it; what is drawn
follows from (seed, update, pair, side), so that ranks, slots and what was drawn before do
not matter. Validation and translation cut text as the dataset does.
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
"""So many pairs tell how much longer texts become."""


@dataclass(frozen=True)
class Segmentation:
    """How the text of training pairs is cut.

    Attributes:
        source, target: what cuts a side anew; None = as it is stored.
        seed: of the run.
        longest: tokens of a sequence at most, its end symbol counted; one that would be longer
            stays as it is stored.
    """

    source: Resampler | None
    target: Resampler | None
    seed: int
    longest: int

    @staticmethod
    def of(recipe: TrainRecipe, codec: TextCodec) -> "Segmentation":
        """Return what a recipe asks for.

        Raises:
            ConfigError: a vocabulary that has one way alone to cut a text.
        """
        return Segmentation(
            source=_resampler(recipe, "source", codec.source, codec.target),
            target=_resampler(recipe, "target", codec.target, codec.source),
            seed=recipe.seed.seed,
            longest=min(recipe.training.update_tokens, recipe.model.longest_sequence),
        )

    @property
    def is_anew(self) -> bool:
        """Some text is cut anew, which takes its time."""
        return self.source is not None or self.target is not None

    def read(self, pairs: Pairs, indices: Indices, update: int) -> tuple[Sequences, Sequences]:
        """Read pairs of a shard.

        Args:
            pairs: the shard.
            indices: (B,) which of its pairs.
            update: the one that they are for, from 1.

        Returns:
            their sources, and their targets.
        """

        def read_side(name: str, side: Side, resampler: Resampler | None) -> Sequences:
            stored = side.take(indices)
            if resampler is None:
                return stored
            ends = np.cumsum(stored.lengths, dtype=np.int64).tolist()
            ids = stored.ids.tolist()
            cut = [
                self._cut(resampler, ids[first:end], subword_seed(self.seed, update, pair, name))
                for (first, end), pair in zip(pairwise([0, *ends]), indices.tolist(), strict=True)
            ]
            return Sequences.pack(cut, stored.ids.dtype.name)

        return (
            read_side("source", pairs.source, self.source),
            read_side("target", pairs.target, self.target),
        )

    def growth(self, pairs: Pairs) -> tuple[float, float]:
        """Measure how many times as long as they are stored some sources, and targets, become."""
        if not self.is_anew:
            return 1.0, 1.0
        some = np.linspace(0, len(pairs) - 1, min(len(pairs), GROWTH_PAIRS)).astype(np.int64)
        drawn = self.read(pairs, some, update=0)
        stored = pairs.source.take(some), pairs.target.take(some)
        source, target = (
            len(new.ids) / len(old.ids) for new, old in zip(drawn, stored, strict=True)
        )
        return source, target

    def _cut(self, resampler: Resampler, stored: list[int], seed: int) -> list[int]:
        drawn = resampler.resample(stored, seed)  # the end symbol stays where it is
        return drawn if len(drawn) <= self.longest else stored


def _resampler(
    recipe: TrainRecipe, side: str, vocabulary: Vocabulary, other_vocabulary: Vocabulary
) -> Resampler | None:
    """Return what cuts a side anew, if anything is to."""
    chosen = recipe.training.subword_sampling
    if chosen not in (side, "both"):
        return None
    subword = _resampled(vocabulary)
    if subword is None:
        other = "target" if side == "source" else "source"
        has_other = chosen == "both" and _resampled(other_vocabulary)
        instead = f"take --subword-sampling {other}" if has_other else "leave it out"
        raise ConfigError(
            f"subword_sampling ({chosen!r}) has no effect: the {side} vocabulary has one way alone "
            f"to cut a text; {instead}, or preprocess with --segmentation bpe or unigram "
            "[training.subword_sampling]"
        )
    return Resampler(subword.data, recipe.training.subword_alpha)


def _resampled(vocabulary: Vocabulary) -> Subword | None:
    """Return what of a vocabulary has several ways to cut a text, if anything has."""
    if isinstance(vocabulary, Tokenised):
        vocabulary = vocabulary.vocabulary
    if isinstance(vocabulary, Subword) and can_resample(vocabulary.data):
        return vocabulary
    return None
