"""The memory search: the number of micro-batches that fit into a device, before the first update.

It runs forward and backward passes over the worst cases of the data. These are micro-batches of the
longest source, of the longest target, of the most sentences, and with the largest padded attention
blocks: of all sentences, and of those that are padded on GPUs, too. So training does not run out of
memory after days, and `--max-tokens auto` finds the largest micro-batches that fit.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from nmtkit.data.batch import Batch
from nmtkit.data.binary import Pairs
from nmtkit.data.sampler import batch_by_length
from nmtkit.errors import ResourceError, is_out_of_memory
from nmtkit.model.kernels.flash import MAX_PADDED_LENGTH
from nmtkit.packed import pack_sequences
from nmtkit.runtime.memory import memory_limit, peak_memory, reset_peak_memory
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective

USABLE_SHARE = 0.9
"""Largest part of the memory to use; fragments and other libraries need some of the rest."""

_NOTHING_FITS = (
    "out of memory, even for one pair at a time; use a smaller model or a larger machine"
)

Lengths = NDArray[np.int64]
"""(B, 2) source and target lengths of pairs."""

NOISE_DEVIATIONS = 5
"""Standard deviations by which the number of noised pairs of a micro-batch may exceed its mean."""


@dataclass(frozen=True)
class NoisedLengths:
    """Lengths of pairs that have noise.

    Attributes:
        share: probability that a pair has noise.
        growth: largest factors by which its source and target become longer.
        longest: largest number of tokens per sequence.
    """

    share: float
    growth: tuple[float, float]
    longest: int

    def of(self, lengths: Lengths) -> Lengths:
        """Return the lengths of a micro-batch with the most noise that a run may draw."""
        mean = self.share * len(lengths)
        most = mean + NOISE_DEVIATIONS * math.sqrt(mean * (1 - self.share))
        noised = lengths.copy()
        longest = lengths.sum(axis=1).argsort(kind="stable")[-min(math.ceil(most), len(lengths)) :]
        noised[longest] = np.minimum(np.ceil(lengths[longest] * self.growth), self.longest)
        return noised


class _StopRequested(Exception):  # noqa: N818
    """A stop was requested during the search."""


@dataclass(frozen=True)
class WorstCases:
    """Lengths of the training pairs that need the most memory.

    Attributes:
        update_tokens: largest number of source or target tokens per update.
        pairs: (3, 2) lengths of the pair with the longest source, the pair with the longest
            target, and the shortest pair.
        updates: lengths of the pairs of four updates: with the largest padded block of sources, and
            of targets; then the same of those without sentences above `MAX_PADDED_LENGTH`, as flash
            attention pads no block. They are the same in each epoch, as only pairs of equal lengths
            change places.
        noise: of the pairs in training; None = none.
    """

    update_tokens: int
    pairs: Lengths
    updates: Sequence[Lengths]
    noise: NoisedLengths | None = None

    @staticmethod
    def of(shards: Sequence[Pairs], update_tokens: int) -> "WorstCases":
        """Return the worst cases of some shards, which have at least one pair."""
        found = [_worst_cases_of_shard(shard, update_tokens) for shard in shards if len(shard)]
        sources, targets, shortest, *updates = zip(*found, strict=True)
        of_source, of_target, *_ = _PADDED_SIZES
        longest = [max(sources, key=of_source), max(targets, key=of_target)]
        return WorstCases(
            update_tokens,
            pairs=np.concatenate([*longest, min(shortest, key=np.sum)]),
            updates=[max(one, key=size) for one, size in zip(updates, _PADDED_SIZES, strict=True)],
        )

    def lengthened(self, growth: tuple[float, float], longest: int) -> "WorstCases":
        """Return the worst cases with the longer texts of subword sampling.

        Args:
            growth: factors by which sources and targets become longer.
            longest: largest number of tokens per sequence.
        """

        def grow(lengths: Lengths) -> Lengths:
            longer: Lengths = np.ceil(lengths * growth).astype(np.int64)
            return np.minimum(longer, longest)

        update_tokens = math.ceil(self.update_tokens * max(growth))
        return WorstCases(
            update_tokens, grow(self.pairs), list(map(grow, self.updates)), self.noise
        )

    @property
    def longest(self) -> int:
        """Number of tokens of the longest side of a pair."""
        return int(self.pairs.max())

    def micro_batches(self, tokens: int, number: int) -> Iterator[Lengths]:
        """Yield the micro-batches that need the most memory, as lengths of pairs.

        Args:
            tokens: largest number of source or target tokens per micro-batch; a single pair may
                be longer.
            number: micro-batches per update.
        """
        cases = [np.tile(pair, (max(1, tokens // int(pair.max())), 1)) for pair in self.pairs]
        for place, update in enumerate(self.updates):
            if place < 2 or not np.array_equal(update, self.updates[place - 2]):
                cases.append(update[int(update[:, place % 2].argmax()) % number :: number])
        yield from map(self.noise.of, cases) if self.noise else cases


def _worst_cases_of_shard(pairs: Pairs, update_tokens: int) -> list[Lengths]:
    """Return the worst cases of a shard: three pairs, (1, 2) each, and four updates."""
    lengths = np.stack([pairs.source.lengths(), pairs.target.lengths()], axis=1).astype(np.int64)
    places = (lengths[:, 0].argmax(), lengths[:, 1].argmax(), lengths.sum(axis=1).argmin())
    batches = batch_by_length(lengths[:, 0], lengths[:, 1], update_tokens)
    updates = [lengths[indices] for indices in batches]
    return [
        *(lengths[[place]] for place in places),
        *(max(updates, key=size) for size in _PADDED_SIZES),
    ]


def _padded_size(lengths: Lengths, side: int, most: float) -> int:
    """Return the number of positions of one side of some pairs, padded for attention.

    It is 0 if one of their sentences, on either side, is longer than `most`.
    """
    return 0 if lengths.max() > most else len(lengths) * int(lengths[:, side].max())


_PADDED_SIZES = [
    partial(_padded_size, side=side, most=most)
    for most in (math.inf, MAX_PADDED_LENGTH)
    for side in (0, 1)
]


def batches_of(micro_batches: Iterator[Lengths], device: torch.device) -> Iterator[Batch]:
    """Yield a batch for each micro-batch, of pairs with its lengths."""
    for lengths in micro_batches:
        source, target = lengths.T.tolist()
        yield Batch(
            pack_sequences([[EOS_ID] * length for length in source], device),
            pack_sequences([[BOS_ID] * length for length in target], device),
            torch.full((sum(target),), EOS_ID, device=device),
        )


def fits(objective: Objective, batches: Iterator[Batch]) -> bool:
    """Return whether a forward and backward pass over each of the batches fits into memory."""
    try:
        for batch in batches:
            objective(batch).loss.backward()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        objective.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return True


def smallest_num_micro_batches(
    update_tokens: int,
    num_ranks: int,
    smallest: int,
    need: Callable[[int], int | None],
    limit: int,
) -> int:
    """Find the smallest number of micro-batches that fit into memory, a multiple of the ranks.

    The search doubles the size of micro-batches while the extrapolated memory fits. It assumes that
    memory grows linearly between two sizes, and tries the size that follows from this as well.

    Args:
        update_tokens: tokens per update.
        num_ranks: number of ranks; each computes one micro-batch at a time.
        smallest: tokens of the smallest micro-batch, which holds the longest pair.
        need: runs micro-batches of a number of tokens, and returns the peak memory in bytes; None
            if they do not fit.
        limit: memory of the device, in bytes.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    whole = math.ceil(update_tokens / num_ranks)
    tokens, needed = min(smallest, whole), need(smallest)
    affordable = 0.0
    while needed is not None:
        if tokens == whole:
            return num_ranks
        following = min(2 * tokens, whole)
        more = need(following) if affordable >= following or not affordable else None
        if more is None:
            break
        per_token = max((more - needed) / (following - tokens), 1e-9)
        affordable = following + (USABLE_SHARE * limit - more) / per_token
        tokens, needed = following, more
    if needed is None:
        raise ResourceError(_NOTHING_FITS)
    number = num_ranks * math.ceil(update_tokens / num_ranks / max(affordable, smallest))
    while need(math.ceil(update_tokens / number)) is None:
        number += num_ranks * math.ceil(number / num_ranks / 4)
        if update_tokens / number < 1:
            raise ResourceError(_NOTHING_FITS)
    return number


def find_num_micro_batches(
    objective: Objective, worst_cases: WorstCases, ranks: Ranks, is_stopping: Callable[[], bool]
) -> int | None:
    """Find the smallest number of micro-batches per update that fit into the device of every rank.

    Args:
        objective: objective with the model to train.
        worst_cases: worst cases of the training pairs.
        ranks: all ranks, each with its own device.
        is_stopping: returns whether to end before the next batch; a request to one rank ends all.

    Returns:
        The number, a multiple of the ranks; None if asked to stop.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device, update_tokens = objective.model.output_weight.device, worst_cases.update_tokens

    def need(tokens: int) -> int | None:
        cases = worst_cases.micro_batches(tokens, math.ceil(update_tokens / tokens))
        is_enough = fits(objective, batches_of(_until_stopped(is_stopping, cases), device))
        return peak_memory(device) if is_enough else None

    def find() -> int:
        reset_peak_memory(device)  # the peak of a trial compilation, for example
        limit = memory_limit(device)
        return smallest_num_micro_batches(
            update_tokens, ranks.size, worst_cases.longest, need, limit
        )

    return _max_over_ranks(ranks, find)


def increase_until_fits(
    objective: Objective,
    worst_cases: WorstCases,
    number: int,
    ranks: Ranks,
    is_stopping: Callable[[], bool],
) -> int | None:
    """Double the number of micro-batches until they fit into memory.

    Args:
        number: current number of micro-batches per update.
        objective, worst_cases, ranks, is_stopping: see `find_num_micro_batches`.

    Returns:
        The number, unchanged if the micro-batches fit; None if asked to stop.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device, update_tokens = objective.model.output_weight.device, worst_cases.update_tokens
    limit = USABLE_SHARE * memory_limit(device)

    def is_enough(number: int) -> bool:
        # Micro-batches differ in size.
        cases = worst_cases.micro_batches(update_tokens // number + worst_cases.longest, number)
        batches = batches_of(_until_stopped(is_stopping, cases), device)
        reset_peak_memory(device)
        return fits(objective, batches) and peak_memory(device) <= limit

    def find() -> int:
        tried = number
        while not is_enough(tried):
            if tried > update_tokens:
                raise ResourceError(_NOTHING_FITS)
            tried *= 2
        return tried

    return _max_over_ranks(ranks, find)


def _until_stopped(is_stopping: Callable[[], bool], cases: Iterator[Lengths]) -> Iterator[Lengths]:
    for case in cases:
        if is_stopping():
            raise _StopRequested
        yield case


def _max_over_ranks(ranks: Ranks, find: Callable[[], int]) -> int | None:
    """Return the largest number that a rank finds; None if a rank was asked to stop."""
    try:
        own = find()
    except _StopRequested:
        own = 0
    found = ranks.gather(own)
    return max(found) if all(found) else None


@contextmanager
def reserve_adam_memory(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Allocate the memory that Adam needs from its first step on, while the context lasts."""
    has_moments = any(optimizer.state.values())
    groups = [] if has_moments else optimizer.param_groups
    # Ones, not empty tensors: the system assigns memory only when it is written to.
    held = [torch.ones_like(parameter) for group in groups for parameter in group["params"]]
    held += [torch.ones_like(tensor) for tensor in held]
    yield
    del held
