"""The schedules' closed forms, Adam's formula; weight decay and skipped updates are torch's."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler

from nmtkit.config.training import TrainingConfig
from nmtkit.training.optimizer import (
    SCHEDULES,
    highest_learning_rate,
    learning_rate,
    make_optimizer,
    optimizer_tensors,
    restore_optimizer,
    step_unless,
    unallocated_bytes,
)
from nmtkit.training.state import Progress, TrainState
from tests.tiny import tiny_codec, tiny_model


@pytest.mark.parametrize(("model_size", "peak"), [(512, 6.99e-4), (1024, 4.94e-4)])
def test_the_schedule_peaks_at_the_papers_learning_rates(model_size: int, peak: float) -> None:
    config = TrainingConfig(warmup_updates=4000)
    rates = [learning_rate(update, model_size, config) for update in range(1, 20_001)]
    assert max(rates) == rates[3999]
    assert rates[3999] == pytest.approx(peak, rel=1e-3)


def test_the_schedule_rises_linearly_then_falls_with_the_inverse_square_root() -> None:
    config = TrainingConfig(warmup_updates=100, learning_rate_scale=2.0)
    first = learning_rate(1, 256, config)
    assert first == pytest.approx(2 * 256**-0.5 * 100**-1.5, rel=1e-12)
    assert learning_rate(57, 256, config) == pytest.approx(57 * first, rel=1e-12)
    at_400, at_1600 = (learning_rate(update, 256, config) for update in (400, 1600))
    assert at_400 == pytest.approx(2 * at_1600, rel=1e-12)


@pytest.mark.parametrize("schedule", sorted(set(SCHEDULES) - {"paper"}))
def test_other_schedules_rise_linearly_to_their_peak(schedule: str) -> None:
    config = TrainingConfig(
        schedule=schedule, warmup_updates=100, learning_rate=5e-4, decay_updates=1000
    )
    rates = [learning_rate(update, 512, config) for update in range(1, 1001)]
    assert rates[:100] == pytest.approx([5e-4 * n / 100 for n in range(1, 101)], rel=1e-12)
    assert max(rates) == rates[99]
    assert rates == [learning_rate(update, 64, config) for update in range(1, 1001)]


def test_the_inverse_sqrt_schedule_is_the_papers_up_to_its_peak() -> None:
    paper = TrainingConfig(warmup_updates=100)
    peak = learning_rate(100, 512, paper)
    config = TrainingConfig(schedule="inverse-sqrt", warmup_updates=100, learning_rate=peak)
    for update in (1, 50, 100, 101, 5000):
        expected = learning_rate(update, 512, paper)
        assert learning_rate(update, 512, config) == pytest.approx(expected, rel=1e-12)


def test_the_constant_schedule_stays_at_its_peak() -> None:
    config = TrainingConfig(schedule="constant", warmup_updates=100, learning_rate=5e-4)
    assert {learning_rate(update, 512, config) for update in (100, 101, 10**6)} == {5e-4}


DECAYING = TrainingConfig(
    warmup_updates=40, learning_rate=5e-4, final_learning_rate=1e-5, decay_updates=200
)


@pytest.mark.parametrize(
    ("schedule", "oracle"),
    [
        ("linear", partial(LinearLR, start_factor=1.0, end_factor=1e-5 / 5e-4, total_iters=160)),
        ("cosine", partial(CosineAnnealingLR, T_max=160, eta_min=1e-5)),
    ],
)
def test_from_peak_to_end_a_decaying_schedule_is_that_of_torch(
    schedule: str, oracle: Callable[[torch.optim.Optimizer], LRScheduler]
) -> None:
    config = replace(DECAYING, schedule=schedule)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=5e-4)
    scheduler = oracle(optimizer)
    for update in range(40, 201):
        expected = scheduler.get_last_lr()[0]
        assert learning_rate(update, 512, config) == pytest.approx(expected, rel=1e-9)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_decaying_schedule_ends_at_its_final_rate_and_stays(schedule: str) -> None:
    config = replace(DECAYING, schedule=schedule)
    rates = [learning_rate(update, 512, config) for update in (40, 199, 200, 201, 10**6)]
    assert rates[0] == 5e-4
    assert rates[1] > 1e-5
    assert rates[2:] == [1e-5] * 3


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("max_updates", [1, 30, 40, 41, 250])
def test_the_highest_learning_rate_is_that_of_the_updates_of_a_run(
    schedule: str, max_updates: int
) -> None:
    config = replace(DECAYING, schedule=schedule, max_updates=max_updates)
    rates = [learning_rate(update, 64, config) for update in range(1, max_updates + 1)]
    assert highest_learning_rate(64, config, config.max_updates) == max(rates)


def test_three_updates_follow_the_formula_of_adam() -> None:
    beta1, beta2, epsilon = 0.8, 0.95, 0.3
    config = TrainingConfig(adam_beta1=beta1, adam_beta2=beta2, adam_epsilon=epsilon)
    model = torch.nn.Linear(3, 1, bias=False).double()
    expected = model.weight.detach().clone()
    optimizer = make_optimizer(model, config)
    first, second = torch.zeros_like(expected), torch.zeros_like(expected)
    for update in range(1, 4):
        gradient = torch.tensor([[0.1, -2.0, 3.0]], dtype=torch.float64) * update
        optimizer.param_groups[0]["lr"] = 0.1 * update
        model.weight.grad = gradient.clone()
        optimizer.step()
        first = beta1 * first + (1 - beta1) * gradient
        second = beta2 * second + (1 - beta2) * gradient**2
        corrected = first / (1 - beta1**update), second / (1 - beta2**update)
        expected -= 0.1 * update * corrected[0] / (corrected[1].sqrt() + epsilon)
    # Rounding of float64.
    torch.testing.assert_close(model.weight.detach(), expected, rtol=0, atol=1e-12)


def test_schedule_free_training_follows_its_three_sequences() -> None:
    beta1, beta2, epsilon, decay, warmup = 0.9, 0.95, 1e-3, 0.1, 3
    config = TrainingConfig(
        schedule="schedule-free",
        learning_rate=0.02,
        warmup_updates=warmup,
        adam_beta1=beta1,
        adam_beta2=beta2,
        adam_epsilon=epsilon,
        weight_decay=decay,
    )
    model = tiny_model(tiny_codec()).double()
    state = TrainState.of(model, config, Progress())
    names = [name for name, _ in model.named_parameters()]
    y = {name: one.detach().clone() for name, one in model.named_parameters()}
    z, x, second = dict(y), dict(y), {name: torch.zeros_like(y[name]) for name in names}
    generator, total, num_steps = torch.Generator().manual_seed(1), 0.0, 0
    for update in range(1, 9):
        state.progress.update = update
        rate = learning_rate(update, 1, config)
        assert rate == pytest.approx(0.02 * min(update / warmup, 1))
        total += rate**2
        is_skipped = update == 5
        num_steps += not is_skipped
        for name, parameter in model.named_parameters():
            gradient = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.grad = gradient.clone()
            if not is_skipped:
                second[name] = beta2 * second[name] + (1 - beta2) * gradient**2
                scale = (second[name] / (1 - beta2**num_steps)).sqrt() + epsilon
                decayed = decay * y[name] if parameter.dim() > 1 else 0
                z[name] = z[name] - rate * (gradient / scale + decayed)
            weight = rate**2 / total
            x[name] = (1 - weight) * x[name] + weight * z[name]
            y[name] = (1 - beta1) * z[name] + beta1 * x[name]
        state.step(rate, torch.tensor(is_skipped))
        for found, expected in ((model, y), (state.published, x)):
            for name, parameter in found.named_parameters():
                # Rounding of float64.
                torch.testing.assert_close(parameter.detach(), expected[name], rtol=0, atol=1e-12)


def updated(
    model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer]
) -> list[torch.Tensor]:
    """Run three updates at different learning rates, and return the parameters."""
    torch.manual_seed(1)
    for rate in (0.1, 0.03, 0.2):
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_weight_decay_is_that_of_adamw_on_matrices(weight_decay: float) -> None:
    config = TrainingConfig(weight_decay=weight_decay)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.LayerNorm(4))
    twin = copy.deepcopy(model)
    details: dict[str, Any] = {"lr": 0.0, "betas": (0.9, 0.98), "eps": 1e-9, "fused": True}
    matrix, *vectors = twin.parameters()
    oracles = [
        torch.optim.AdamW([matrix], weight_decay=weight_decay, **details),
        torch.optim.Adam(vectors, **details),
    ]
    expected = updated(twin, oracles)
    for one, other in zip(updated(model, [make_optimizer(model, config)]), expected, strict=True):
        assert torch.equal(one, other)


def test_without_gradients_matrices_shrink_and_nothing_else_changes() -> None:
    model = tiny_model(tiny_codec(), norm="pre", positions="learned", output_bias=True)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = make_optimizer(model, TrainingConfig(weight_decay=0.25))
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    kept = {name for name in before if name.endswith("bias") or "norm" in name}
    assert 0 < len(kept) < len(before)
    for name, parameter in model.named_parameters():
        factor = 1 if name in kept else 1 - 0.1 * 0.25
        torch.testing.assert_close(parameter.detach(), factor * before[name], rtol=1e-6, atol=0)


def test_a_model_of_matrices_only_can_decay() -> None:
    model = torch.nn.Linear(3, 2, bias=False)
    (before,) = (parameter.detach().clone() for parameter in model.parameters())
    (after,) = updated(model, [make_optimizer(model, TrainingConfig(weight_decay=0.1))])
    assert not torch.equal(before, after)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_skipped_updates_leave_weights_moments_and_their_count_as_they_are(
    weight_decay: float,
) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.LayerNorm(4))
    twin = copy.deepcopy(model)
    optimizer, other = (
        make_optimizer(one, TrainingConfig(weight_decay=weight_decay)) for one in (model, twin)
    )
    for is_skipped in (True, False, True, True, False, True):
        for group in [*optimizer.param_groups, *other.param_groups]:
            group["lr"] = 0.1
        for mine, its in zip(model.parameters(), twin.parameters(), strict=True):
            mine.grad = torch.full_like(mine, math.nan) if is_skipped else torch.randn_like(mine)
            its.grad = mine.grad.clone()
        step_unless(optimizer, torch.tensor(is_skipped))
        if not is_skipped:
            other.step()
        for mine, its in zip(model.parameters(), twin.parameters(), strict=True):
            assert torch.equal(mine, its)
    moments, expected = optimizer_tensors(optimizer, model), optimizer_tensors(other, twin)
    assert moments.keys() == expected.keys()
    assert all(torch.equal(moments[name], expected[name]) for name in expected)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_bytes_of_the_moments_are_known_before_the_first_step(weight_decay: float) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.LayerNorm(4)).double()
    freeze_me = model[1].bias.requires_grad_(False)
    optimizer = make_optimizer(model, TrainingConfig(weight_decay=weight_decay))
    optimizer_tensors(optimizer, model)  # as ranks exchange before, it must not look like moments
    expected = unallocated_bytes(optimizer)
    updated(model, [optimizer])
    tensors = optimizer_tensors(optimizer, model).values()
    assert expected == sum(tensor.nbytes for tensor in tensors if tensor.dim() > 0)
    assert unallocated_bytes(optimizer) == 0
    assert freeze_me not in optimizer.state


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_a_restored_optimizer_continues_as_the_first(weight_decay: float) -> None:
    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model(torch.ones(2, 4)).square().sum().backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.1
        optimizer.step()
        optimizer.zero_grad()

    torch.manual_seed(0)
    config = TrainingConfig(weight_decay=weight_decay)
    model, twin = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    optimizer, other = make_optimizer(model, config), make_optimizer(twin, config)
    step(model, optimizer)
    twin.load_state_dict(model.state_dict())
    restore_optimizer(other, twin, optimizer_tensors(optimizer, model))
    step(model, optimizer)
    step(twin, other)
    assert torch.equal(model.weight, twin.weight)
    assert torch.equal(model.bias, twin.bias)
