"""The best metric of a run chooses its best checkpoint, and patience follows it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.checkpointing import Saver
from nmtkit.training.run import train
from nmtkit.training.validation import ShowProgress, Validation, Validator
from tests.snapshots import read_tensors
from tests.tiny import tiny_train_recipe

pytestmark = pytest.mark.sampled(every=3)

CPU = torch.device("cpu")
# What the validations of a run say, one after every update; by nll the third is the best of the
# first four, by BLEU the first.
LOSSES = (5.0, 4.0, 3.0, 3.5, 3.2, 3.1, 9.0, 8.0)
BLEUS = (20.0, 10.0, 20.0, 15.0, 30.0, 12.0, 13.0, 14.0)


@pytest.fixture(autouse=True)
def _told_validations(monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter(zip(LOSSES, BLEUS, strict=True))

    def validate(
        _self: Validator, _is_stopping: Callable[[], bool], _show: ShowProgress
    ) -> Validation:
        loss, bleu = next(results)
        return Validation(nll=loss, scores={"bleu": bleu}, signatures={})

    monkeypatch.setattr(Validator, "validate", validate)


def recipe_by(metric: str, max_updates: int, patience: int = 0) -> TrainRecipe:
    return tiny_train_recipe(
        max_updates, 0.0, keep=1, validate_every=1, best_metric=metric, patience=patience
    )


def named(pointer: Path | None) -> int:
    assert pointer is not None
    return int(pointer.name)


@pytest.mark.parametrize(
    ("metric", "max_updates", "best"),
    [
        ("nll", 2, 2),
        ("nll", 4, 3),
        ("bleu", 4, 1),  # of equal ones the first
        ("bleu", 8, 5),
    ],
)
def test_the_metric_chooses_and_its_choice_is_what_translates(
    metric: str, max_updates: int, best: int, data: Path, tmp_path: Path
) -> None:
    train(recipe_by(metric, max_updates), data, tmp_path)
    run = RunFolder(tmp_path)
    assert named(run.best()) == best
    assert named(run.last()) == max_updates
    assert (tmp_path / "best").read_text("utf-8") == f"{best:08d}\n"
    chosen = read_tensors(tmp_path / "checkpoints" / f"{best:08d}")
    loaded = load_model(tmp_path, CPU).model.state_dict()
    assert all(torch.equal(tensor, chosen[name]) for name, tensor in loaded.items())
    last = load_model(tmp_path / "last", CPU).model.state_dict()
    differ = any(not torch.equal(tensor, last[name]) for name, tensor in loaded.items())
    assert differ == (best != max_updates)


@pytest.mark.parametrize(
    ("metric", "patience", "last", "best"),
    [
        ("nll", 1, 4, 3),
        ("bleu", 4, 8, 5),
    ],
)
def test_patience_follows_the_metric(
    metric: str, patience: int, last: int, best: int, data: Path, tmp_path: Path
) -> None:
    train(recipe_by(metric, len(LOSSES), patience), data, tmp_path)
    assert named(RunFolder(tmp_path).last()) == last
    assert named(RunFolder(tmp_path).best()) == best


def test_patience_goes_on_where_the_last_session_ended(data: Path, tmp_path: Path) -> None:
    for max_updates in range(1, len(LOSSES) + 1):
        train(recipe_by("bleu", max_updates, patience=3), data, tmp_path)
    assert named(RunFolder(tmp_path).last()) == 4
    assert named(RunFolder(tmp_path).best()) == 1


def test_the_next_session_sets_the_best_that_a_killed_one_did_not(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recipe_by("nll", 1), data, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Saver, "keep_best", killed)
        with pytest.raises(KeyboardInterrupt):
            train(recipe_by("nll", 2), data, tmp_path)
    assert named(RunFolder(tmp_path).best()) == 1
    train(recipe_by("nll", 2), data, tmp_path)
    assert named(RunFolder(tmp_path).best()) == 2


def killed(_saver: Saver, _update: int) -> None:
    raise KeyboardInterrupt
