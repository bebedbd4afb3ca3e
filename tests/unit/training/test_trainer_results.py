"""When the results of an update are read: the device need not wait for the host."""

import math
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import LostRankError
from nmtkit.training import trainer as training
from nmtkit.training.meter import Meter, UpdateStats
from nmtkit.training.run import train
from nmtkit.training.state import TrainState
from tests.messages import refuses
from tests.tiny import tiny_train_recipe
from tests.training import assert_same_tensors, last_model, last_values, logged, with_updates


def quiet(max_updates: int, **settings: int) -> TrainRecipe:
    """Return a recipe that saves at the end only; an update has one micro-batch."""
    calm = {"save_every": 100, "validate_every": 0, "max_tokens": 14}
    return tiny_train_recipe(max_updates, dropout=0.0, **{**calm, **settings})


@pytest.mark.parametrize(
    ("log_every", "save_every", "validate_every", "read_after"),
    [
        (1, 100, 0, [1, 2, 3, 4, 5, 6]),
        (4, 100, 0, [1, 4, 6]),
        (100, 2, 0, [1, 2, 4, 6]),
        (100, 100, 3, [1, 3, 6]),
    ],
)
def test_results_are_read_when_they_are_logged_and_before_every_save_and_validation(
    log_every: int,
    save_every: int,
    validate_every: int,
    read_after: list[int],
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also after the first update of a session, which is displayed immediately."""
    read, meter_read = list[int](), Meter.read

    def read_and_note(self: Meter) -> list[tuple[UpdateStats, float]]:
        found = meter_read(self)
        read.extend(stats.number for stats, _ in found[-1:])
        return found

    monkeypatch.setattr(Meter, "read", read_and_note)
    monkeypatch.setattr(training, "SECONDS_BETWEEN_REFRESHES", float("inf"))
    every = {"save_every": save_every, "validate_every": validate_every}
    train(quiet(6, log_every=log_every, **every), data, tmp_path)
    assert read == read_after


def test_the_last_update_is_counted_at_the_end(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norm, calls = torch.nn.utils.get_total_norm, list[int]()

    def norm_of_fourth_is_bad(gradients: list[torch.Tensor], foreach: bool) -> torch.Tensor:
        calls.append(1)
        return norm(gradients, foreach=foreach) * (math.inf if len(calls) == 4 else 1.0)

    monkeypatch.setattr(torch.nn.utils, "get_total_norm", norm_of_fourth_is_bad)
    train(quiet(4, log_every=3), data, tmp_path)
    assert [one["update"] for one in logged(tmp_path, "training")] == [3, 4]
    assert [one["update"] for one in logged(tmp_path, "skipped")] == [4]
    values = last_values(tmp_path)
    assert (values["num_skipped"], values["num_skipped_in_a_row"]) == (1, 1)


def test_gradients_that_are_not_finite_skip_an_update_whose_loss_is_finite(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = quiet(1)
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


@pytest.mark.parametrize("where", ["step", "read"])
def test_a_fault_of_the_device_names_its_rank(
    where: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.AcceleratorError("an illegal memory access was encountered")

    monkeypatch.setattr(TrainState if where == "step" else Meter, where, fail)
    with refuses(LostRankError, "rank 0 update 1"):
        train(quiet(3), data, tmp_path)
