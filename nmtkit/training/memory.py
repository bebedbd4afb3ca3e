"""What fits into a device's memory, found out before the first update.

The largest slots that the data can bring are computed once, forwards and backwards: those of the
longest source, of the longest target, of the most sentences, and those that attention, which pads,
makes the largest blocks of. So training does not run out of memory after days, and `--max-tokens
auto` takes the largest slots that fit.
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
from nmtkit.runtime import forget_peak, memory_limit, peak_memory
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.training.distributed import Ranks
from nmtkit.training.learner import Learner
from nmtkit.training.objective import Objective
from nmtkit.training.slots import Cut

SHARE = 0.9
"""So much of the memory is filled at most; fragments and other libraries take some of the rest."""

_NOTHING_FITS = (
    "out of memory, even for one pair at a time; take a smaller model or a larger machine"
)

Lengths = NDArray[np.int64]
"""(B, 2) source and target tokens of pairs."""


class _AskedToStop(Exception):  # noqa: N818
    """Someone wants training to end while it is tried what fits."""


@dataclass(frozen=True)
class Extremes:
    """What needs the most memory in its way, of some training pairs.

    Attributes:
        update_tokens: source tokens, and target tokens, of an update at most.
        pairs: (3, 2) lengths of the pair of the longest source, of that of the longest target, and
            of the shortest pair.
        updates: lengths of the pairs of the updates whose blocks of sources, and of targets, are
            the largest when they are padded; they are the same in each epoch, as is every update
            but for which pairs of equal lengths it has.
    """

    update_tokens: int
    pairs: Lengths
    updates: Sequence[Lengths]

    @staticmethod
    def of(shards: Sequence[Pairs], update_tokens: int) -> "Extremes":
        """Find them among all pairs of some shards, at least one."""
        found = [_in_shard(shard, update_tokens) for shard in shards if len(shard)]
        sources, targets, shortest, *updates = zip(*found, strict=True)
        sides = (partial(_block, side=0), partial(_block, side=1))
        longest = [max(sources, key=sides[0]), max(targets, key=sides[1])]
        return Extremes(
            update_tokens,
            pairs=np.concatenate([*longest, min(shortest, key=np.sum)]),
            updates=[max(one, key=side) for one, side in zip(updates, sides, strict=True)],
        )

    def grown(self, growth: tuple[float, float], longest: int) -> "Extremes":
        """Return what they become where texts are cut into more tokens than they are stored as.

        Args:
            growth: how many times as long sources, and targets, become.
            longest: tokens that none has more of.
        """

        def grow(lengths: Lengths) -> Lengths:
            longer: Lengths = np.ceil(lengths * growth).astype(np.int64)
            return np.minimum(longer, longest)

        update_tokens = math.ceil(self.update_tokens * max(growth))
        return Extremes(update_tokens, grow(self.pairs), list(map(grow, self.updates)))

    @property
    def longest(self) -> int:
        """Tokens of the longest side of a pair."""
        return int(self.pairs.max())

    def slots(self, tokens: int, num_slots: int) -> Iterator[Lengths]:
        """Yield the lengths of the pairs of the slots that need the most memory.

        Args:
            tokens: source tokens, and target tokens, of a slot at most, but for one pair that is
                longer.
            num_slots: into how many slots updates are cut.
        """
        for pair in self.pairs:
            yield np.tile(pair, (max(1, tokens // int(pair.max())), 1))
        for side, update in enumerate(self.updates):
            yield update[int(update[:, side].argmax()) % num_slots :: num_slots]


def _in_shard(pairs: Pairs, update_tokens: int) -> list[Lengths]:
    """Return what is extreme in a shard: three pairs, (1, 2) each, and two updates."""
    lengths = np.stack([pairs.source.lengths(), pairs.target.lengths()], axis=1).astype(np.int64)
    places = (lengths[:, 0].argmax(), lengths[:, 1].argmax(), lengths.sum(axis=1).argmin())
    cuts = cut_sorted(lengths[:, 0], lengths[:, 1], update_tokens)
    updates = [lengths[cut] for cut in cuts]
    return [
        *(lengths[[place]] for place in places),
        *(max(updates, key=partial(_block, side=side)) for side in (0, 1)),
    ]


def _block(lengths: Lengths, side: int) -> int:
    """Return how large a block attention makes of one side of some pairs."""
    return len(lengths) * int(lengths[:, side].max())


def batches_of(slots: Iterator[Lengths], device: torch.device) -> Iterator[Batch]:
    """Yield a batch of pairs of given lengths for each slot."""
    for lengths in slots:
        source, target = lengths.T.tolist()
        yield Batch(
            pack_sequences([[EOS_ID] * length for length in source], device),
            pack_sequences([[BOS_ID] * length for length in target], device),
            torch.full((sum(target),), EOS_ID, device=device),
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
    objective: Objective, extremes: Extremes, ranks: Ranks, is_stopping: Callable[[], bool]
) -> int | None:
    """Find into how few slots updates can be cut so that each fits into every rank's device.

    Args:
        objective: of the model that is to be trained.
        extremes: of the pairs that it is trained on.
        ranks: all of them; each has a device of its own.
        is_stopping: a request to end it before the next batch; of one rank, it ends it on all.

    Returns:
        The number; None if asked to stop.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device, update_tokens = objective.model.output_weight.device, extremes.update_tokens

    def need(tokens: int) -> int | None:
        slots = extremes.slots(tokens, math.ceil(update_tokens / tokens))
        is_enough = fits(objective, batches_of(_until(is_stopping, slots), device))
        return peak_memory(device) if is_enough else None

    def find() -> int:
        forget_peak(device)  # that of a trial of compiling, say
        limit = memory_limit(device)
        return fewest_slots(update_tokens, ranks.size, extremes.longest, need, limit)

    return _most_of_all(ranks, find)


def pieces_that_fit(
    objective: Objective,
    extremes: Extremes,
    before: Cut,
    ranks: Ranks,
    is_stopping: Callable[[], bool],
) -> int | None:
    """Find into how many pieces slots must be cut, at least as many as before, so that each fits.

    Args:
        before: how updates are cut now.
        objective, extremes, ranks, is_stopping: as of `slots_that_fit`.

    Returns:
        The number; None if asked to stop.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    device = objective.model.output_weight.device
    slot_tokens = extremes.update_tokens // before.num_slots
    largest = slot_tokens + extremes.longest  # slots are not quite even
    limit = SHARE * memory_limit(device)

    def is_enough(pieces: int) -> bool:
        slots = extremes.slots(largest // pieces, before.num_slots * pieces)
        batches = batches_of(_until(is_stopping, slots), device)
        forget_peak(device)
        return fits(objective, batches) and peak_memory(device) <= limit

    def find() -> int:
        pieces = before.num_pieces
        while not is_enough(pieces):
            if pieces > slot_tokens:
                raise ResourceError(_NOTHING_FITS)
            pieces *= 2
        return pieces

    return _most_of_all(ranks, find)


def _until(is_stopping: Callable[[], bool], slots: Iterator[Lengths]) -> Iterator[Lengths]:
    for slot in slots:
        if is_stopping():
            raise _AskedToStop
        yield slot


def _most_of_all(ranks: Ranks, find: Callable[[], int]) -> int | None:
    """Return the largest number that a rank finds; None if one was asked to stop meanwhile."""
    try:
        own = find()
    except _AskedToStop:
        own = 0
    found = ranks.gather(own)
    return max(found) if all(found) else None


@contextmanager
def room_for_moments(learner: Learner) -> Iterator[None]:
    """Hold the memory that the optimiser will need from its first step on, while room is sought."""
    is_there = bool(learner.optimizer.state)
    # A system gives a process memory when something is written there, and not before.
    held = [] if is_there else [torch.ones_like(p) for p in learner.model.parameters()]
    held += [torch.ones_like(tensor) for tensor in held]
    yield
    del held
