"""A plan says of a run what the run then is, and writes nothing."""

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Sampler
from nmtkit.training import plan as planning
from nmtkit.training.run import make_train_state, plan
from nmtkit.training.state import Progress
from tests.tiny import tiny_train_recipe
from tests.training import CPU, run_context


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> TrainRecipe:
    monkeypatch.setitem(planning.PRODUCT_SIZES, "cpu", 64)
    recipe = tiny_train_recipe(max_updates=100, dropout=0.1)
    return replace(recipe, training=replace(recipe.training, update_tokens=24, max_tokens=12))


def facts(recipe: TrainRecipe, data: Path) -> dict[str, str]:
    return {
        name: value
        for line in plan(recipe, data)
        for name, value in [re.split(r" {2,}", line, maxsplit=1)]
    }


def test_size_and_epochs_are_those_of_the_run(
    recipe: TrainRecipe, data: Path, tmp_path: Path
) -> None:
    dataset = Dataset.open(data)
    context = run_context(recipe, dataset, tmp_path)
    model = make_train_state(context, Progress()).model
    told = facts(recipe, data)
    size = sum(p.numel() for p in model.parameters())
    assert told["parameters"].startswith(f"{size:,} (")
    epoch = 0
    for position, _ in Sampler(dataset.train, 24, recipe.seed.seed).updates(Position(0, 0, 0)):
        epoch += 1
        if position.epoch:
            break
    assert told["an epoch"] == f"{epoch} updates; the run is {100 / epoch:.1f} epochs"


def test_every_fact_has_a_figure_and_a_moving_average_costs_disk(
    recipe: TrainRecipe, data: Path
) -> None:
    told = facts(recipe, data)
    averaged = replace(recipe, training=replace(recipe.training, average_decay=0.9))
    # Of a CPU the paper's way of counting has no figure.
    assert told.pop("as the paper counts").startswith("- (time x devices x what one sustains")
    assert all(re.search(r"\d", value) for value in told.values())
    assert told["a checkpoint"] != facts(averaged, data)["a checkpoint"]


def test_checkpoints_that_are_kept_for_being_the_best_cost_disk(
    recipe: TrainRecipe, data: Path
) -> None:
    def whole(keep_best: int) -> float:
        checkpoints = replace(recipe.checkpoints, keep_best=keep_best)
        told = facts(replace(recipe, checkpoints=checkpoints), data)["a checkpoint"]
        model, rest, sizes = re.findall(r"([0-9.]+) kB", told)
        assert float(rest) > float(model)
        return float(sizes) / float(model)

    assert whole(11) - whole(1) == pytest.approx(10, rel=0.05)  # figures have three digits


def test_no_further_update_is_done_once_the_time_for_it_is_over(
    recipe: TrainRecipe, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MEASURED_S", 0.0)
    assert " in 1 updates on one device" in facts(recipe, data)["speed"]


def test_the_measured_peak_is_that_of_products() -> None:
    for precision in (None, torch.bfloat16):
        assert planning.product_rate(CPU, precision, time.monotonic) > 1e6
