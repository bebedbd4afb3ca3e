"""Sampling: translations drawn at random, token by token.

Each token is drawn from the model's distribution after temperature, top-k, top-p and the epsilon
cutoff, in this order. The random numbers are a function of the seed, the numbers of line and part,
the number of the sample and the position. So samples depend neither on the batch nor on the device,
except through rounding.

Source: Fan et al. 2018 (arXiv 1805.04833) for top-k, Holtzman et al. 2020 (arXiv 1904.09751) for
top-p, Hewitt et al. 2022 (arXiv 2210.15191, section 4) for the epsilon cutoff.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.config.translation import SamplingConfig
from nmtkit.decoding.constraints import IMPOSSIBLE, Constraints
from nmtkit.decoding.search import (
    NO_PROBABILITIES,
    Hypothesis,
    S,
    Step,
    length_penalty,
    search,
)
from nmtkit.errors import DamagedError
from nmtkit.symbols import BOS_ID, EOS_ID

_MASK_64 = 2**64 - 1
_DOUBLE_BITS = 53
_DOUBLE_STEP = 2.0**-53


@dataclass(frozen=True)
class SamplingSpec:
    """Sampling settings and keys of a batch of B sentences.

    Attributes:
        config: temperature, top-k, top-p, epsilon cutoff, and the seed of all random numbers.
        keys: (B, K) int64, the numbers that name each sentence.
        num_samples: W, the number of translations per sentence.
    """

    config: SamplingConfig
    keys: Tensor
    num_samples: int


def sample(
    step: Step[S],
    state: S,
    max_lengths: Tensor,
    spec: SamplingSpec,
    config: SearchConfig,
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Draw translations; scores are the model's, without these settings.

    Args:
        step, state, max_lengths, constraints: as for `beam_search`.
        spec: sampling settings and keys.
        config: the length penalty.

    Returns:
        for each of the B sentences W hypotheses, in the order drawn.

    Raises:
        DamagedError: logits are not numbers.
    """
    return search(step, state, Samples(max_lengths, spec, config, constraints))


class Samples:
    """W samples of each of B sentences; a `Chooser`.

    Attributes:
        constraints, width, tokens, parents, is_done: as for a `Chooser`.
    """

    def __init__(
        self,
        max_lengths: Tensor,
        spec: SamplingSpec,
        config: SearchConfig,
        constraints: Constraints | None,
    ) -> None:
        """Begin all samples; see `sample`."""
        device = max_lengths.device
        self.width = spec.num_samples
        shape = (len(max_lengths), self.width)
        self._max_lengths, self.constraints = max_lengths, constraints
        self._spec, self._keys, self._config = spec, spec.keys, config
        self._ids = torch.empty(*shape, 0, dtype=torch.int64, device=device)
        self._sums = torch.zeros(shape, dtype=torch.float64, device=device)
        self._has_ended = torch.zeros(shape, dtype=torch.bool, device=device)
        self.is_done = torch.zeros(len(max_lengths), dtype=torch.bool, device=device)
        self.tokens = torch.full((len(max_lengths), 1), BOS_ID, device=device)
        self.parents: Tensor | None = None  # a sample continues itself

    def advance(self, logits: Tensor) -> None:
        """Draw the next token of each sample from logits (B, W, V), or (B, 1, V) at first."""
        position = self._ids.shape[2]
        log_probs = logits.log_softmax(-1, dtype=torch.float32)
        is_last = self._max_lengths <= position + 1
        prefixes = self._ids[:, : logits.shape[1]]
        allowed = _constrained(log_probs, prefixes, self.constraints)
        shape = (-1, self.width, -1)
        uniform = _uniform(self._spec.config.seed, self._keys, position, self.width)
        tokens = _draw(allowed.expand(shape), self._spec.config, uniform)
        tokens = tokens.masked_fill(self._has_ended | is_last[:, None], EOS_ID)
        drawn = log_probs.expand(shape).gather(2, tokens[:, :, None]).squeeze(2)
        self._sums += drawn.masked_fill(self._has_ended, 0.0)
        self._ids = torch.cat([self._ids, tokens[:, :, None]], 2)
        self._has_ended |= tokens == EOS_ID
        self.is_done = self._has_ended.all(1)
        self.tokens = tokens

    def hypotheses(self, sentences: Tensor) -> list[list[Hypothesis]]:
        """Return the samples of some of the sentences, in the order drawn; sentences (n,) int64."""
        return _hypotheses(self._ids[sentences], self._sums[sentences], self._config)

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""
        self._max_lengths, self._keys = self._max_lengths[sentences], self._keys[sentences]
        self._ids, self._sums = self._ids[sentences], self._sums[sentences]
        self._has_ended, self.is_done = self._has_ended[sentences], self.is_done[sentences]
        self.tokens = self.tokens[sentences]


def _constrained(log_probs: Tensor, ids: Tensor, constraints: Constraints | None) -> Tensor:
    """Return the log-probabilities (B, W, V) of permitted tokens; IMPOSSIBLE for others."""
    allowed = log_probs.clone()
    allowed[:, :, BOS_ID] = IMPOSSIBLE
    if constraints is not None:
        constraints.apply(allowed, ids)
        # If the constraints leave no token, the end symbol is permitted: a token must be drawn.
        is_stuck = (allowed == IMPOSSIBLE).all(-1)
        ends = torch.where(is_stuck, log_probs[:, :, EOS_ID], allowed[:, :, EOS_ID])
        allowed[:, :, EOS_ID] = ends
    return allowed


def _sampling_probs(log_probs: Tensor, config: SamplingConfig) -> Tensor:
    """Return the float64 probabilities (B, W, V) to draw from, unnormalised."""
    scaled = log_probs.double() / config.temperature
    if 0 < config.top_k < scaled.shape[-1]:
        least = scaled.topk(config.top_k).values[:, :, -1:]
        scaled = scaled.masked_fill(scaled < least, IMPOSSIBLE)
    probs = scaled.softmax(-1)
    if config.top_p < 1:
        ordered, order = probs.sort(descending=True, stable=True)
        is_outside = ordered.cumsum(-1) - ordered >= config.top_p
        probs = torch.zeros_like(probs).scatter_(2, order, ordered.masked_fill(is_outside, 0.0))
    if config.epsilon_cutoff:
        probs = _cut_off(probs / probs.sum(-1, keepdim=True), config.epsilon_cutoff)
    return probs


def _cut_off(probs: Tensor, epsilon: float) -> Tensor:
    """Replace probabilities below epsilon by 0, except the highest of each distribution."""
    highest = probs.amax(-1, keepdim=True)
    return probs.masked_fill(probs < highest.clamp(max=epsilon), 0.0)


def _draw(log_probs: Tensor, config: SamplingConfig, uniform: Tensor) -> Tensor:
    """Draw a token (B, W) from each distribution (B, W, V), by numbers (B, W) in [0, 1)."""
    num_tokens = log_probs.shape[-1]
    # At most 1 / epsilon tokens are as probable as epsilon: the likeliest of the vocabulary.
    is_short = config.epsilon_cutoff * (num_tokens - 1) > 1
    if not is_short or config.top_k or config.top_p < 1:
        return _draw_tokens(_sampling_probs(log_probs, config), uniform)
    num_candidates = int(1 / config.epsilon_cutoff) + 1
    scaled = log_probs / config.temperature
    candidates = scaled.topk(num_candidates).indices.sort(-1).values
    probs = scaled.gather(-1, candidates).double() - scaled.logsumexp(-1, keepdim=True)
    kept = _cut_off(probs.exp(), config.epsilon_cutoff)
    return candidates.gather(-1, _draw_tokens(kept, uniform)[:, :, None]).squeeze(-1)


def _draw_tokens(probs: Tensor, uniform: Tensor) -> Tensor:
    """Return the tokens (B, W) where the cumulative probability passes numbers (B, W) in [0, 1)."""
    cumulative = probs.cumsum(-1)
    goal = uniform[:, :, None] * cumulative[:, :, -1:]
    tokens: Tensor = torch.searchsorted(cumulative, goal, right=True)
    return tokens.squeeze(2).clamp(max=probs.shape[2] - 1)


def _uniform(seed: int, keys: Tensor, position: int, width: int) -> Tensor:
    """Return float64 numbers (B, W) in [0, 1), a hash of seed, key, sample and position."""
    bits = _splitmix64(torch.full_like(keys[:, 0], _as_int64(seed)))
    for number in keys.unbind(1):
        bits = _splitmix64(bits + number)
    bits = _splitmix64(bits[:, None] + torch.arange(width, device=keys.device))
    bits = _splitmix64(bits + position)
    numbers: Tensor = _shift_right(bits, 64 - _DOUBLE_BITS).double()
    return numbers * _DOUBLE_STEP


def _splitmix64(bits: Tensor) -> Tensor:
    """Hash int64 numbers. Source: splitmix64 (Vigna)."""
    bits = bits + _as_int64(0x9E3779B97F4A7C15)
    bits = (bits ^ _shift_right(bits, 30)) * _as_int64(0xBF58476D1CE4E5B9)
    bits = (bits ^ _shift_right(bits, 27)) * _as_int64(0x94D049BB133111EB)
    return bits ^ _shift_right(bits, 31)


def _shift_right(bits: Tensor, count: int) -> Tensor:
    """Shift 64 bits to the right without the sign, which torch's shift would copy."""
    return (bits >> count) & ((1 << (64 - count)) - 1)


def _as_int64(number: int) -> int:
    """Return the int64 with the lowest 64 bits of a number."""
    number &= _MASK_64
    return number - 2**64 if number >= 2**63 else number


def _hypotheses(ids: Tensor, sums: Tensor, config: SearchConfig) -> list[list[Hypothesis]]:
    if not sums.isfinite().all():
        raise DamagedError(NO_PROBABILITIES)
    return [
        [_hypothesis(row, log_prob, config) for row, log_prob in zip(rows, log_probs, strict=True)]
        for rows, log_probs in zip(ids.tolist(), sums.tolist(), strict=True)
    ]


def _hypothesis(row: list[int], log_prob: float, config: SearchConfig) -> Hypothesis:
    ids = tuple(row[: row.index(EOS_ID) + 1])
    return Hypothesis(ids, log_prob, log_prob / length_penalty(len(ids), config))
