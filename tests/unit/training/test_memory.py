"""Slots are as large as memory allows, and the largest that the data can bring are tried."""

from collections.abc import Iterator

import pytest
import torch

from nmtkit.config.training import ModelConfig
from nmtkit.data.batch import Batch
from nmtkit.data.binary import Dataset
from nmtkit.errors import ResourceError
from nmtkit.model.transformer import Transformer
from nmtkit.training.distributed import Ranks
from nmtkit.training.memory import (
    SHARE,
    extreme_lengths,
    fewest_slots,
    fits,
    largest_slots,
    pieces_that_fit,
    slots_that_fit,
)
from nmtkit.training.objective import Objective
from tests.tiny import tiny_dataset

CPU = torch.device("cpu")
MODEL = ModelConfig(encoder_layers=1, decoder_layers=1, model_size=8, feed_forward_size=8, heads=2)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(tiny_dataset(tmp_path_factory.mktemp("corpus")))


@pytest.fixture
def objective() -> Objective:
    return Objective(Transformer(MODEL, 19, 19, is_shared=True), 0.1, None)


def test_extremes_are_the_longest_sides_and_the_shortest_pair(dataset: Dataset) -> None:
    pairs = [
        (int(source), int(target))
        for shard in dataset.train
        for source, target in zip(shard.source.lengths(), shard.target.lengths(), strict=True)
    ]
    longest_source, longest_target, shortest = extreme_lengths(dataset.train)
    assert {longest_source, longest_target, shortest} <= set(pairs)
    assert longest_source[0] == max(source for source, _ in pairs)
    assert longest_target[1] == max(target for _, target in pairs)
    assert sum(shortest) == min(map(sum, pairs))


@pytest.mark.parametrize("tokens", [1, 10, 64])
def test_the_batches_that_are_tried_fill_a_slot(tokens: int) -> None:
    for batch, lengths in zip(
        largest_slots([(9, 2), (3, 8)], tokens, CPU), [(9, 2), (3, 8)], strict=True
    ):
        layouts = (batch.source.layout, batch.target_in.layout)
        assert tuple(layout.longest for layout in layouts) == lengths
        largest = max(layout.num_tokens for layout in layouts)
        assert largest <= tokens or batch.source.layout.num_sentences == 1
        assert largest + max(lengths) > tokens
        assert batch.target_out.shape == (layouts[1].num_tokens,)


def test_trying_leaves_no_gradients_and_other_errors_pass(objective: Objective) -> None:
    assert fits(objective, largest_slots([(3, 4)], 12, CPU))
    assert all(parameter.grad is None for parameter in objective.parameters())

    def broken() -> Iterator[Batch]:
        raise RuntimeError("a bug")
        yield

    with pytest.raises(RuntimeError, match="a bug"):
        fits(objective, broken())


def runs_out(_batch: Batch) -> None:
    raise torch.OutOfMemoryError("no room")


def test_what_does_not_fit_is_no_error(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objective, "forward", runs_out)
    assert not fits(objective, largest_slots([(3, 4)], 12, CPU))


@pytest.mark.parametrize("num_ranks", [1, 2, 8])
@pytest.mark.parametrize("limit", [2e3, 5e3, 3e4, 2e5, 1e7])
@pytest.mark.parametrize("curve", [0.0, 1e-5])
def test_the_fewest_slots_that_fit_are_taken(num_ranks: int, limit: float, curve: float) -> None:
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

    def is_enough(slots: int) -> bool:
        return bytes_of(-(-update_tokens // slots)) <= limit * SHARE

    slots = fewest_slots(update_tokens, num_ranks, smallest, need, int(limit))
    assert slots % num_ranks == 0
    assert bytes_of(-(-update_tokens // slots)) <= limit
    fewest = next(n for n in range(num_ranks, update_tokens, num_ranks) if is_enough(n))
    assert slots <= max(1.3 * fewest, fewest + num_ranks)


@pytest.mark.parametrize("fits_once", [False, True])
def test_memory_for_nothing_is_an_error(fits_once: bool) -> None:
    answers = iter([5] if fits_once else [])
    with pytest.raises(ResourceError, match="even for one pair at a time; take a smaller model"):
        fewest_slots(100, 1, 20, lambda _tokens: next(answers, None), 10)


def test_slots_of_a_tiny_model_fit_as_they_are(objective: Objective, dataset: Dataset) -> None:
    assert slots_that_fit(objective, dataset.train, 64, Ranks()) == 1
    assert pieces_that_fit(objective, dataset.train, 64, 1, Ranks()) == 1


def test_slots_that_do_not_fit_are_cut_until_they_do(
    objective: Objective, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold_little(batch: Batch) -> object:
        if batch.source.layout.num_tokens > 20:
            raise torch.OutOfMemoryError("no room")
        return Objective.forward(objective, batch)

    monkeypatch.setattr(objective, "forward", hold_little)
    assert pieces_that_fit(objective, dataset.train, 64, 1, Ranks()) == 4
    monkeypatch.setattr(objective, "forward", runs_out)
    with pytest.raises(ResourceError, match="even for one pair at a time"):
        pieces_that_fit(objective, dataset.train, 64, 1, Ranks())
