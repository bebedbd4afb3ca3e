"""The start of training reports the rate that is used and a short run, and logs the session."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch

from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Sampler
from nmtkit.training import run
from nmtkit.training.run import planned_updates
from nmtkit.version import __version__
from tests.tiny import tiny_train_recipe
from tests.training import logged


@pytest.mark.parametrize(("max_updates", "is_short"), [(1, True), (3, True), (4, False)])
def test_the_announced_peak_is_the_highest_rate_logged(
    max_updates: int,
    is_short: bool,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = tiny_train_recipe(max_updates=max_updates, dropout=0.0)
    run.train(recipe, data, tmp_path)
    start, _, _ = capsys.readouterr().err.partition("event=start")
    peak = f"{max(one['learning_rate'] for one in logged(tmp_path, 'training')):.3g}"
    assert f" peak_learning_rate={peak} " in start
    message = (
        f"the run ends within its warm-up of 4 updates, with a learning rate of {peak}: "
        f"max_updates is {max_updates}; give more --max-updates, or fewer --warmup-updates in a "
        "new run"
    )
    assert (message in start) == is_short


@pytest.mark.parametrize("is_validated", [True, False])
def test_the_last_line_names_the_best_checkpoint_and_the_next_command(
    is_validated: bool, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_train_recipe(max_updates=3, dropout=0.0)
    every = replace(recipe.validation, validate_every=3 * is_validated)
    folder = tmp_path / "my run"
    run.train(replace(recipe, validation=every), data, folder)
    best = f"; the best checkpoint is {folder}/checkpoints/00000003" * is_validated
    command = f"nmtkit average-checkpoints '{folder}' --data {data} --out MODEL"
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith(f" done after update 3{best}; next: `{command}`")


def test_a_run_of_few_epochs_ends_within_its_warm_up(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_train_recipe(max_updates=100, dropout=0.0)
    training = replace(recipe.training, warmup_updates=40, max_epochs=2)
    run.train(replace(recipe, training=training), data, tmp_path)
    start, _, _ = capsys.readouterr().err.partition("event=start")
    assert "the run ends within its warm-up of 40 updates, with a learning rate of " in start
    assert "max_epochs is 2, about " in start
    assert "give more --max-epochs, or fewer --warmup-updates in a new run" in start


@pytest.mark.parametrize("epochs", [1, 5])
def test_planned_epochs_have_at_most_the_updates_of_the_sampler(
    epochs: int, dataset: Dataset
) -> None:
    recipe = tiny_train_recipe(max_updates=1000, dropout=0.0)
    assert planned_updates(recipe, dataset) == 1000
    recipe = replace(recipe, training=replace(recipe.training, max_epochs=epochs))
    sampler = Sampler(dataset.train, recipe.training.update_tokens, recipe.seed.seed)
    actual = sum(
        len(sampler.plan(epoch, shard))
        for epoch in range(epochs)
        for shard in sampler.shard_order(epoch)
    )
    assert 0.6 * actual <= planned_updates(recipe, dataset) <= actual
    short = replace(recipe, training=replace(recipe.training, max_updates=2))
    assert planned_updates(short, dataset) == 2


def test_each_session_is_logged_before_its_records(data: Path, tmp_path: Path) -> None:
    begin = datetime.now(UTC).replace(microsecond=0)
    for max_updates in (2, 4, 4):  # the last one has nothing left to do
        run.train(tiny_train_recipe(max_updates=max_updates, dropout=0.0), data, tmp_path)
    events = [(one["event"], one["update"]) for one in logged(tmp_path)]
    assert [one for one in events if one[0] == "session"] == [("session", 0), ("session", 2)]
    assert events[0] == ("session", 0)
    assert all(update <= 2 for _, update in events[: events.index(("session", 2))])
    session = logged(tmp_path, "session")[1]
    assert begin <= datetime.fromisoformat(session["started"]) <= datetime.now(UTC)
    assert (session["data"], session["device"], session["ranks"]) == (str(data), "cpu", 1)
    assert (session["nmtkit"], session["torch"]) == (__version__, torch.__version__)
    assert session["threads"] == torch.get_num_threads()
