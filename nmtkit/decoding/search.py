"""Search over a step function; it uses tensors and ids only, neither models nor text.

`search` is the one loop: in each step a `Chooser` chooses how the rows of each sentence continue.
`Beam` is the chooser of beam search; sampling.py has the other one.

Beam search for one sentence with a beam of width W; other sentences of the batch do not change it:

 1. There is one live row at first, the empty prefix; the first step reads the begin symbol.
 2. In each step the candidates are all pairs of a live row and a next token, ranked by the sum of
    natural log-probabilities. The begin symbol is no candidate, but keeps its probability, so that
    scores equal those of forced decoding. UNK may be generated.
 3. Candidates among the best W whose token is the end symbol become finished hypotheses. The best
    W candidates with another token are the next live rows.
 4. At the sentence's last permitted position only the end symbol may follow: all live rows finish.
    Before it, `Constraints` may forbid candidates. With constraints that demand tokens, the next
    live rows are divided evenly among candidates of different progress.
 5. The sentence is done at its last permitted position, when the rule `stop_when` holds, or when
    no live row can become better than the N-th best finished hypothesis. This holds if
        best live sum / penalty(longest permitted) <= N-th best finished score,
    because sums never grow and the penalty, a divisor, never falls with the length (alpha >= 0).
    `stop_when` is that W hypotheses have finished, or it never holds.
 6. The score of a hypothesis is its sum of log-probabilities / penalty(length). The result is the
    best N finished hypotheses, best first. That no live row can become better does not change it.

So width 1 is greedy decoding, and the first hypothesis depends neither on the other sentences of
the batch nor on N.

Ties: a hypothesis that finished earlier goes first, and the end symbol before any other token.
Among other candidates with equal sums `torch.topk` chooses, without a guaranteed order.

Source: paper, section 6.1, for the use of a length penalty and the longest length; fairseq 0.12
for stopping after W finished hypotheses; tensor2tensor, with which the paper was written, for going
on until no live row can become better (utils/beam_search.py).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.constraints import IMPOSSIBLE, NO_TOKEN, Constraints
from nmtkit.errors import DamagedError
from nmtkit.symbols import BOS_ID, EOS_ID

PRUNING_FRACTION = 0.125
"""Done sentences are removed once they are this fraction of the batch: removal copies the state."""

NO_PROBABILITIES = (
    "the model gives no probabilities (its logits are not numbers), so its weights are damaged; "
    "translate with another checkpoint"
)

PREFIX_BLOCK = 32
"""Positions by which the storage of prefixes grows."""

GROUP_SIZE = 64
"""Candidates per group; `row_topk` first compares the maxima of groups."""


class Follower(Protocol):
    """What follows the rows of a search: the prefixes of B sentences with W rows each."""

    def expand(self, width: int) -> None:
        """Repeat each sentence's only row `width` times."""

    def reorder(self, parents: Tensor) -> None:
        """Make row w of each sentence continue its row parents[:, w]; parents (B, W) int64."""

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences, in this order; sentences (B',) int64."""


S = TypeVar("S", bound=Follower)

Step: TypeAlias = Callable[[Tensor, S], Tensor]
"""Tokens (B, W) int64 and a state -> logits (B, W, V); advances the state by the tokens."""

Length = TypeVar("Length", float, Tensor)


class LengthPenalty(Protocol):
    """A divisor of scores that never falls as the length grows."""

    def __call__(self, length: Length, alpha: float, /) -> Length:
        """Return the divisor for a length, which counts the end symbol."""


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation.

    Attributes:
        ids: its tokens without the begin symbol; the last is the end symbol.
        log_prob: sum of natural log-probabilities, the end symbol included.
        score: log_prob / length penalty.
    """

    ids: tuple[int, ...]
    log_prob: float
    score: float


class Chooser(Protocol):
    """Chooses how the rows of B sentences continue, step by step.

    Attributes:
        width: W, the rows of a sentence from the second step on.
        tokens: (B, W) int64, the last token of each row; at first (B, 1), the begin symbol.
        parents: (B, W) int64, the row that each continues; None = each row continues itself.
        is_done: (B,) bool, whether a sentence needs no more steps.
        constraints: those that it applies, which follow the rows; None = none.
    """

    constraints: Constraints | None
    width: int
    tokens: Tensor
    parents: Tensor | None
    is_done: Tensor

    def advance(self, logits: Tensor) -> None:
        """Choose the next token of each row, given logits (B, W, V); W = 1 in the first step."""

    def hypotheses(self, sentences: Tensor) -> "list[list[Hypothesis]]":
        """Return the hypotheses of some of the sentences that are done; sentences (n,) int64."""

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""


def search(
    step: Step[S],
    state: S,
    chooser: Chooser,
    pruning_fraction: float = PRUNING_FRACTION,
) -> list[list[Hypothesis]]:
    """Continue the rows of B sentences until all sentences are done.

    Args:
        step: returns the next tokens' logits; first called with the begin symbol and W = 1.
        state: state of B sentences, one row each; consumed.
        chooser: chooses the tokens; consumed.
        pruning_fraction: fraction of done sentences at which they are removed from the batch.

    Returns:
        the hypotheses of each sentence.
    """
    followers: list[Follower] = [state]
    if chooser.constraints is not None:
        followers.append(chooser.constraints)
    sentences = list(range(len(chooser.is_done)))
    results: list[list[Hypothesis]] = [[] for _ in sentences]
    is_first = True
    while True:
        chooser.advance(step(chooser.tokens, state))
        num_done = int(chooser.is_done.sum())  # synchronises with the host
        if num_done >= pruning_fraction * len(sentences):
            done = chooser.is_done.nonzero().squeeze(1)
            for index, found in zip(done.tolist(), chooser.hypotheses(done), strict=True):
                results[sentences[index]] = found
            if num_done == len(sentences):
                return results
            remaining = (~chooser.is_done).nonzero().squeeze(1)
            sentences = [sentences[index] for index in remaining.tolist()]
            chooser.keep(remaining)
            for follower in followers:
                follower.keep(remaining)
        for follower in followers:
            if is_first:
                follower.expand(chooser.width)
            elif chooser.parents is not None:
                follower.reorder(chooser.parents)
        is_first = False


def beam_search(
    step: Step[S],
    state: S,
    max_lengths: Tensor,
    config: SearchConfig,
    constraints: Constraints | None = None,
    n_best: int = 1,
    pruning_fraction: float = PRUNING_FRACTION,
) -> list[list[Hypothesis]]:
    """Find the best hypotheses of each sentence; the module's docstring defines the search.

    Args:
        step, state, pruning_fraction: as for `search`.
        max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted.
        config: width and length penalty.
        constraints: other constraints on hypotheses; consumed.
        n_best: N, the number of hypotheses to return, at most W.

    Returns:
        for each of the B sentences at most N hypotheses, best first; none only if the constraints
        leave none.

    Raises:
        DamagedError: a sentence has no hypothesis, because its logits are not numbers.
    """
    return search(step, state, Beam(max_lengths, config, constraints, n_best), pruning_fraction)


def longest_translation(config: SearchConfig, num_source: int) -> int:
    """Return the largest length of a translation of `num_source` tokens, end symbols counted."""
    return int(config.max_length_ratio * num_source) + config.max_length_offset


def length_penalty(length: Length, config: SearchConfig) -> Length:
    """Return the divisor of a sum of log-probabilities; the length counts the end symbol."""
    return LENGTH_PENALTIES[config.length_penalty_form](length, config.length_penalty)


def gnmt_penalty(length: Length, alpha: float) -> Length:
    """Compute ((5 + length) / 6)^alpha.

    Source: Wu et al. 2016, https://arxiv.org/abs/1609.08144, equation 14; used in the paper,
    section 6.1.
    """
    penalty: Length = ((5 + length) / 6) ** alpha
    return penalty


def power_penalty(length: Length, alpha: float) -> Length:
    """Compute length^alpha. Source: Marian's --normalize, fairseq's --lenpen."""
    penalty: Length = length**alpha
    return penalty


def no_penalty(length: Length, _alpha: float) -> Length:
    """Return 1, in the type and shape of the length."""
    penalty: Length = length**0.0
    return penalty


LENGTH_PENALTIES: dict[str, LengthPenalty] = {
    "gnmt": gnmt_penalty,
    "power": power_penalty,
    "none": no_penalty,
}
"""Length penalties; `LENGTH_PENALTIES` in nmtkit/config/schema.py has their settings."""


def row_topk(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the greatest values of each row as `torch.topk` does, but faster.

    The greatest `count` values are in the `count` groups with the greatest maxima, because no value
    of another group exceeds any of these maxima.

    Args:
        values: (B, n).
        count: number of values, at most n.

    Returns:
        values (B, count), greatest first, and their indices in the row.
    """
    size = values.shape[1]
    num_groups = size // GROUP_SIZE
    if num_groups <= count:
        top = values.topk(count)
        return top.values, top.indices
    grouped = values[:, : num_groups * GROUP_SIZE].view(-1, num_groups, GROUP_SIZE)
    groups = grouped.amax(-1).topk(count).indices
    members = torch.arange(GROUP_SIZE, device=values.device)
    inside = (groups[:, :, None] * GROUP_SIZE + members).flatten(1)
    rest = torch.arange(num_groups * GROUP_SIZE, size, device=values.device)
    candidates = torch.cat([inside, rest.expand(len(values), -1)], 1)
    top = values.gather(1, candidates).topk(count)
    return top.values, candidates.gather(1, top.indices)


def fill_banks(
    sums: Tensor, best: Tensor, chosen: Tensor, constraints: Constraints
) -> tuple[Tensor, Tensor]:
    """Divide the beam evenly among candidates of different progress, if constraints demand tokens.

    The candidates are the best ones, the best one of each row, and what the constraints propose.
    The best candidate of each progress is chosen, then the second of each, until the beam is full.

    Args:
        sums: (B, W, V) sums of all candidates.
        best: (B, W) the greatest sums, greatest first.
        chosen: (B, W) their indices in a flattened row of `sums`.
        constraints: what must occur.

    Returns:
        sums and indices (B, W) of the chosen candidates, as `best` and `chosen`.
    """
    proposals = constraints.proposals()
    if proposals is None:
        return best, chosen
    _, num_rows, num_tokens = sums.shape
    firsts = torch.arange(0, num_rows * num_tokens, num_tokens, device=sums.device)[:, None]
    _, best_of_row = row_topk(sums.flatten(0, 1), 1)
    tokens = torch.cat([best_of_row.view(-1, num_rows, 1), proposals], 2)  # (B, W, 1 + K)
    more = (tokens.clamp(min=0) + firsts).flatten(1)
    values = sums.flatten(1).gather(1, more)
    values = values.masked_fill(tokens.flatten(1) == NO_TOKEN, IMPOSSIBLE)
    values, order = torch.cat([best, values], 1).sort(dim=1, descending=True, stable=True)
    # Most phrases are not proposed; this synchronises with the host.
    num_possible = int((values != IMPOSSIBLE).any(0).sum())
    values, order = (one[:, : max(best.shape[1], num_possible)] for one in (values, order))
    indices = torch.cat([chosen, more], 1).gather(1, order)  # (B, C), best first
    progress = constraints.progress(indices // num_tokens, indices % num_tokens)
    assert progress is not None, "who proposes tokens demands them"
    num_candidates = indices.shape[1]
    is_better = torch.ones(num_candidates, num_candidates, device=sums.device).tril(-1).bool()
    is_again = ((indices[:, :, None] == indices[:, None]) & is_better).any(2)
    is_same_bank = (progress[:, :, None] == progress[:, None]) & ~is_again[:, None]
    rank = (is_same_bank & is_better).sum(2)  # in its bank
    values = values.masked_fill(is_again, IMPOSSIBLE)
    rank = rank.masked_fill(values == IMPOSSIBLE, num_candidates)
    # Of equal rank, more progress first.
    most = progress.amax() + 1
    taken = (rank * most - progress).argsort(dim=1, stable=True)[:, : best.shape[1]]
    best, order = values.gather(1, taken).sort(dim=1, descending=True, stable=True)
    return best, indices.gather(1, taken).gather(1, order)


def is_full(finished: Tensor) -> Tensor:
    """Return whether W hypotheses have finished; finished (B, W) scores -> (B,) bool."""
    return finished[:, -1] > IMPOSSIBLE


def never(finished: Tensor) -> Tensor:
    """Return false for each sentence; finished (B, W) scores -> (B,) bool."""
    return torch.zeros_like(finished[:, 0], dtype=torch.bool)


STOP_RULES: dict[str, Callable[[Tensor], Tensor]] = {"finished": is_full, "proved": never}
"""Rules that stop the search of a sentence before a proof; greedy search stops when it is full."""


class Beam:
    """The live rows and the finished hypotheses of B sentences; a `Chooser`.

    Attributes:
        constraints, width, tokens, parents, is_done: as for a `Chooser`. A done sentence has only
            impossible live rows, which no row continues.
        position: number of tokens of a live row.
        live: (B, W) float64 sums of log-probabilities, best first; (B, 1) before the first step.
        finished: (B, W) float64 scores of the best finished hypotheses, best first; IMPOSSIBLE =
            none.
        ids: (B, 2W, T) prefixes of the live rows, then the finished hypotheses. Positions not yet
            written hold the end symbol, so a prefix that finishes is copied unchanged.
    """

    def __init__(
        self,
        max_lengths: Tensor,
        config: SearchConfig,
        constraints: Constraints | None,
        n_best: int,
    ) -> None:
        num_sentences, width, device = len(max_lengths), config.beam, max_lengths.device
        self.width = width
        self.config = config
        self.constraints = constraints
        self.n_best = n_best
        self.must_stop = STOP_RULES[config.stop_when] if width > 1 else is_full
        self.max_lengths = max_lengths
        self.max_penalties = length_penalty(max_lengths.double(), config)
        self.position = 0
        self.is_done = torch.zeros(num_sentences, dtype=torch.bool, device=device)
        self.live = torch.zeros(num_sentences, 1, dtype=torch.float64, device=device)
        self.tokens = torch.full((num_sentences, 1), BOS_ID, device=device)
        self.parents: Tensor | None = None
        self.finished = torch.full_like(self.live, IMPOSSIBLE).repeat(1, width)
        self.ids = torch.full((num_sentences, 2 * width, PREFIX_BLOCK), EOS_ID, device=device)
        self._finished_rows = torch.arange(width, 2 * width, device=device)  # in ids

    def advance(self, logits: Tensor) -> None:
        """Take one step of the search.

        Args:
            logits: (B, W, V) of the token after each live row; W = 1 in the first step.
        """
        self.position += 1
        # Sums over V are float32, relative to the best live row, so that rounding errors do not
        # grow with the length.
        best = self.live[:, :1]
        base = best.masked_fill(best == IMPOSSIBLE, 0.0)
        relative = (self.live - base).float()
        # One fused pass: on a CPU logsumexp is slower and needs as much memory.
        sums = logits.log_softmax(-1, dtype=torch.float32).add_(relative[:, :, None])
        is_last = self.max_lengths <= self.position
        if self.constraints is not None:
            self.constraints.apply(sums, self.ids[:, : sums.shape[1], : self.position - 1])
        ends = sums[:, :, EOS_ID].clone()
        sums[:, :, BOS_ID] = IMPOSSIBLE
        sums[:, :, EOS_ID] = IMPOSSIBLE
        parents = self._continue(sums, base, is_last)
        self._record(parents, self._finish(base + ends))
        self.parents = parents if self.width > 1 else None  # a single row continues itself
        is_proved = self.live[:, 0] / self.max_penalties <= self.finished[:, self.n_best - 1]
        self.is_done = is_last | self.must_stop(self.finished) | is_proved
        self.live = self.live.masked_fill(self.is_done[:, None], IMPOSSIBLE)

    def hypotheses(self, sentences: Tensor) -> list[list[Hypothesis]]:
        """Return the hypotheses of some of the sentences that are done, best first.

        Raises:
            DamagedError: a sentence has no hypothesis, because its logits are not numbers.
        """
        scores = self.finished[sentences, : self.n_best].tolist()
        ids = self.ids[sentences, self.width : self.width + self.n_best].tolist()
        return [self._hypotheses(*pair) for pair in zip(ids, scores, strict=True)]

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""
        self.is_done = self.is_done[sentences]
        self.max_lengths = self.max_lengths[sentences]
        self.max_penalties = self.max_penalties[sentences]
        self.live = self.live[sentences]
        self.tokens = self.tokens[sentences]
        self.parents = None if self.parents is None else self.parents[sentences]
        self.finished = self.finished[sentences]
        self.ids = self.ids[sentences]

    def _continue(self, sums: Tensor, base: Tensor, is_last: Tensor) -> Tensor:
        """Make the best W candidates that do not end the live rows; none at the last position.

        Args:
            sums: (B, W, V) float32 sums of all candidates less `base`; IMPOSSIBLE for ends.
            base: (B, 1) float64, the sum of the best live row before the step.
            is_last: (B,) bool, the sentence is at its last permitted position.

        Returns:
            (B, W) the row that each live row continues.
        """
        _, num_rows, num_tokens = sums.shape
        best, chosen = row_topk(sums.flatten(1), min(self.width, num_rows * num_tokens))
        if self.constraints is not None:
            best, chosen = fill_banks(sums, best, chosen, self.constraints)
        missing = self.width - best.shape[1]
        if missing > 0:  # first step of a beam that is wider than the vocabulary
            best = F.pad(best, (0, missing), value=IMPOSSIBLE)
            chosen = F.pad(chosen, (0, missing))
        self.live = (base + best).masked_fill(is_last[:, None], IMPOSSIBLE)
        self.tokens = chosen % num_tokens
        return chosen // num_tokens

    def _finish(self, ends: Tensor) -> Tensor:
        """Make the ends among the best W candidates finished hypotheses.

        Args:
            ends: (B, W) float64 sums of the previous live rows, each with the end symbol.

        Returns:
            (B, W) the row in `ids` of each finished hypothesis, before this step is recorded.
        """
        ends, rows = ends.sort(stable=True, descending=True)
        # An end with j better ends before it is among the best W candidates if fewer than W - j
        # live rows are better: if it is no worse than the live row of index W - 1 - j.
        # NaN compares false here and is reported later.
        is_below_best = ends < self.live.flip(1)[:, : ends.shape[1]]
        scores = ends / length_penalty(self.position, self.config)
        scores = scores.masked_fill(is_below_best, IMPOSSIBLE)
        pool = torch.cat([self.finished, scores], 1)
        scores, order = pool.sort(stable=True, descending=True)
        self.finished = scores[:, : self.width]
        id_rows = torch.cat([self._finished_rows.expand_as(self.finished), rows], 1)
        return id_rows.gather(1, order[:, : self.width])

    def _record(self, parents: Tensor, finished_rows: Tensor) -> None:
        """Append the tokens of this step to their prefixes, and copy finished hypotheses."""
        if self.position > self.ids.shape[2]:
            self.ids = F.pad(self.ids, (0, PREFIX_BLOCK), value=EOS_ID)
        num_sentences, num_rows, _ = self.ids.shape
        firsts = torch.arange(0, num_sentences * num_rows, num_rows, device=self.ids.device)
        sources = torch.cat([parents, finished_rows], 1) + firsts[:, None]
        self.ids = self.ids.flatten(0, 1).index_select(0, sources.flatten()).view_as(self.ids)
        self.ids[:, : self.width, self.position - 1] = self.tokens

    def _hypotheses(self, rows: list[list[int]], scores: list[float]) -> list[Hypothesis]:
        """Return the finished hypotheses of rows of `ids` with their scores."""
        hypotheses = []
        for row, score in zip(rows, scores, strict=True):
            if math.isfinite(score):
                ids = tuple(row[: row.index(EOS_ID) + 1])
                log_prob = score * length_penalty(len(ids), self.config)
                hypotheses.append(Hypothesis(ids, log_prob, score))
        if any(map(math.isnan, scores)) or not (hypotheses or self.constraints):
            raise DamagedError(NO_PROBABILITIES)
        return hypotheses
