"""What fits into a device's memory, found out before the first update.

The largest slots that the data can bring are computed once, forwards and backwards: those of the
longest source, of the longest target, and of the most sentences. So training does not run out of
memory after days, and `--max-tokens auto` takes the largest slots that fit.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from nmtkit.data.batch import Batch
from nmtkit.data.binary import Pairs
from nmtkit.errors import ResourceError, is_out_of_memory
from nmtkit.packed import pack_sequences
from nmtkit.runtime import forget_peak, memory_limit, peak_memory
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.training.distributed import Ranks
from nmtkit.training.learner import Learner
from nmtkit.training.objective import Objective

SHARE = 0.9
"""So much of the memory is filled at most; fragments and other libraries take some of the rest."""

_NOTHING_FITS = (
    "out of memory, even for one pair at a time; take a smaller model or a larger machine"
)

Lengths = tuple[int, int]


def extreme_lengths(shards: Sequence[Pairs]) -> list[Lengths]:
    """Return the source and target lengths of the pairs that need the most memory in their ways.

    Returns:
        The pair of the longest source, that of the longest target, and the shortest pair.
    """
    found: list[Lengths] = []
    for pairs in shards:
        source, target = pairs.source.lengths(), pairs.target.lengths()
        if len(source):
            places = (source.argmax(), target.argmax(), (source.astype(int) + target).argmin())
            found += [(int(source[place]), int(target[place])) for place in places]
    longest_source = max(found, key=lambda lengths: lengths[0])
    longest_target = max(found, key=lambda lengths: lengths[1])
    return [longest_source, longest_target, min(found, key=sum)]


def largest_slots(
    extremes: Sequence[Lengths], tokens: int, device: torch.device
) -> Iterator[Batch]:
    """Yield the batches of a slot of so many tokens that need the most memory, one a time.

    Args:
        extremes: what `extreme_lengths` returned.
        tokens: source tokens, and target tokens, at most, but for one pair that is longer.
        device: where the batches go.
    """
    for source, target in extremes:
        count = max(1, tokens // max(source, target))
        yield Batch(
            pack_sequences([[EOS_ID] * source] * count, device),
            pack_sequences([[BOS_ID] * target] * count, device),
            torch.full((target * count,), EOS_ID, device=device),
        )


def fits(objective: Objective, batches: Iterator[Batch]) -> bool:
    """Tell whether a forward and backward pass over each of the batches fits into memory."""
    try:
        for batch in batches:
            objective(batch).smoothed.backward()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        objective.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return True


def fewest_slots(
    update_tokens: int,
    num_ranks: int,
    smallest: int,
    need: Callable[[int], int | None],
    limit: int,
) -> int:
    """Find the smallest number of slots, a multiple of the number of ranks, that fit into memory.

    Slots are tried from the smallest on, each twice as large, as long as the growth so far lets the
    next one fit; what lies between is taken to grow in a straight line, and tried as well.

    Args:
        update_tokens: tokens of an update.
        num_ranks: how many slots are computed at a time.
        smallest: tokens of a slot that holds the longest pair.
        need: computes slots of so many tokens, and tells the bytes needed so far at most, or None
            if they did not fit.
        limit: bytes that there are.

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
        a_token = max((more - needed) / (following - tokens), 1e-9)
        affordable = following + (SHARE * limit - more) / a_token
        tokens, needed = following, more
    if needed is None:
        raise ResourceError(_NOTHING_FITS)
    slots = num_ranks * math.ceil(update_tokens / num_ranks / max(affordable, smallest))
    while need(math.ceil(update_tokens / slots)) is None:
        slots += num_ranks * math.ceil(slots / num_ranks / 4)
        if update_tokens / slots < 1:
            raise ResourceError(_NOTHING_FITS)
    return slots


def slots_that_fit(
    objective: Objective, shards: Sequence[Pairs], update_tokens: int, ranks: Ranks
) -> int:
    """Find into how few slots updates can be cut so that each fits into every rank's device.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device = objective.model.output_weight.device
    extremes = extreme_lengths(shards)

    def need(tokens: int) -> int | None:
        return (
            peak_memory(device)
            if fits(objective, largest_slots(extremes, tokens, device))
            else None
        )

    smallest = max(max(lengths) for lengths in extremes)
    slots = fewest_slots(update_tokens, ranks.size, smallest, need, memory_limit(device))
    return max(ranks.gather(slots))


def pieces_that_fit(
    objective: Objective, shards: Sequence[Pairs], slot_tokens: int, pieces: int, ranks: Ranks
) -> int:
    """Find into how many pieces slots must be cut, at least `pieces`, so that each fits.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device = objective.model.output_weight.device
    extremes = extreme_lengths(shards)
    largest = slot_tokens + max(max(lengths) for lengths in extremes)  # slots are not quite even
    limit = SHARE * memory_limit(device)
    while not (
        fits(objective, largest_slots(extremes, largest // pieces, device))
        and peak_memory(device) <= limit
    ):
        if pieces > slot_tokens:
            raise ResourceError(_NOTHING_FITS)
        pieces *= 2
        forget_peak(device)
    return max(ranks.gather(pieces))


@contextmanager
def room_for_moments(learner: Learner) -> Iterator[None]:
    """Hold the memory that the optimiser will need from its first step on, while room is sought."""
    is_there = bool(learner.optimizer.state)
    held = [] if is_there else [torch.empty_like(p) for p in learner.model.parameters()]
    held += [torch.empty_like(tensor) for tensor in held]
    yield
    del held
