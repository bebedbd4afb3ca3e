"""How the parts of a run are connected."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import RuntimeConfig
from nmtkit.config.training import DEFAULT_MAX_TOKENS
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError
from nmtkit.training import fit_memory, run
from nmtkit.training.fit_memory import decide_micro_batches
from nmtkit.training.micro_batches import Increase, read_increases
from nmtkit.training.objective import Objective
from nmtkit.training.run import make_train_state
from nmtkit.training.state import Progress
from tests.tiny import tiny_subword_dataset, tiny_train_recipe
from tests.training import run_context, trainer_of


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_subword_dataset(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize(
    ("update_tokens", "max_tokens"),
    [(14, 7), (14, 1000), (1_000_000, 30), (1_000_000, 1_000_000), (1_000_000, 0)],
)
def test_a_small_text_has_the_micro_batches_of_its_own_size(
    update_tokens: int, max_tokens: int, data: Path, tmp_path: Path
) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    sizes = replace(recipe.training, update_tokens=update_tokens, max_tokens=max_tokens)
    dataset = Dataset.open(data)
    trainer = trainer_of(run_context(replace(recipe, training=sizes), dataset, tmp_path))
    (pairs,) = dataset.train
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
    is_new: bool, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    sizes = replace(recipe.training, update_tokens=14, max_tokens=7)
    context = run_context(replace(recipe, training=sizes), Dataset.open(data), tmp_path)
    progress = Progress() if is_new else Progress(update=3, num_micro_batches=2)
    state = make_train_state(context, progress)
    objective = Objective(state.model, context.recipe.training, context.low_precision)
    monkeypatch.setattr(fit_memory, "fitting_micro_batches", lambda *of: 2 * of[-1])
    schedule = decide_micro_batches(context, state, objective)
    expected = [4, 4, 4] if is_new else [2, 2, 4]
    assert [schedule.at(update) for update in (1, 3, 4)] == expected
    assert progress.num_micro_batches == schedule.at(1)
    assert read_increases(context.folder) == ([] if is_new else [Increase(4, 4)])
