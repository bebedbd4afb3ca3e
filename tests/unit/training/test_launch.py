"""How many processes a command starts."""

from dataclasses import replace

import pytest
import torch

from nmtkit.config.schema import RuntimeConfig, TrainRecipe
from nmtkit.config.training import RanksConfig
from nmtkit.errors import ConfigError
from nmtkit.training.launch import num_processes


def recipe_of(devices: int, device: str = "auto") -> TrainRecipe:
    return replace(
        TrainRecipe(), ranks=RanksConfig(devices=devices), runtime=RuntimeConfig(device=device)
    )


@pytest.fixture(params=[0, 4])
def num_gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    number: int = request.param
    monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
    return number


def test_all_gpus_are_taken_or_else_one_process(num_gpus: int) -> None:
    assert num_processes(recipe_of(0)) == (num_gpus or 1)


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.usefixtures("num_gpus")
def test_a_number_of_devices_is_taken_at_its_word(devices: int) -> None:
    assert num_processes(recipe_of(devices)) == devices


@pytest.mark.usefixtures("num_gpus")
def test_a_cpu_has_as_many_devices_as_are_asked_for() -> None:
    assert num_processes(recipe_of(8, "cpu")) == 8
    assert num_processes(recipe_of(0, "cpu")) == 1


def test_more_devices_than_there_are_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.raises(ConfigError, match=r"devices \(5\) are more than the 4 GPUs"):
        num_processes(recipe_of(5))


def test_a_process_that_was_launched_as_a_rank_launches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    assert num_processes(recipe_of(8, "cpu")) == 1
