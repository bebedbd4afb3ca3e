"""Constraints on hypotheses: which tokens may follow a prefix, and which must occur.

A constraint removes candidates, or adds some that the search would not consider. The probabilities
stay those of the model, so scores equal those of forced decoding. Constraints follow the rows of a
search as the state of the models does.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmtkit.symbols import EOS_ID

IMPOSSIBLE = float("-inf")
"""Log-probability or score of a row, candidate or hypothesis that does not exist."""

NO_TOKEN = -1
"""Padding of ids."""


class Constraint:
    """A constraint on the hypotheses of B sentences; by default it does not constrain them.

    In each step the search calls `apply`, then `proposals` and `progress`, and at last `keep`,
    `expand` (after the first step) or `reorder` (after the others).

    Attributes:
        demands: it forbids the end symbol until something has occurred, and has `proposals` and a
            `progress`. Samples cannot meet a demand.
    """

    demands = False

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Set the sums of forbidden candidates to IMPOSSIBLE, in place.

        Args:
            sums: (B, W, V) sums of log-probabilities of each row with each next token.
            prefixes: (B, W, T) tokens of each row so far, without the begin symbol.
        """

    def exempt(self, position: int) -> Tensor | None:
        """Return the ids (B,) that no constraint forbids as token number `position`, from 0.

        NO_TOKEN stands for none of a sentence, and None for none of all.
        """

    def proposals(self) -> Tensor | None:
        """Return ids (B, W, K) that are candidates of a row however improbable; None = none.

        They are padded with NO_TOKEN.
        """

    def progress(self, parents: Tensor, tokens: Tensor) -> Tensor | None:
        """Return how much of what must occur each candidate contains; None = nothing must.

        The search divides the beam evenly among candidates of different progress.
        Source: Post and Vilar 2018, https://arxiv.org/abs/1804.06609 (dynamic beam allocation).

        Args:
            parents: (B, C) rows.
            tokens: (B, C) their next tokens.

        Returns:
            (B, C) int64.
        """

    def expand(self, width: int) -> None:
        """Repeat each sentence's only row `width` times."""

    def reorder(self, parents: Tensor) -> None:
        """Make row w of each sentence continue its row parents[:, w]; parents (B, W) int64."""

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""


class Constraints(Constraint):
    """Several constraints, each of which holds.

    At a sentence's last permitted position only a demand forbids the end symbol.
    """

    def __init__(self, constraints: Sequence[Constraint], max_lengths: Tensor) -> None:
        """Store the constraints.

        Args:
            constraints: at least one.
            max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted.
        """
        self._constraints = constraints
        self._max_lengths = max_lengths

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Apply all constraints; keep the sums of the tokens that one of them exempts."""
        position = prefixes.shape[2]
        is_last = self._max_lengths <= position + 1
        exempt = torch.where(is_last, EOS_ID, NO_TOKEN)[:, None]
        columns = [one.exempt(position) for one in self._constraints]
        exempt = torch.cat([exempt, *(one[:, None] for one in columns if one is not None)], 1)
        index = exempt.clamp(min=0)[:, None].expand(-1, sums.shape[1], -1)
        kept = sums.gather(2, index)
        for constraint in self._constraints:
            if not constraint.demands:
                constraint.apply(sums, prefixes)
        # Several columns may have the same index.
        is_exempt = (exempt != NO_TOKEN)[:, None]
        sums.scatter_reduce_(2, index, kept.masked_fill(~is_exempt, IMPOSSIBLE), "amax")
        for constraint in self._constraints:
            if constraint.demands:
                constraint.apply(sums, prefixes)

    def proposals(self) -> Tensor | None:
        """Return all proposals, next to each other."""
        found = [one for one in (each.proposals() for each in self._constraints) if one is not None]
        return torch.cat(found, 2) if found else None

    def progress(self, parents: Tensor, tokens: Tensor) -> Tensor | None:
        """Return the total progress."""
        totals = (one.progress(parents, tokens) for one in self._constraints)
        found = [total for total in totals if total is not None]
        return torch.stack(found).sum(0) if found else None

    def expand(self, width: int) -> None:
        """Expand all constraints."""
        for constraint in self._constraints:
            constraint.expand(width)

    def reorder(self, parents: Tensor) -> None:
        """Reorder all constraints."""
        for constraint in self._constraints:
            constraint.reorder(parents)

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences, in all constraints."""
        self._max_lengths = self._max_lengths[sentences]
        for constraint in self._constraints:
            constraint.keep(sentences)


class ForcedPrefixes(Constraint):
    """Hypotheses begin with given tokens, which no other constraint forbids."""

    def __init__(self, prefixes: Tensor) -> None:
        """Store prefixes (B, P) int64, padded with NO_TOKEN."""
        self._prefixes = prefixes

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Forbid all candidates in a forced prefix; `exempt` permits the right one."""
        tokens = self.exempt(prefixes.shape[2])
        if tokens is not None:
            sums.masked_fill_((tokens != NO_TOKEN)[:, None, None], IMPOSSIBLE)

    def exempt(self, position: int) -> Tensor | None:
        """Return the forced tokens."""
        return self._prefixes[:, position] if position < self._prefixes.shape[1] else None

    def keep(self, sentences: Tensor) -> None:
        """Keep the prefixes of these sentences."""
        self._prefixes = self._prefixes[sentences]


class ShortestLengths(Constraint):
    """Hypotheses have a smallest length."""

    def __init__(self, lengths: Tensor) -> None:
        """Store the shortest lengths permitted (B,) int64, the end symbol counted."""
        self._lengths = lengths

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Forbid the end symbol where it comes too early."""
        is_early = prefixes.shape[2] + 1 < self._lengths[:, None]
        sums[:, :, EOS_ID].masked_fill_(is_early, IMPOSSIBLE)

    def keep(self, sentences: Tensor) -> None:
        """Keep the lengths of these sentences."""
        self._lengths = self._lengths[sentences]


class BannedToken(Constraint):
    """A token, or several, are never generated."""

    def __init__(self, token: int | Tensor) -> None:
        """Store the id, or the ids."""
        self._token = token

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:  # noqa: ARG002
        """Forbid the token."""
        sums[:, :, self._token] = IMPOSSIBLE


class NoRepeatedNgrams(Constraint):
    """N-grams of a length occur at most once in a hypothesis."""

    def __init__(self, size: int) -> None:
        """Store the length, at least 1."""
        self._size = size

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Forbid tokens that would complete an n-gram that the row has already."""
        size, position = self._size, prefixes.shape[2]
        if position < size:
            return
        ngrams = prefixes.unfold(2, size, 1)  # (B, W, n, size)
        last = prefixes[:, :, position - size + 1 :]
        is_repeated = (ngrams[:, :, :, :-1] == last[:, :, None, :]).all(-1)
        sentence, row, ngram = is_repeated.nonzero(as_tuple=True)
        sums[sentence, row, ngrams[sentence, row, ngram, -1]] = IMPOSSIBLE
