"""Translations drawn at random, instead of searched for.

Each token is drawn from the model's distribution, which temperature, top-k and top-p may sharpen.
What is drawn is a function of the seed, the line's key, the number of the sample and the position:
neither the batch nor the device decides it, but for rounding.

Source: Holtzman et al. 2020 (arXiv 1904.09751) for top-p, Fan et al. 2018 (arXiv 1805.04833) for
top-k.
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
_BITS_OF_A_DOUBLE = 53
_STEP_OF_A_DOUBLE = 2.0**-53


@dataclass(frozen=True)
class Draws:
    """What is drawn for B sentences.

    Attributes:
        config: how distributions are sharpened.
        seed: of all draws.
        keys: (B,) int64, a number for each sentence that no other has.
        num_samples: W, how many translations of each.
    """

    config: SamplingConfig
    seed: int
    keys: Tensor
    num_samples: int


def sample(
    step: Step[S],
    state: S,
    max_lengths: Tensor,
    draws: Draws,
    config: SearchConfig,
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Draw translations; their scores are those of the model as it is, not of what was sharpened.

    Args:
        step, state, max_lengths, constraints: as for `beam_search`.
        draws: what is drawn.
        config: the length penalty.

    Returns:
        for each of the B sentences W hypotheses, in the order of their numbers.

    Raises:
        DamagedError: logits are not numbers.
    """
    num_sentences, width = len(max_lengths), draws.num_samples
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
        allowed = _allowed(log_probs, ids, is_last, constraints)
        uniform = _uniform(draws, ids.shape[2], width)
        tokens = _draw(_sharpened(allowed, draws.config), uniform)
        tokens = tokens.masked_fill(is_done | is_last[:, None], EOS_ID)
        sums += log_probs.gather(2, tokens[:, :, None]).squeeze(2).masked_fill(is_done, 0.0)
        ids = torch.cat([ids, tokens[:, :, None]], 2)
        is_done = is_done | (tokens == EOS_ID)
    return _hypotheses(ids, sums, config)


def _allowed(
    log_probs: Tensor, ids: Tensor, is_last: Tensor, constraints: Constraints | None
) -> Tensor:
    """Return the log-probabilities (B, W, V) of tokens that may follow, impossible elsewhere."""
    allowed = log_probs.clone()
    allowed[:, :, BOS_ID] = IMPOSSIBLE
    if constraints:
        constraints.apply(allowed, ids)
        # Where nothing is left, the end is: what is drawn there must be something.
        is_stuck = (allowed == IMPOSSIBLE).all(-1) | is_last[:, None]
        ends = torch.where(is_stuck, log_probs[:, :, EOS_ID], allowed[:, :, EOS_ID])
        allowed[:, :, EOS_ID] = ends
    return allowed


def _sharpened(log_probs: Tensor, config: SamplingConfig) -> Tensor:
    """Return the probabilities (B, W, V), float64, that are drawn from; not normalised."""
    scaled = log_probs.double() / config.temperature
    if 0 < config.top_k < scaled.shape[-1]:
        least = scaled.topk(config.top_k).values[:, :, -1:]
        scaled = scaled.masked_fill(scaled < least, IMPOSSIBLE)
    probs = scaled.softmax(-1)
    if config.top_p < 1:
        ordered, order = probs.sort(descending=True, stable=True)
        is_outside = ordered.cumsum(-1) - ordered >= config.top_p
        probs = torch.zeros_like(probs).scatter_(2, order, ordered.masked_fill(is_outside, 0.0))
    return probs


def _draw(probs: Tensor, uniform: Tensor) -> Tensor:
    """Return the token (B, W) at which the cumulated probability passes a number in [0, 1)."""
    cumulated = probs.cumsum(-1)
    goal = uniform[:, :, None] * cumulated[:, :, -1:]
    tokens: Tensor = torch.searchsorted(cumulated, goal, right=True)
    return tokens.squeeze(2).clamp(max=probs.shape[2] - 1)


def _uniform(draws: Draws, position: int, width: int) -> Tensor:
    """Return numbers (B, W) in [0, 1), float64, that follow from seed, key, sample and position."""
    samples = torch.arange(width, device=draws.keys.device)
    bits = _mixed(torch.full_like(draws.keys, _signed(draws.seed)))
    bits = _mixed(bits + draws.keys)[:, None]
    bits = _mixed(bits + samples)
    bits = _mixed(bits + position)
    numbers: Tensor = _shifted(bits, 64 - _BITS_OF_A_DOUBLE).double()
    return numbers * _STEP_OF_A_DOUBLE


def _mixed(bits: Tensor) -> Tensor:
    """Scramble 64 bits, so that near numbers become unlike ones. Source: splitmix64 (Vigna)."""
    bits = bits + _signed(0x9E3779B97F4A7C15)
    bits = (bits ^ _shifted(bits, 30)) * _signed(0xBF58476D1CE4E5B9)
    bits = (bits ^ _shifted(bits, 27)) * _signed(0x94D049BB133111EB)
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, count: int) -> Tensor:
    """Shift 64 bits to the right; torch's own shift would copy the sign."""
    return (bits >> count) & ((1 << (64 - count)) - 1)


def _signed(number: int) -> int:
    """Return the int64 with the bits of a number below 2**64."""
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
