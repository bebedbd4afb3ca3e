"""Progress records sum up the updates between them, and estimate the remaining time."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from nmtkit.config.model import ModelConfig
from nmtkit.config.training import TrainingConfig
from nmtkit.data.sampler import Update
from nmtkit.model.cost import Workload, training_operations
from nmtkit.progress.records import TrainingRecord
from nmtkit.training.meter import Meter, UpdateStats
from nmtkit.training.objective import LOSSES
from nmtkit.training.state import Progress
from tests.doubles import Clock

EPOCH = 3
NUM_PAIRS = 20
SHAPE = ModelConfig(encoder_layers=1, decoder_layers=2, model_size=16, feed_forward_size=8)


def update_of(
    num_source: int, num_target: int, loss: float, nll: float, gradient_norm: float = 1.0
) -> UpdateStats:
    return UpdateStats(
        number=1,
        update=Update(0, np.arange(1), num_source, num_target),
        epoch=EPOCH,
        seconds=0.0,
        num_source_tokens=num_source,
        counts=dict.fromkeys(LOSSES, num_target),
        sums=torch.tensor([loss, loss, nll, 0.0], dtype=torch.float64),
        gradient_norm=torch.tensor(gradient_norm),
    )


def meter_at(
    clock: Clock, update: int, max_updates: int, max_minutes: float = 0.0, max_epochs: int = 0
) -> tuple[Meter, Progress]:
    config = TrainingConfig(max_updates=max_updates, max_minutes=max_minutes, max_epochs=max_epochs)
    state = Progress(update=update)
    operations = partial(training_operations, SHAPE, 19)
    return Meter(config, state, NUM_PAIRS, 4, lambda: 2**30, operations, clock), state


def record_of(meter: Meter, progress: Progress, learning_rate: float) -> TrainingRecord:
    meter.read()
    return meter.record(progress, learning_rate)


def test_each_update_is_read_once_in_order(clock: Clock) -> None:
    meter, state = meter_at(clock, 0, max_updates=10)
    first, second, third = (update_of(30, 10, 60.0, 50.0, norm) for norm in (1.5, math.inf, 2.5))
    meter.add(first)
    meter.add(second)
    assert meter.read() == [(first, 1.5), (second, math.inf)]
    assert meter.read() == []
    meter.add(third)
    assert meter.read() == [(third, 2.5)]
    clock.now, state.update = clock.now + 1, 3
    assert meter.record(state, 0.0).gradient_norm == 2.5
    meter.clear()
    assert meter.read() == []


def test_tokens_read_are_counted_and_planned_tokens_give_the_fill(clock: Clock) -> None:
    meter, state = meter_at(clock, 0, max_updates=10)
    update = update_of(30, 10, loss=60.0, nll=50.0)
    meter.add(replace(update, num_source_tokens=45, counts=dict.fromkeys(LOSSES, 20)))
    clock.now += 5
    state.update = 1
    record = record_of(meter, state, learning_rate=0.5)
    assert (record.num_source_tokens, record.num_target_tokens) == (45, 20)
    assert (record.loss, record.nll) == (3.0, 2.5)
    assert record.tokens_per_second == pytest.approx(65 / 5)
    assert record.fill == 40 / (2 * 25_000)


def test_losses_are_means_over_the_target_tokens_of_all_updates(clock: Clock) -> None:
    meter, state = meter_at(clock, 0, max_updates=10)
    meter.add(update_of(30, 10, loss=50.0, nll=40.0, gradient_norm=3.0))
    meter.add(update_of(50, 30, loss=70.0, nll=60.0, gradient_norm=5.0))
    clock.now += 4
    state.update, state.seconds, state.num_skipped = 2, 77.0, 1
    record = record_of(meter, state, learning_rate=0.5)
    # Not the mean of the updates' means, which is 3.67 and 3.
    assert record.loss == pytest.approx(120 / 40)
    assert record.nll == pytest.approx(100 / 40)
    assert record.perplexity == pytest.approx(math.exp(2.5))
    assert (record.num_source_tokens, record.num_target_tokens) == (80, 40)
    assert (record.gradient_norm, record.learning_rate) == (5.0, 0.5)
    assert (record.update, record.epoch) == (2, EPOCH)
    assert (record.elapsed_s, record.skipped_updates) == (77.0, 1)
    assert record.fill == 120 / (2 * 2 * 25_000)
    assert (record.peak_memory, record.ranks) == (2**30, 4)


def test_rates_count_both_sides_and_the_time_since_the_last_report(clock: Clock) -> None:
    meter, state = meter_at(clock, 0, max_updates=100)
    meter.add(update_of(500, 300, 1.0, 1.0))
    clock.now += 100
    state.update = 1
    meter.clear()
    assert meter.num_updates == 0
    for _ in range(2):
        meter.add(update_of(30, 10, 1.0, 1.0))
    clock.now += 4
    state.update = 3
    assert meter.num_updates == 2
    assert meter.seconds == pytest.approx(104)
    record = record_of(meter, state, 0.0)
    assert record.tokens_per_second == pytest.approx(80 / 4)
    assert record.updates_per_second == pytest.approx(2 / 4)
    assert record.num_target_tokens == 20
    assert record_of(meter, state, 0.0) == record  # to look is not to forget


def test_excluded_time_is_in_no_rate_and_not_in_the_eta(clock: Clock) -> None:
    meter, state = meter_at(clock, 0, max_updates=12)
    for _ in range(2):
        meter.add(update_of(30, 10, 1.0, 1.0))
    clock.now += 4
    with meter.excluded():
        clock.now += 60
    state.update = 2
    record = record_of(meter, state, 0.0)
    assert record.tokens_per_second == pytest.approx(80 / 4)
    assert record.updates_per_second == pytest.approx(2 / 4)
    assert record.eta_s == pytest.approx(10 * 2)
    assert meter.seconds == 4


def test_the_eta_uses_the_speed_of_this_session(clock: Clock) -> None:
    meter, state = meter_at(clock, 50, max_updates=100)
    for seconds in (1, 3):
        meter.add(update_of(1, 1, 1.0, 1.0))
        clock.now += seconds
        state.update += 1
        record = record_of(meter, state, 0.0)
        meter.clear()
    # Two updates took four seconds, the last one three; the 50 before are of another session.
    assert record.eta_s == pytest.approx(48 * 2)


@pytest.mark.parametrize(
    ("max_minutes", "seconds", "eta_s"),
    [(0.0, 15.0, 180.0), (10.0, 15.0, 180.0), (2.0, 15.0, 105.0), (1.0, 61.0, 0.0)],
)
def test_the_eta_is_that_of_updates_or_minutes_whichever_end_first(
    max_minutes: float, seconds: float, eta_s: float, clock: Clock
) -> None:
    meter, state = meter_at(clock, 9, max_updates=100, max_minutes=max_minutes)
    meter.add(update_of(1, 1, 1.0, 1.0))
    clock.now += 2
    # The seconds of training so far, most of them in an earlier session.
    state.update, state.seconds = 10, seconds
    assert record_of(meter, state, 0.0).eta_s == pytest.approx(eta_s)


@pytest.mark.parametrize(("max_epochs", "last_update"), [(3, 60), (5, 100), (6, 100)])
def test_the_eta_is_that_of_updates_or_epochs_whichever_end_first(
    max_epochs: int, last_update: int, clock: Clock
) -> None:
    meter, state = meter_at(clock, 9, max_updates=100, max_epochs=max_epochs)
    meter.add(update_of(1, 1, 1.0, 1.0))  # of one pair: an epoch is as many updates as pairs
    clock.now += 2
    state.update = 10
    assert record_of(meter, state, 0.0).eta_s == pytest.approx(2 * (last_update - 10))


def test_operations_are_counted_by_update_and_add_up_over_records(clock: Clock) -> None:
    meter, state = meter_at(clock, 7, max_updates=100)
    costs = []
    for _ in range(2):
        meter.add(update_of(30, 10, 1.0, 1.0))
        meter.add(update_of(50, 20, 1.0, 1.0))
        clock.now += 1
        state.update += 2
        costs.append(record_of(meter, state, 0.0))
        meter.clear()
    # Not of two pairs of 40 and 15 tokens, the means: attention takes the square of a length.
    works = (Workload(30, 10, 30, 10), Workload(50, 20, 50, 20))
    expected = sum(training_operations(SHAPE, 19, work) for work in works)
    assert [record.operations for record in costs] == [expected, expected]


@pytest.mark.parametrize("nll", [1e4, math.inf])
def test_a_loss_beyond_exp_has_an_infinite_perplexity(nll: float, clock: Clock) -> None:
    meter, state = meter_at(clock, 0, max_updates=10)
    meter.add(update_of(1, 1, nll, nll))
    clock.now += 1
    state.update = 1
    assert record_of(meter, state, 0.0).perplexity == math.inf
