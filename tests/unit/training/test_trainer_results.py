"""When the results of an update are read: the device need not wait for the host."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import SearchConfig, TrainRecipe
from nmtkit.data.batch import Batch
from nmtkit.errors import LostRankError
from nmtkit.runtime.host_copies import HostCopy
from nmtkit.training import trainer as training
from nmtkit.training.objective import Losses, Objective
from nmtkit.training.run import train
from nmtkit.training.state import TrainState
from tests.messages import refuses
from tests.tiny import tiny_train_recipe
from tests.training import assert_same_tensors, last_model, last_values, logged, with_updates


def quiet(recipe: TrainRecipe) -> TrainRecipe:
    """Save and validate at the end only; an update has one micro-batch."""
    recipe = replace(recipe, checkpoints=replace(recipe.checkpoints, save_every=100))
    training = replace(recipe.training, max_tokens=recipe.training.update_tokens)
    recipe = replace(recipe, training=training)
    validation = replace(recipe.validation, validate_every=0)
    return replace(recipe, validation=validation, search=SearchConfig())


@pytest.mark.parametrize("log_every", [1, 3])
def test_results_are_read_after_the_next_update_has_begun_or_when_they_are_reported(
    log_every: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    class Watched(HostCopy):
        def __init__(self, values: torch.Tensor) -> None:
            super().__init__(values)
            events.append("computed")

        def tolist(self) -> list[float]:
            events.append("read")
            return super().tolist()

    def step(*_: object, **__: object) -> None:
        events.append("step")

    def forward(self: Objective, batch: Batch) -> Losses:
        events.append("forward")
        return compute(self, batch)

    compute = Objective.forward
    monkeypatch.setattr(Objective, "forward", forward)
    monkeypatch.setattr(training, "HostCopy", Watched)
    monkeypatch.setattr(TrainState, "step", step)
    recipe = quiet(tiny_train_recipe(max_updates=6, dropout=0.0))
    recipe = replace(recipe, logging=replace(recipe.logging, log_every=log_every))
    monkeypatch.setattr(training, "SECONDS_BETWEEN_REFRESHES", float("inf"))
    train(recipe, data, tmp_path)
    alone = ["forward", "step", "computed"]
    after = ["forward", "read", "step", "computed"]
    if log_every == 1:
        expected = 6 * [*alone, "read"]
    else:  # the first update is shown immediately
        expected = [*alone, "read", *alone, *after, "read", *alone, *after, *after, "read"]
    assert [one for one in events if one != "wrap"][-len(expected) :] == expected


def test_the_last_update_is_counted_at_the_end(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norm, calls = torch.nn.utils.get_total_norm, list[int]()

    def norm_of_fourth_is_bad(gradients: list[torch.Tensor], foreach: bool) -> torch.Tensor:
        calls.append(1)
        return norm(gradients, foreach=foreach) * (math.inf if len(calls) == 4 else 1.0)

    monkeypatch.setattr(torch.nn.utils, "get_total_norm", norm_of_fourth_is_bad)
    recipe = quiet(tiny_train_recipe(max_updates=4, dropout=0.0))
    train(replace(recipe, logging=replace(recipe.logging, log_every=3)), data, tmp_path)
    assert [one["update"] for one in logged(tmp_path, "training")] == [3, 4]
    assert [one["update"] for one in logged(tmp_path, "skipped")] == [4]
    values = last_values(tmp_path)
    assert (values["num_skipped"], values["num_skipped_in_a_row"]) == (1, 1)


def test_gradients_that_are_not_finite_skip_an_update_whose_loss_is_finite(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = quiet(tiny_train_recipe(max_updates=1, dropout=0.0))
    train(recipe, data, tmp_path)
    before = last_model(tmp_path)
    backward = torch.Tensor.backward

    def backward_of_infinity(self: torch.Tensor) -> None:
        backward(self, torch.full_like(self, math.inf))  # type: ignore[no-untyped-call]

    monkeypatch.setattr(torch.Tensor, "backward", backward_of_infinity)
    train(with_updates(recipe, 2), data, tmp_path)
    assert_same_tensors(before, last_model(tmp_path))
    (skipped,) = logged(tmp_path, "skipped")
    assert skipped["update"] == 2
    assert all(math.isfinite(one["loss"]) for one in logged(tmp_path, "training"))


@pytest.mark.parametrize("where", ["step", "HostCopy", "read"])
def test_a_fault_of_the_device_names_its_rank(
    where: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.AcceleratorError("an illegal memory access was encountered")

    if where == "step":
        monkeypatch.setattr(TrainState, "step", fail)
    elif where == "HostCopy":
        monkeypatch.setattr(training, "HostCopy", fail)
    else:
        monkeypatch.setattr(HostCopy, "tolist", fail)
    recipe = quiet(tiny_train_recipe(max_updates=3, dropout=0.0))
    with refuses(LostRankError, "rank 0 update 1"):
        train(recipe, data, tmp_path)
