"""Constraints on hypotheses: which tokens may follow a prefix.

A constraint takes candidates away and leaves the probabilities of the others unchanged, so that
scores remain those of forced decoding.
"""

from typing import Protocol

import torch
from torch import Tensor

from nmtkit.symbols import EOS_ID

IMPOSSIBLE = float("-inf")
"""Sum or score of a row, candidate or hypothesis that does not exist."""

NO_TOKEN = -1
"""Stands behind the end of a forced beginning."""


class FormConstraint(Protocol):
    """Keeps the hypotheses of B sentences to the form of their type of target."""

    def permitted(self, prefixes: Tensor) -> Tensor:
        """Return which tokens may follow prefixes (B, W, T), as a mask (B, W, V)."""

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""


class Constraints:
    """Constraints on the hypotheses of B sentences.

    A forced beginning is exempt from the other constraints, and so is the end symbol at a
    sentence's last permitted position.
    """

    def __init__(
        self,
        min_lengths: Tensor | None = None,
        beginnings: Tensor | None = None,
        banned: tuple[int, ...] = (),
        no_repeat_ngram: int = 0,
        form: FormConstraint | None = None,
    ) -> None:
        """Store them.

        Args:
            min_lengths: (B,) int64, the shortest hypothesis permitted, its end symbol counted.
            beginnings: (B, P) int64, the tokens that hypotheses must begin with; NO_TOKEN behind.
            banned: tokens that never follow.
            no_repeat_ngram: no sequence of this many tokens comes twice; 0 = any may.
            form: keeps hypotheses to a form; None = they may have any.
        """
        self._min_lengths = min_lengths
        self._beginnings = beginnings
        self._banned = banned
        self._no_repeat_ngram = no_repeat_ngram
        self._form = form

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Make the sums of candidates that are not permitted impossible, in place.

        Args:
            sums: (B, W, V) of each row with each next token.
            prefixes: (B, W, T) the tokens of each row so far, without the begin symbol.
        """
        position = prefixes.shape[2]
        forced = self._forced(sums, position)
        for token in self._banned:
            sums[:, :, token] = IMPOSSIBLE
        if self._min_lengths is not None:
            is_early = position + 1 < self._min_lengths
            sums[:, :, EOS_ID].masked_fill_(is_early[:, None], IMPOSSIBLE)
        if 0 < self._no_repeat_ngram <= position:
            _forbid_repeats(sums, prefixes, self._no_repeat_ngram)
        if self._form is not None:
            sums.masked_fill_(~self._form.permitted(prefixes), IMPOSSIBLE)
        if forced is not None:
            is_forced, tokens, kept = forced
            sums.masked_fill_(is_forced[:, None, None], IMPOSSIBLE)
            sums.scatter_(
                2, tokens, torch.where(is_forced[:, None, None], kept, sums.gather(2, tokens))
            )

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""
        if self._min_lengths is not None:
            self._min_lengths = self._min_lengths[sentences]
        if self._beginnings is not None:
            self._beginnings = self._beginnings[sentences]
        if self._form is not None:
            self._form.keep(sentences)

    def _forced(self, sums: Tensor, position: int) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return which sentences (B,) are forced, by which tokens (B, W, 1), and their sums."""
        if self._beginnings is None or position >= self._beginnings.shape[1]:
            return None
        column = self._beginnings[:, position]
        tokens = column.clamp(min=0)[:, None, None].expand(-1, sums.shape[1], 1)
        return column != NO_TOKEN, tokens, sums.gather(2, tokens)


def _forbid_repeats(sums: Tensor, prefixes: Tensor, size: int) -> None:
    """Make tokens impossible that would end a sequence of `size` tokens that was there before."""
    ngrams = prefixes.unfold(2, size, 1)  # (B, W, n, size)
    last = prefixes[:, :, prefixes.shape[2] - size + 1 :]
    is_repeated = (ngrams[:, :, :, :-1] == last[:, :, None, :]).all(-1)
    sentence, row, place = is_repeated.nonzero(as_tuple=True)
    sums[sentence, row, ngrams[sentence, row, place, -1]] = IMPOSSIBLE
