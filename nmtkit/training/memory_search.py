"""The memory search: how many micro-batches fit into a device, found before the first update.

The worst cases that the data can bring are computed once, forward and backward: micro-batches of
the longest source, of the longest target, of the most sentences, and those whose padded attention
blocks are the largest. So training does not run out of memory after days, and `--max-tokens auto`
takes the largest micro-batches that fit.
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
from nmtkit.data.sampler import cut_sorted
from nmtkit.errors import ResourceError, is_out_of_memory
from nmtkit.packed import pack_sequences
from nmtkit.runtime.memory import forget_peak, memory_limit, peak_memory
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective

USABLE_SHARE = 0.9
"""Largest share of the memory to fill; fragments and other libraries take some of the rest."""

_NOTHING_FITS = (
    "out of memory, even for one pair at a time; take a smaller model or a larger machine"
)

Lengths = NDArray[np.int64]
"""(B, 2) source and target lengths of pairs."""


class _StopRequested(Exception):  # noqa: N818
    """A request to stop came during the search."""


@dataclass(frozen=True)
class WorstCases:
    """The training pairs that need the most memory.

    Attributes:
        update_tokens: largest number of source tokens, and of target tokens, of an update.
        pairs: (3, 2) lengths of the pair with the longest source, of the pair with the longest
            target, and of the shortest pair.
        updates: lengths of the pairs of two updates: those whose padded blocks of sources, and of
            targets, are the largest. They are the same in each epoch, because an update changes
            only in which pairs of equal lengths it has.
    """

    update_tokens: int
    pairs: Lengths
    updates: Sequence[Lengths]

    @staticmethod
    def of(shards: Sequence[Pairs], update_tokens: int) -> "WorstCases":
        """Find them among all pairs of some shards, at least one."""
        found = [_in_shard(shard, update_tokens) for shard in shards if len(shard)]
        sources, targets, shortest, *updates = zip(*found, strict=True)
        sides = (partial(_block, side=0), partial(_block, side=1))
        longest = [max(sources, key=sides[0]), max(targets, key=sides[1])]
        return WorstCases(
            update_tokens,
            pairs=np.concatenate([*longest, min(shortest, key=np.sum)]),
            updates=[max(one, key=side) for one, side in zip(updates, sides, strict=True)],
        )

    def grown(self, growth: tuple[float, float], longest: int) -> "WorstCases":
        """Return the worst cases where subword sampling makes texts longer than they are stored.

        Args:
            growth: factor by which sources, and targets, become longer.
            longest: largest number of tokens of a sequence.
        """

        def grow(lengths: Lengths) -> Lengths:
            longer: Lengths = np.ceil(lengths * growth).astype(np.int64)
            return np.minimum(longer, longest)

        update_tokens = math.ceil(self.update_tokens * max(growth))
        return WorstCases(update_tokens, grow(self.pairs), list(map(grow, self.updates)))

    @property
    def longest(self) -> int:
        """Tokens of the longest side of a pair."""
        return int(self.pairs.max())

    def micro_batches(self, tokens: int, number: int) -> Iterator[Lengths]:
        """Yield the lengths of the pairs of the micro-batches that need the most memory.

        Args:
            tokens: largest number of source tokens, and of target tokens, of a micro-batch; a
                single pair may be longer.
            number: of the micro-batches of an update.
        """
        for pair in self.pairs:
            yield np.tile(pair, (max(1, tokens // int(pair.max())), 1))
        for side, update in enumerate(self.updates):
            yield update[int(update[:, side].argmax()) % number :: number]


def _in_shard(pairs: Pairs, update_tokens: int) -> list[Lengths]:
    """Return the worst cases of a shard: three pairs, (1, 2) each, and two updates."""
    lengths = np.stack([pairs.source.lengths(), pairs.target.lengths()], axis=1).astype(np.int64)
    places = (lengths[:, 0].argmax(), lengths[:, 1].argmax(), lengths.sum(axis=1).argmin())
    cuts = cut_sorted(lengths[:, 0], lengths[:, 1], update_tokens)
    updates = [lengths[cut] for cut in cuts]
    return [
        *(lengths[[place]] for place in places),
        *(max(updates, key=partial(_block, side=side)) for side in (0, 1)),
    ]


def _block(lengths: Lengths, side: int) -> int:
    """Return the size of the padded block that attention makes of one side of some pairs."""
    return len(lengths) * int(lengths[:, side].max())


def batches_of(micro_batches: Iterator[Lengths], device: torch.device) -> Iterator[Batch]:
    """Yield a batch of pairs of the given lengths for each micro-batch."""
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


def smallest_number(
    update_tokens: int,
    num_ranks: int,
    smallest: int,
    need: Callable[[int], int | None],
    limit: int,
) -> int:
    """Find the smallest multiple of the ranks whose micro-batches fit into memory.

    Micro-batches are tried from the smallest size on, each of twice the tokens, while the growth so
    far lets the next one fit. Between two sizes memory is taken to grow linearly; the size found
    so is tried as well.

    Args:
        update_tokens: tokens of an update.
        num_ranks: micro-batches that are computed at the same time.
        smallest: tokens of a micro-batch that holds the longest pair.
        need: computes micro-batches of a number of tokens and returns the peak memory in bytes;
            None if they did not fit.
        limit: bytes of the device.

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


def find_number(
    objective: Objective, worst_cases: WorstCases, ranks: Ranks, is_stopping: Callable[[], bool]
) -> int | None:
    """Find the smallest number of micro-batches, each of which fits into every rank's device.

    Args:
        objective: of the model that is to be trained.
        worst_cases: of the pairs that it is trained on.
        ranks: all of them; each has a device of its own.
        is_stopping: whether to end before the next batch; one rank's request ends it on all.

    Returns:
        The number, a multiple of the ranks; None if asked to stop.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device, update_tokens = objective.model.output_weight.device, worst_cases.update_tokens

    def need(tokens: int) -> int | None:
        cases = worst_cases.micro_batches(tokens, math.ceil(update_tokens / tokens))
        is_enough = fits(objective, batches_of(_until(is_stopping, cases), device))
        return peak_memory(device) if is_enough else None

    def find() -> int:
        forget_peak(device)  # that of a trial of compiling, for example
        limit = memory_limit(device)
        return smallest_number(update_tokens, ranks.size, worst_cases.longest, need, limit)

    return _largest_of_all(ranks, find)


def check_number(
    objective: Objective,
    worst_cases: WorstCases,
    number: int,
    ranks: Ranks,
    is_stopping: Callable[[], bool],
) -> int | None:
    """Double a number of micro-batches until each fits.

    Args:
        number: of micro-batches now.
        objective, worst_cases, ranks, is_stopping: as of `find_number`.

    Returns:
        The number, unchanged if they fit; None if asked to stop.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device, update_tokens = objective.model.output_weight.device, worst_cases.update_tokens
    limit = USABLE_SHARE * memory_limit(device)

    def is_enough(number: int) -> bool:
        # Micro-batches are not quite even.
        cases = worst_cases.micro_batches(update_tokens // number + worst_cases.longest, number)
        batches = batches_of(_until(is_stopping, cases), device)
        forget_peak(device)
        return fits(objective, batches) and peak_memory(device) <= limit

    def find() -> int:
        tried = number
        while not is_enough(tried):
            if tried > update_tokens:
                raise ResourceError(_NOTHING_FITS)
            tried *= 2
        return tried

    return _largest_of_all(ranks, find)


def _until(is_stopping: Callable[[], bool], cases: Iterator[Lengths]) -> Iterator[Lengths]:
    for case in cases:
        if is_stopping():
            raise _StopRequested
        yield case


def _largest_of_all(ranks: Ranks, find: Callable[[], int]) -> int | None:
    """Return the largest number that a rank finds; None if one was asked to stop meanwhile."""
    try:
        own = find()
    except _StopRequested:
        own = 0
    found = ranks.gather(own)
    return max(found) if all(found) else None


@contextmanager
def room_for_moments(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Hold the memory that Adam will need from its first step on, while the block searches."""
    has_moments = any(optimizer.state.values())
    parameters = [] if has_moments else optimizer.param_groups[0]["params"]
    # A system gives a process memory when something is written there, and not before.
    held = [torch.ones_like(parameter) for parameter in parameters]
    held += [torch.ones_like(tensor) for tensor in held]
    yield
    del held
