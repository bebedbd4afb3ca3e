"""Sampling: translations drawn at random, token by token.

Each token is drawn from the model's distribution after temperature, top-k, top-p and the epsilon
cutoff, in this order. The random numbers are a function of the seed, the line's key, the number of
the sample and the position. So samples depend neither on the batch nor on the device, except
through rounding.

Source: Fan et al. 2018 (arXiv 1805.04833) for top-k, Holtzman et al. 2020 (arXiv 1904.09751) for
top-p, Hewitt et al. 2022 (arXiv 2210.15191, section 4) for the epsilon cutoff.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.config.schema import SamplingConfig, SearchConfig
from nmtkit.decoding.constraints import IMPOSSIBLE, Constraints
from nmtkit.decoding.search import NO_PROBABILITIES, Hypothesis, S, Step, length_penalty
from nmtkit.errors import DamagedError
from nmtkit.symbols import BOS_ID, EOS_ID

_MASK_64 = 2**64 - 1
_DOUBLE_BITS = 53
_DOUBLE_STEP = 2.0**-53


@dataclass(frozen=True)
class SamplingSpec:
    """Sampling settings, seed and keys of a batch of B sentences.

    Attributes:
        config: temperature, top-k, top-p and epsilon cutoff.
        seed: seed of all random numbers.
        keys: (B,) int64, a unique number for each sentence.
        num_samples: W, the number of translations per sentence.
    """

    config: SamplingConfig
    seed: int
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
        spec: sampling settings, seed and keys.
        config: the length penalty.

    Returns:
        for each of the B sentences W hypotheses, in the order drawn.

    Raises:
        DamagedError: logits are not numbers.
    """
    num_sentences, width = len(max_lengths), spec.num_samples
    shape = (num_sentences, width)
    ids = torch.empty(*shape, 0, dtype=torch.int64, device=max_lengths.device)
    sums = torch.zeros(shape, dtype=torch.float64, device=max_lengths.device)
    is_done = torch.zeros(shape, dtype=torch.bool, device=max_lengths.device)
    tokens = torch.full((num_sentences, 1), BOS_ID, device=max_lengths.device)
    while not is_done.all():
        logits = step(tokens, state)
        if not ids.shape[2]:
            state.expand(width)
            logits = logits.expand(-1, width, -1)
        log_probs = logits.log_softmax(-1, dtype=torch.float32)
        is_last = max_lengths <= ids.shape[2] + 1
        allowed = _constrained(log_probs, ids, is_last, constraints)
        uniform = _uniform(spec, ids.shape[2], width)
        tokens = _draw_tokens(_sampling_probs(allowed, spec.config), uniform)
        tokens = tokens.masked_fill(is_done | is_last[:, None], EOS_ID)
        sums += log_probs.gather(2, tokens[:, :, None]).squeeze(2).masked_fill(is_done, 0.0)
        ids = torch.cat([ids, tokens[:, :, None]], 2)
        is_done = is_done | (tokens == EOS_ID)
    return _hypotheses(ids, sums, config)


def _constrained(
    log_probs: Tensor, ids: Tensor, is_last: Tensor, constraints: Constraints | None
) -> Tensor:
    """Return the log-probabilities (B, W, V) of permitted tokens; IMPOSSIBLE for others."""
    allowed = log_probs.clone()
    allowed[:, :, BOS_ID] = IMPOSSIBLE
    if constraints:
        constraints.apply(allowed, ids)
        # If the constraints leave no token, the end symbol is permitted: a token must be drawn.
        is_stuck = (allowed == IMPOSSIBLE).all(-1) | is_last[:, None]
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
        probs = probs / probs.sum(-1, keepdim=True)
        highest = probs.amax(-1, keepdim=True)  # kept, even if it is below the cutoff
        probs = probs.masked_fill(probs < highest.clamp(max=config.epsilon_cutoff), 0.0)
    return probs


def _draw_tokens(probs: Tensor, uniform: Tensor) -> Tensor:
    """Return the tokens (B, W) where the cumulative probability passes numbers (B, W) in [0, 1)."""
    cumulative = probs.cumsum(-1)
    goal = uniform[:, :, None] * cumulative[:, :, -1:]
    tokens: Tensor = torch.searchsorted(cumulative, goal, right=True)
    return tokens.squeeze(2).clamp(max=probs.shape[2] - 1)


def _uniform(spec: SamplingSpec, position: int, width: int) -> Tensor:
    """Return float64 numbers (B, W) in [0, 1), a hash of seed, key, sample and position."""
    samples = torch.arange(width, device=spec.keys.device)
    bits = _splitmix64(torch.full_like(spec.keys, _as_int64(spec.seed)))
    bits = _splitmix64(bits + spec.keys)[:, None]
    bits = _splitmix64(bits + samples)
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
