"""How the parts of a run are connected, and what it says at its start and its end."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import RuntimeConfig
from nmtkit.config.training import DEFAULT_MAX_TOKENS
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Sampler
from nmtkit.errors import ConfigError
from nmtkit.training import fit_memory, run
from nmtkit.training.fit_memory import decide_micro_batches
from nmtkit.training.micro_batches import Increase, read_increases
from nmtkit.training.objective import Objective
from nmtkit.training.run import make_train_state, planned_updates
from nmtkit.training.state import Progress
from nmtkit.version import __version__
from tests.tiny import tiny_train_recipe, with_settings
from tests.training import logged, run_context, trainer_of


@pytest.mark.parametrize(
    ("update_tokens", "max_tokens"),
    [(14, 7), (14, 1000), (1_000_000, 30), (1_000_000, 1_000_000), (1_000_000, 0)],
)
def test_a_small_text_has_the_micro_batches_of_its_own_size(
    update_tokens: int, max_tokens: int, subword_dataset: Dataset, tmp_path: Path
) -> None:
    recipe = tiny_train_recipe(1, 0.0, update_tokens=update_tokens, max_tokens=max_tokens)
    trainer = trainer_of(run_context(recipe, subword_dataset, tmp_path))
    (pairs,) = subword_dataset.train
    tokens = max(int(side.lengths().sum()) for side in (pairs.source, pairs.target))
    expected = math.ceil(min(tokens, update_tokens) / (max_tokens or DEFAULT_MAX_TOKENS))
    assert trainer.schedule.at(1) == expected


def test_freed_memory_is_kept_before_the_first_tensor(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def set_up(_: RuntimeConfig) -> torch.device:
        raise ConfigError(f"after {done}")

    monkeypatch.setattr(run, "keep_freed_memory", lambda: done.append("kept"))
    monkeypatch.setattr(run, "set_up", set_up)
    with pytest.raises(ConfigError, match="kept"):
        run.train(tiny_train_recipe(1, 0.0), data, tmp_path / "run")


@pytest.mark.parametrize("is_new", [True, False])
def test_micro_batches_that_do_not_fit_increase_from_the_next_update_on(
    is_new: bool, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = run_context(tiny_train_recipe(max_updates=1, dropout=0.0), dataset, tmp_path)
    progress = Progress() if is_new else Progress(update=3, num_micro_batches=2)
    state = make_train_state(context, progress)
    objective = Objective(state.model, context.recipe.training, context.low_precision)
    monkeypatch.setattr(fit_memory, "fitting_micro_batches", lambda *of: 2 * of[-1])
    schedule = decide_micro_batches(context, state, objective)
    expected = [4, 4, 4] if is_new else [2, 2, 4]
    assert [schedule.at(update) for update in (1, 3, 4)] == expected
    assert progress.num_micro_batches == schedule.at(1)
    assert read_increases(context.folder) == ([] if is_new else [Increase(4, 4)])


# ------------------------------------------------------------------------------------ announcements


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


@pytest.mark.parametrize(("is_validated", "ema_decay"), [(True, 0.0), (False, 0.0), (True, 0.9)])
def test_the_last_line_names_the_best_checkpoint_and_the_next_command(
    is_validated: bool,
    ema_decay: float,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    validated = 3 * is_validated
    recipe = tiny_train_recipe(3, 0.0, validate_every=validated, ema_decay=ema_decay)
    folder = tmp_path / "my run"
    run.train(recipe, data, folder)
    best = f"; the best checkpoint is {folder}/checkpoints/00000003" * is_validated
    command = f"nmtkit average-checkpoints '{folder}' --data {data} --out MODEL"
    if ema_decay:
        command = f"nmtkit translate '{folder}' < TEXT"
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith(f" done after update 3{best}; next: `{command}`")


def test_a_run_of_few_epochs_ends_within_its_warm_up(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_train_recipe(max_updates=100, dropout=0.0, warmup_updates=40, max_epochs=2)
    run.train(recipe, data, tmp_path)
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
    recipe = with_settings(recipe, max_epochs=epochs)
    sampler = Sampler(dataset.train, recipe.training.update_tokens, recipe.seed.seed)
    actual = sum(
        len(sampler.plan(epoch, shard))
        for epoch in range(epochs)
        for shard in sampler.shard_order(epoch)
    )
    assert 0.6 * actual <= planned_updates(recipe, dataset) <= actual
    assert planned_updates(with_settings(recipe, max_updates=2), dataset) == 2


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
