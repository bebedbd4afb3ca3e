"""How many micro-batches an update has: as --max-tokens asks, or as fit into a GPU.

Forward and backward passes over the largest micro-batches show whether they fit. Their lengths are
those that the dataset stores: noise and subword sampling may make an update longer, and one that
does not fit then is split. On a CPU nothing is tried: a process there is killed where memory does
not suffice.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from nmtkit.config.training import DEFAULT_MAX_TOKENS
from nmtkit.data.batch import eos_batch
from nmtkit.data.binary import Pairs
from nmtkit.data.sampler import batch_by_length, epoch_tokens
from nmtkit.errors import ConfigError, ResourceError, is_out_of_memory
from nmtkit.runtime.devices import gpu_memory, peak_memory, reset_peak_memory
from nmtkit.training.micro_batches import (
    MicroBatchSchedule,
    fewest_micro_batches,
    read_increases,
)
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import unallocated_bytes
from nmtkit.training.state import RunContext, TrainState

USABLE_SHARE = 0.9
"""Largest part of the memory to use; fragments and other libraries need some of the rest."""

Lengths = NDArray[np.int64]
"""(B, 2) source and target lengths of pairs."""


def decide_micro_batches(
    context: RunContext, train_state: TrainState, objective: Objective
) -> MicroBatchSchedule:
    """Decide the number of micro-batches per update.

    It follows from --max-tokens, and the run keeps it. On a GPU each session doubles it until the
    largest micro-batches fit into memory.

    Raises:
        ConfigError: the run has fewer micro-batches per update than there are ranks now.
        ResourceError: not even one pair at a time fits into memory.
    """
    progress, ranks = train_state.progress, context.ranks
    number = progress.num_micro_batches or initial_micro_batches(context)
    if number < ranks.size:
        raise ranks.report_once(
            ConfigError(
                f"the updates of this run have {number} micro-batches, too few for {ranks.size} "
                f"ranks; continue with at most {number} ranks"
            )
        )
    increases = ranks.read("number of micro-batches", lambda: read_increases(context.folder), str)
    schedule = MicroBatchSchedule(context.folder, number, increases)
    current = schedule.at(progress.update + 1)
    data = context.dataset.train, context.recipe.training.update_tokens
    reserved = unallocated_bytes(train_state.optimizer)
    needed = max(ranks.gather(fitting_micro_batches(objective, *data, reserved, current)))
    if needed > current:
        context.reporter.message(
            f"{current} micro-batches per update do not fit into memory; updates have {needed}"
        )
        if progress.num_micro_batches:
            schedule.increase(progress.update + 1, needed, is_writer=ranks.is_first)
        else:
            schedule = MicroBatchSchedule(context.folder, needed, increases)
    progress.num_micro_batches = schedule.initial
    reset_peak_memory(context.device)
    return schedule


def initial_micro_batches(context: RunContext) -> int:
    """Return the number of micro-batches per update that a new run begins with."""
    training, num_ranks = context.recipe.training, context.ranks.size
    # A small text does not fill an update.
    tokens = min(training.update_tokens, int(epoch_tokens(context.dataset, math.ceil)))
    largest = tokens if context.device.type == "cuda" else DEFAULT_MAX_TOKENS
    return fewest_micro_batches(tokens, training.max_tokens or largest, num_ranks)


def fitting_micro_batches(
    objective: Objective, shards: Sequence[Pairs], update_tokens: int, reserved: int, number: int
) -> int:
    """Double the number of micro-batches per update until they fit into the GPU of the model.

    Args:
        objective: objective with the model to train.
        shards: the training pairs.
        update_tokens: source or target tokens per update.
        reserved: bytes that training needs later on.
        number: number to begin with.

    Returns:
        The number; unchanged on a CPU.

    Raises:
        ResourceError: not even one pair at a time fits.
    """
    if objective.model.output_weight.device.type != "cuda":
        return number
    updates = largest_updates(shards, update_tokens)
    while not fits(objective, updates, reserved, number):
        if number >= max(map(len, updates)):
            raise ResourceError(
                "out of memory, even for one pair at a time; use a smaller model or a larger "
                "machine"
            )
        number *= 2
    return number


def largest_updates(shards: Sequence[Pairs], update_tokens: int) -> list[Lengths]:
    """Return the updates with the most tokens, with the most pairs, and with the largest blocks.

    Attention may pad sources, and targets, to a block. Without weights,
    epochs have the same updates: only pairs of equal lengths change places.
    """
    sizes = (
        lambda update: update.sum(),
        len,
        lambda update: len(update) * update[:, 0].max(),
        lambda update: len(update) * update[:, 1].max(),
    )
    largest: list[Lengths] = []
    for shard in filter(len, shards):
        sides = shard.source.lengths(), shard.target.lengths()
        lengths = np.stack(sides, axis=1).astype(np.int64)
        batches = batch_by_length(lengths[:, 0], lengths[:, 1], update_tokens)
        updates = [lengths[pairs] for pairs in batches]
        largest = [max(largest + updates, key=size) for size in sizes]
    return largest


def largest_micro_batch(update: Lengths, number: int) -> Lengths:
    """Return the longest pair of an update and, by length, every NUMBER-th one after it."""
    longest_first: Lengths = update[update.sum(axis=1).argsort(kind="stable")[::-1]]
    return longest_first[::number]


def fits(objective: Objective, updates: Sequence[Lengths], reserved: int, number: int) -> bool:
    """Return whether passes over the largest micro-batches leave `reserved` bytes and a margin."""
    device = objective.model.output_weight.device
    reset_peak_memory(device)
    try:
        for update in updates:
            source, target = largest_micro_batch(update, number).T.tolist()
            objective(eos_batch(source, target, device)).loss.backward()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        objective.zero_grad()
        torch.cuda.empty_cache()
    return peak_memory(device) + reserved <= USABLE_SHARE * gpu_memory(device)
