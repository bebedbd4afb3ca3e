"""The memory search finds the largest micro-batches that fit, by the worst cases of the data."""

import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from pathlib import Path

import numpy as np
import pytest
import torch

from nmtkit.config.training import ModelConfig, TrainingConfig
from nmtkit.data.batch import Batch
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Sampler
from nmtkit.errors import ResourceError
from nmtkit.model.kernels.flash import MAX_PADDED_LENGTH
from nmtkit.model.transformer import Transformer
from nmtkit.training import memory_search
from nmtkit.training.distributed import Ranks
from nmtkit.training.memory_search import (
    USABLE_SHARE,
    Lengths,
    WorstCases,
    batches_of,
    find_num_micro_batches,
    fits,
    increase_until_fits,
    reserve_adam_memory,
    smallest_num_micro_batches,
)
from nmtkit.training.micro_batches import pairs_of
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import make_adam, optimizer_tensors
from tests.messages import refuses

CPU = torch.device("cpu")
MODEL = ModelConfig(encoder_layers=1, decoder_layers=1, model_size=8, feed_forward_size=8, heads=2)


@dataclass(frozen=True)
class Side:
    of_each: Lengths

    def lengths(self) -> Lengths:
        return self.of_each


@dataclass(frozen=True)
class Shard:
    source: Side
    target: Side

    def __len__(self) -> int:
        return len(self.source.of_each)

    @property
    def weight_runs(self) -> list[tuple[int, float]]:
        return [(len(self.source.of_each), 1.0)]


@pytest.fixture
def worst_cases(dataset: Dataset) -> WorstCases:
    return WorstCases.of(dataset.train, update_tokens=64)


@pytest.fixture
def objective() -> Objective:
    return Objective(Transformer(MODEL, 19, 19, is_shared=True), 0.1, None)


def some_batch() -> Iterator[Batch]:
    return batches_of(iter([np.array([(3, 4)] * 3)]), CPU)


def no_request() -> bool:
    return False


def test_worst_cases_are_the_longest_sides_and_the_shortest_pair(
    dataset: Dataset, worst_cases: WorstCases
) -> None:
    pairs = [
        (int(source), int(target))
        for shard in dataset.train
        for source, target in zip(shard.source.lengths(), shard.target.lengths(), strict=True)
    ]
    longest_source, longest_target, shortest = map(tuple, worst_cases.pairs.tolist())
    assert {longest_source, longest_target, shortest} <= set(pairs)
    assert longest_source[0] == max(source for source, _ in pairs)
    assert longest_target[1] == max(target for _, target in pairs)
    assert sum(shortest) == min(map(sum, pairs))


def test_worst_cases_grow_by_side_up_to_the_longest_sample(
    worst_cases: WorstCases,
) -> None:
    def lengths(one: WorstCases) -> list[list[list[int]]]:
        return [pairs.tolist() for pairs in (one.pairs, *one.updates)]

    assert lengths(worst_cases.lengthened((1.0, 1.0), longest=64)) == lengths(worst_cases)
    target_doubled = worst_cases.lengthened((1.0, 2.0), longest=64)
    assert target_doubled.update_tokens == 2 * worst_cases.update_tokens
    assert lengths(target_doubled) == [
        [[source, 2 * target] for source, target in pairs] for pairs in lengths(worst_cases)
    ]
    # What is drawn too long stays as it is stored, which is never longer than that.
    assert worst_cases.lengthened((5.0, 5.0), longest=9).longest == 9


@pytest.mark.parametrize("tokens", [1, 10, 64])
def test_the_batches_of_equal_pairs_fill_a_micro_batch(
    tokens: int, worst_cases: WorstCases
) -> None:
    equal = [one for one in worst_cases.micro_batches(tokens, 1) if (one == one[0]).all()]
    assert len(equal) >= 3
    for batch, lengths in zip(batches_of(iter(equal), CPU), equal, strict=True):
        layouts = (batch.source.layout, batch.target_in.layout)
        assert tuple(layout.longest for layout in layouts) == tuple(lengths[0])
        largest = max(layout.num_tokens for layout in layouts)
        assert largest <= tokens or batch.source.layout.num_sentences == 1
        assert largest + lengths[0].max() > tokens
        assert batch.target_out.shape == (layouts[1].num_tokens,)


@pytest.mark.parametrize("number", [1, 3, 8])
def test_no_micro_batch_of_any_update_pads_to_larger_blocks_than_those_that_are_tried(
    number: int,
) -> None:
    random = np.random.default_rng(1)
    lengths = random.integers(2, 16, (2, 4000, 2))
    lengths[1, 7] = (250, 9)  # among pairs of nine tokens, each is padded to 250
    lengths[0, 8] = (3, 200)
    shards = [Shard(Side(one[:, 0]), Side(one[:, 1])) for one in lengths]
    tried = list(WorstCases.of(shards, 2000).micro_batches(2000 // number, number))  # type: ignore[arg-type]
    short = [one for one in tried if one.max() <= MAX_PADDED_LENGTH]
    updates = Sampler(shards, 2000, seed=3).updates(Position(0, 0, 0))
    for position, update in updates:
        for j in range(min(number, len(update.pairs))):
            found = lengths[update.shard][pairs_of(update.pairs, j, number)]
            for side in (0, 1):
                longest = int(found[:, side].max())
                # On a GPU longer ones have no blocks.
                alike = short if found.max() <= MAX_PADDED_LENGTH else tried
                most = max(len(one) * int(one[:, side].max()) for one in alike)
                assert len(found) * longest <= most + longest  # they differ by one pair
        if position.epoch == 2:
            break


def test_trying_leaves_no_gradients_and_other_errors_pass(objective: Objective) -> None:
    assert fits(objective, some_batch())
    assert all(parameter.grad is None for parameter in objective.parameters())

    def broken() -> Iterator[Batch]:
        raise RuntimeError("a bug")
        yield

    with pytest.raises(RuntimeError, match="a bug"):
        fits(objective, broken())


def runs_out(_batch: Batch) -> None:
    raise torch.OutOfMemoryError("no room")


def test_a_batch_that_does_not_fit_is_no_error(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objective, "forward", runs_out)
    assert not fits(objective, some_batch())


@pytest.mark.parametrize("num_ranks", [1, 2, 8])
@pytest.mark.parametrize("limit", [2e3, 5e3, 3e4, 2e5, 1e7])
@pytest.mark.parametrize("curve", [0.0, 1e-5])
def test_the_smallest_number_that_fits_is_found(num_ranks: int, limit: float, curve: float) -> None:
    update_tokens, smallest = 25_000, 20
    most = 0.0

    def bytes_of(tokens: int) -> float:
        return 1000 + 7 * tokens + curve * tokens**2

    def need(tokens: int) -> int | None:
        nonlocal most
        if bytes_of(tokens) > limit:
            return None
        most = max(most, bytes_of(tokens))  # what was needed at most, as devices tell it
        return int(most)

    def is_enough(number: int) -> bool:
        return bytes_of(-(-update_tokens // number)) <= limit * USABLE_SHARE

    number = smallest_num_micro_batches(update_tokens, num_ranks, smallest, need, int(limit))
    assert number % num_ranks == 0
    assert bytes_of(-(-update_tokens // number)) <= limit
    fewest = next(n for n in range(num_ranks, update_tokens, num_ranks) if is_enough(n))
    assert number <= max(1.3 * fewest, fewest + num_ranks)


@pytest.mark.parametrize("fits_once", [False, True])
def test_too_little_memory_is_an_error(fits_once: bool) -> None:
    answers = iter([5] if fits_once else [])
    with refuses(ResourceError, "memory"):
        smallest_num_micro_batches(100, 1, 20, lambda _tokens: next(answers, None), 10)


def test_an_update_of_a_tiny_model_fits_in_one_micro_batch(
    objective: Objective, worst_cases: WorstCases
) -> None:
    assert find_num_micro_batches(objective, worst_cases, Ranks(), no_request) == 1
    assert increase_until_fits(objective, worst_cases, 1, Ranks(), no_request) == 1


LONGEST_WORST_CASE = 64 // 4 + 6
"""Tokens of a quarter of an update, and of the longest sequence, by which parts may differ."""


def test_micro_batches_that_do_not_fit_are_split_until_they_do(
    objective: Objective, worst_cases: WorstCases, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold_little(batch: Batch) -> object:
        if batch.source.layout.num_tokens > LONGEST_WORST_CASE:
            raise torch.OutOfMemoryError("no room")
        return Objective.forward(objective, batch)

    monkeypatch.setattr(objective, "forward", hold_little)
    assert increase_until_fits(objective, worst_cases, 1, Ranks(), no_request) == 4
    monkeypatch.setattr(objective, "forward", runs_out)
    with refuses(ResourceError, "memory"):
        increase_until_fits(objective, worst_cases, 1, Ranks(), no_request)


def test_an_earlier_memory_peak_does_not_count(
    objective: Objective, worst_cases: WorstCases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a fake GPU, whose peak can be reset."""
    limit, peak = 10_000, 9_999

    def forget(_device: torch.device) -> None:
        nonlocal peak
        peak = 0

    def compute(batch: Batch) -> object:
        nonlocal peak
        peak = max(peak, sum(batch.sizes))
        return Objective.forward(objective, batch)

    monkeypatch.setattr(objective, "forward", compute)
    monkeypatch.setattr(memory_search, "reset_peak_memory", forget)
    monkeypatch.setattr(memory_search, "peak_memory", lambda _device: peak)
    monkeypatch.setattr(memory_search, "memory_limit", lambda _device: limit)
    assert find_num_micro_batches(objective, worst_cases, Ranks(), no_request) == 1
    peak = 9_999
    assert increase_until_fits(objective, worst_cases, 1, Ranks(), no_request) == 1


def stopping_after(calls: int) -> Callable[[], bool]:
    answers = iter([False] * calls)
    return lambda: next(answers, True)


@pytest.mark.parametrize("num_batches", [0, 1, 3])
def test_a_request_to_stop_ends_trying_before_the_next_batch(
    num_batches: int,
    objective: Objective,
    worst_cases: WorstCases,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[Batch] = []

    def note(batch: Batch) -> object:
        tried.append(batch)
        return Objective.forward(objective, batch)

    monkeypatch.setattr(objective, "forward", note)
    is_stopping = stopping_after(num_batches)
    assert find_num_micro_batches(objective, worst_cases, Ranks(), is_stopping) is None
    assert len(tried) == num_batches
    is_stopping = stopping_after(num_batches)
    assert increase_until_fits(objective, worst_cases, 1, Ranks(), is_stopping) is None
    assert len(tried) == 2 * num_batches


def resident() -> int:
    """Return the memory of this process in bytes."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def take_room(weight_decay: float) -> None:
    model = torch.nn.Linear(1, 2**23)  # a matrix, which decays, and a vector of the same size
    optimizer = make_adam(model, TrainingConfig(weight_decay=weight_decay))
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    optimizer_tensors(optimizer, model)  # as ranks exchange before, it must not look like moments
    before = resident()
    with reserve_adam_memory(optimizer):
        assert resident() - before > 1.5 * weights


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_memory_for_moments_is_really_allocated(weight_decay: float) -> None:
    """In a new process: this one, or a fork of it, may have free memory of earlier tests."""
    process = SpawnContext().Process(target=take_room, args=(weight_decay,))
    process.start()
    process.join()
    assert process.exitcode == 0


def test_a_sentence_of_the_longest_padded_length_is_padded() -> None:
    most = MAX_PADDED_LENGTH
    side = Side(np.array([3] * (2 * most // 3) + [most] * 2 + [most + 1]))
    worst_cases = WorstCases.of([Shard(side, side)], 2 * most)  # type: ignore[list-item]
    assert [one.tolist() for one in worst_cases.updates[2:]] == 2 * [2 * [[most, most]]]
