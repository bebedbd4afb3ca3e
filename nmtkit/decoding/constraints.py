"""Constraints on hypotheses: which tokens may follow a prefix.

A constraint removes candidates and leaves the probabilities of the others unchanged. So scores
equal those of forced decoding.
"""

from typing import Protocol

import torch
from torch import Tensor

from nmtkit.symbols import EOS_ID

IMPOSSIBLE = float("-inf")
"""Log-probability or score of a row, candidate or hypothesis that does not exist."""

NO_TOKEN = -1
"""Padding of forced prefixes."""


class FormConstraint(Protocol):
    """Limits the hypotheses of B sentences to the form that their type of target demands."""

    def permitted(self, prefixes: Tensor) -> Tensor:
        """Return the mask (B, W, V) of tokens that may follow prefixes (B, W, T)."""

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""


class Constraints:
    """Constraints on the hypotheses of B sentences.

    The other constraints do not apply to a forced prefix, nor to the end symbol at a sentence's
    last permitted position.
    """

    def __init__(
        self,
        min_lengths: Tensor | None = None,
        forced_prefixes: Tensor | None = None,
        banned: tuple[int, ...] = (),
        no_repeat_ngram: int = 0,
        form: FormConstraint | None = None,
    ) -> None:
        """Store the constraints; without arguments, there are none.

        Args:
            min_lengths: (B,) int64, the shortest hypothesis permitted, its end symbol counted.
            forced_prefixes: (B, P) int64, padded with NO_TOKEN.
            banned: ids that are never generated.
            no_repeat_ngram: n-grams of this length occur at most once; 0 = no limit.
            form: the form of hypotheses; None = any.
        """
        self._min_lengths = min_lengths
        self._forced_prefixes = forced_prefixes
        self._banned = banned
        self._no_repeat_ngram = no_repeat_ngram
        self._form = form

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Set the sums of forbidden candidates to IMPOSSIBLE, in place.

        Args:
            sums: (B, W, V) sums of log-probabilities of each row with each next token.
            prefixes: (B, W, T) tokens of each row so far, without the begin symbol.
        """
        position = prefixes.shape[2]
        forced = self._forced(sums, position)
        self._forbid(sums, position)
        if 0 < self._no_repeat_ngram <= position:
            _forbid_repeats(sums, prefixes, self._no_repeat_ngram)
        if self._form is not None:
            sums.masked_fill_(~self._form.permitted(prefixes), IMPOSSIBLE)
        _force(sums, forced)

    def apply_at(self, sums: Tensor, positions: Tensor) -> None:
        """Apply the constraints at several positions of a sentence, except n-grams and forms.

        Args:
            sums: (B, T, V) of T next tokens of each sentence.
            positions: (B, T) int64, their indices in the hypothesis, from 0.
        """
        assert not self._no_repeat_ngram, "n-grams need prefixes"
        assert self._form is None, "forms need prefixes"
        forced = self._forced(sums, positions)
        self._forbid(sums, positions)
        _force(sums, forced)

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""
        if self._min_lengths is not None:
            self._min_lengths = self._min_lengths[sentences]
        if self._forced_prefixes is not None:
            self._forced_prefixes = self._forced_prefixes[sentences]
        if self._form is not None:
            self._form.keep(sentences)

    def _forbid(self, sums: Tensor, position: int | Tensor) -> None:
        """Forbid banned tokens, and the end symbol before the shortest hypothesis has ended."""
        for token in self._banned:
            sums[:, :, token] = IMPOSSIBLE
        if self._min_lengths is not None:
            is_early = position + 1 < self._min_lengths[:, None]
            sums[:, :, EOS_ID].masked_fill_(is_early, IMPOSSIBLE)

    def _forced(self, sums: Tensor, position: int | Tensor) -> tuple[Tensor, ...] | None:
        """Return the forced tokens: mask (B, 1 or T, 1), tokens and sums (B, W or T, 1)."""
        forced = self._forced_prefixes
        if forced is None or not forced.shape[1]:
            return None
        if isinstance(position, int):
            if position >= forced.shape[1]:
                return None
            columns = forced[:, position, None]
        else:
            is_inside = position < forced.shape[1]
            columns = forced.gather(1, position.clamp(max=forced.shape[1] - 1))
            columns = columns.where(is_inside, NO_TOKEN)
        tokens = columns.clamp(min=0)[:, :, None].expand(-1, sums.shape[1], 1)
        return (columns != NO_TOKEN)[:, :, None], tokens, sums.gather(2, tokens)


def _force(sums: Tensor, forced: tuple[Tensor, ...] | None) -> None:
    """Forbid all other tokens where one is forced; `forced` is from `Constraints._forced`."""
    if forced is not None:
        is_forced, tokens, kept = forced
        sums.masked_fill_(is_forced, IMPOSSIBLE)
        sums.scatter_(2, tokens, torch.where(is_forced, kept, sums.gather(2, tokens)))


def _forbid_repeats(sums: Tensor, prefixes: Tensor, size: int) -> None:
    """Forbid tokens that would complete an n-gram of `size` tokens that the row has already."""
    ngrams = prefixes.unfold(2, size, 1)  # (B, W, n, size)
    last = prefixes[:, :, prefixes.shape[2] - size + 1 :]
    is_repeated = (ngrams[:, :, :, :-1] == last[:, :, None, :]).all(-1)
    sentence, row, ngram = is_repeated.nonzero(as_tuple=True)
    sums[sentence, row, ngrams[sentence, row, ngram, -1]] = IMPOSSIBLE
