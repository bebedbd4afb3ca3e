"""Greedy search of a model that verifies what a faster model, the draft, proposes.

The draft proposes tokens by steps of its own. The model reads them in one step, and keeps those
that it would have chosen itself; then follows a token of its own. So the result is that of greedy
search, `beam_search` with width 1, in fewer steps of the model. Only rounding may differ, because
the model computes several positions at a time: it may decide between tokens that are equally
likely up to rounding.

For each sentence of a batch, in every round:

    known      prefix ... y
    draft      reads what it has not read, and proposes p1 ... pk
    model      reads y p1 ... pk, and chooses t1 ... tk+1
    result     t1 ... ta+1, where a is the number of leading proposals with p = t
    both       remove the last k - a tokens that they have read

In every sentence the draft then has not read the last two tokens of the result.

Source: Stern et al. 2018 (https://arxiv.org/abs/1811.03115), section 4, for verifying in parallel;
Xia et al. 2023 (https://arxiv.org/abs/2203.16487) and Leviathan et al. 2023
(https://arxiv.org/abs/2211.17192) for a draft by another model.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.constraints import IMPOSSIBLE, Constraints
from nmtkit.decoding.search import (
    NO_PROBABILITIES,
    Hypothesis,
    State,
    Step,
    length_penalty,
    row_topk,
)
from nmtkit.errors import DamagedError
from nmtkit.symbols import BOS_ID, EOS_ID


class ShorteningState(State, Protocol):
    """State of a step function that reads T tokens of B sentences, one row each, in a step."""

    def remove_last(self, counts: Sequence[int]) -> None:
        """Remove the last counts[b] tokens of each sentence."""


S = TypeVar("S", bound=ShorteningState)


@dataclass(frozen=True)
class Draft(Generic[S]):
    """A faster model of the same vocabulary.

    Attributes:
        step: returns the logits (B, T, V) after each of T tokens (B, T).
        state: state of B sentences, one row each; consumed.
        num_proposed: k, the number of tokens to propose in a round; at least 1.
    """

    step: Step[S]
    state: S
    num_proposed: int


def draft_search(
    step: Step[S],
    state: S,
    draft: Draft[S],
    max_lengths: Tensor,
    config: SearchConfig,
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Find what greedy search finds; the module's docstring defines the search.

    Args:
        step: returns the logits (B, T, V) after each of T tokens (B, T); the first one is the begin
            symbol.
        state: state of B sentences, one row each; consumed.
        draft: proposes tokens.
        max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted.
        config: length penalty of the scores.
        constraints: other constraints on hypotheses, except n-grams and forms; consumed.

    Returns:
        for each of the B sentences one hypothesis; none only if the constraints leave none.

    Raises:
        DamagedError: the logits are not numbers.
    """
    rows = _Rows(max_lengths, constraints)
    results: list[list[Hypothesis]] = [[] for _ in rows.prefixes]
    num_unread = 1  # tokens at the end of every prefix that the draft has not read
    while True:
        count = min(draft.num_proposed, rows.fewest_left - 1)
        read = rows.last_tokens(1)
        if count:
            read = torch.cat([read, _propose(draft, rows, num_unread, count)], 1)
        num_unread = 2 if count else num_unread + 1
        chosen, log_probs = rows.choose(step(read, state), 0)
        is_right = (read[:, 1:] == chosen[:, :-1]).long()
        num_right = is_right.cumprod(1).sum(1).tolist()
        rows.extend(chosen.tolist(), log_probs.tolist(), num_right)
        live = [index for index, is_done in enumerate(rows.is_done) if not is_done]
        if len(live) < len(rows.prefixes):
            for sentence, hypotheses in rows.done(config):
                results[sentence] = hypotheses
            if not live:
                return results
            kept = torch.tensor(live, device=read.device)
            rows.keep(live, kept)
            state.keep(kept)
            draft.state.keep(kept)
        num_rejected = [count - num_right[index] for index in live]
        if any(num_rejected):
            state.remove_last(num_rejected)
            draft.state.remove_last(num_rejected)


def _propose(draft: Draft[S], rows: "_Rows", num_unread: int, count: int) -> Tensor:
    """Let the draft read the last tokens of all prefixes; return its next tokens (B, count)."""
    proposed = [rows.last_tokens(num_unread)]
    for offset in range(count):
        logits = draft.step(proposed[-1], draft.state)
        proposed.append(rows.choose(logits[:, -1:], offset)[0])
    return torch.cat(proposed[1:], 1)


class _Rows:
    """The prefixes of the sentences that are not finished.

    Attributes:
        prefixes: B prefixes, the begin symbol first.
        is_done: the prefixes that have ended.
    """

    def __init__(self, max_lengths: Tensor, constraints: Constraints | None) -> None:
        """Begin each sentence with the begin symbol."""
        self._max_lengths, self._constraints = max_lengths, constraints
        self._limits: list[int] = max_lengths.tolist()
        self._sentences = list(range(len(max_lengths)))
        self._sums = [0.0 for _ in self._sentences]
        self._num_steps = 0
        self.prefixes = [[BOS_ID] for _ in self._sentences]
        self.is_done = [False for _ in self._sentences]

    @property
    def fewest_left(self) -> int:
        """The number of tokens that may follow in every sentence, at least 1."""
        pairs = zip(self._limits, self.prefixes, strict=True)
        return min(limit - (len(prefix) - 1) for limit, prefix in pairs)

    def last_tokens(self, count: int) -> Tensor:
        """Return the last tokens (B, count) of the prefixes."""
        last = [prefix[-count:] for prefix in self.prefixes]
        return torch.tensor(last, device=self._max_lengths.device)

    def choose(self, logits: Tensor, offset: int) -> tuple[Tensor, Tensor]:
        """Choose the likeliest permitted tokens.

        Args:
            logits: (B, T, V) of the tokens after the prefixes and `offset` more tokens.
            offset: number of these.

        Returns:
            the tokens (B, T) and their log-probabilities; of equal ones, the end symbol.
        """
        log_probs = logits.log_softmax(-1, dtype=torch.float32)
        lengths = torch.tensor([[len(prefix) - 1] for prefix in self.prefixes])
        indices = lengths + torch.arange(offset, offset + logits.shape[1])
        positions = indices.to(logits.device)
        is_last = positions + 1 >= self._max_lengths[:, None]
        ends = log_probs[:, :, EOS_ID].clone()
        if self._constraints:
            self._constraints.apply_at(log_probs, positions)
        log_probs[:, :, BOS_ID] = IMPOSSIBLE
        # As `beam_search` does it, which matters if two tokens are equally likely.
        best, tokens = (one.view(ends.shape) for one in row_topk(log_probs.flatten(0, 1), 1))
        is_end = is_last | (log_probs[:, :, EOS_ID] >= best)
        return tokens.masked_fill(is_end, EOS_ID), torch.where(is_last, ends, best)

    def extend(
        self, tokens: list[list[int]], log_probs: list[list[float]], num_right: list[int]
    ) -> None:
        """Append the model's tokens: those that the draft proposed rightly, and one more.

        Args:
            tokens, log_probs: of each sentence, what `choose` returned.
            num_right: of each sentence, the number of leading tokens that were proposed.
        """
        self._num_steps += 1
        for index, prefix in enumerate(self.prefixes):
            for place in range(num_right[index] + 1):
                prefix.append(tokens[index][place])
                self._sums[index] += log_probs[index][place]
                self.is_done[index] = prefix[-1] == EOS_ID or not math.isfinite(self._sums[index])
                if self.is_done[index]:
                    break

    def done(self, config: SearchConfig) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield the index of each sentence that has ended, and its hypothesis.

        Raises:
            DamagedError: a sentence has no hypothesis, because its logits are not numbers.
        """
        for index, prefix in enumerate(self.prefixes):
            log_prob = self._sums[index]
            if self.is_done[index] and math.isfinite(log_prob):
                score = log_prob / length_penalty(len(prefix) - 1, config)
                ids = tuple(prefix[1:])
                yield self._sentences[index], [Hypothesis(ids, log_prob, score, self._num_steps)]
            elif self.is_done[index] and (math.isnan(log_prob) or not self._constraints):
                raise DamagedError(NO_PROBABILITIES)

    def keep(self, live: list[int], kept: Tensor) -> None:
        """Keep only these sentences, which are given as a list and as a tensor."""
        self._max_lengths = self._max_lengths[kept]
        self._limits = [self._limits[index] for index in live]
        self._sentences = [self._sentences[index] for index in live]
        self._sums = [self._sums[index] for index in live]
        self.prefixes = [self.prefixes[index] for index in live]
        self.is_done = [False for _ in live]
        if self._constraints:
            self._constraints.keep(kept)
