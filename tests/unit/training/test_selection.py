"""Averaging the last checkpoints of a run, the best, or the last N with the best N."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.averaging import average
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import CheckpointConfig, ValidationConfig
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import ValidationRecord
from nmtkit.storage.checkpoint import write_checkpoint
from nmtkit.storage.durable import remove
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective
from nmtkit.training.run import train
from nmtkit.training.selection import average_best_count, best_checkpoints, last_checkpoints
from nmtkit.training.validation import (
    ShowProgress,
    Validation,
    Validator,
    make_validation_metrics,
)
from tests.doubles import report_everything
from tests.messages import refuses
from tests.snapshots import read_tensors, tiny_model_folder, tiny_run, tiny_snapshot, tiny_tensors
from tests.tiny import TRAIN_LINES, tiny_dataset, tiny_train_recipe

NUM_UPDATES = 6
CPU = torch.device("cpu")
RECIPE = replace(
    tiny_train_recipe(NUM_UPDATES, dropout=0.0),
    checkpoints=CheckpointConfig(save_every=1, keep=NUM_UPDATES),
    validation=ValidationConfig(validate_every=NUM_UPDATES, best_metric="bleu"),
)


def updates(folders: Sequence[Path]) -> list[int]:
    return [int(folder.name) for folder in folders]


# -------------------------------------------------------------------------------------- the last


def test_the_newest_scheduled_checkpoints_are_taken(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    for update in range(1, 8):
        write_checkpoint(run, tiny_snapshot(update, is_scheduled=update in (1, 3, 4, 6)))
    assert updates(last_checkpoints(tmp_path / "run", 3)) == [3, 4, 6]


def test_too_few_checkpoints_is_an_error_with_their_number(tmp_path: Path) -> None:
    tiny_run(tmp_path / "run", 1, 2)
    with refuses(ConfigError, "run 2 3; --save-every --keep"):
        last_checkpoints(tmp_path / "run", 3)


# -------------------------------------------------------------------------------------- the best

# What the validations of a run say, one after every update.
LOSSES = (5.0, 2.0, 4.0, 2.0, 3.0)
BLEUS = (10.0, 30.0, 50.0, 40.0, 50.0)


def validated_run(
    path: Path, metric: str = "nll", losses: Sequence[float] = LOSSES, unscheduled: int = 0
) -> RunFolder:
    """Make a run with a checkpoint per update, all except one by --save-every."""
    run = RunFolder.create_or_open(path)
    recipe = TrainRecipe(validation=ValidationConfig(best_metric=metric))
    for update, (loss, bleu) in enumerate(zip(losses, BLEUS, strict=True), 1):
        snapshot = tiny_snapshot(update, is_scheduled=update != unscheduled)
        write_checkpoint(run, replace(snapshot, recipe=recipe))
        log_validation(run, update, loss, bleu)
    return run


def log_validation(run: RunFolder, update: int, loss: float, bleu: float) -> None:
    MetricsLog(run.metrics_path).append(
        ValidationRecord(
            update=update,
            nll=loss,
            perplexity=math.exp(loss),
            scores={"bleu": bleu},
            signatures={},
            is_best=False,
            took_s=0.0,
        )
    )


@pytest.mark.parametrize(
    ("metric", "count", "best"),
    [
        ("nll", 1, [2]),  # of equal ones the earlier
        ("nll", 2, [2, 4]),
        ("nll", 3, [2, 4, 5]),
        ("nll", 5, [1, 2, 3, 4, 5]),
        ("bleu", 1, [3]),
        ("bleu", 2, [3, 5]),
        ("bleu", 4, [2, 3, 4, 5]),
    ],
)
def test_the_best_checkpoints_by_the_runs_metric_come_oldest_first(
    metric: str, count: int, best: list[int], tmp_path: Path
) -> None:
    validated_run(tmp_path, metric)
    assert updates(best_checkpoints(tmp_path, count, pytest.fail)) == best


def test_the_best_checkpoint_may_be_one_that_save_every_does_not_ask_for(tmp_path: Path) -> None:
    (best,) = best_checkpoints(validated_run(tmp_path / "one").path, 1, pytest.fail)
    (found,) = best_checkpoints(
        validated_run(tmp_path / "other", unscheduled=int(best.name)).path, 1, pytest.fail
    )
    assert found.name == best.name


def test_deleted_and_unvalidated_checkpoints_are_not_among_the_best(tmp_path: Path) -> None:
    run = validated_run(tmp_path)
    for update in (2, 4):
        remove(run.model_dir(update))
    write_checkpoint(run, tiny_snapshot(6, is_scheduled=True))
    reported: list[str] = []
    assert updates(best_checkpoints(tmp_path, 3, reported.append)) == [1, 3, 5]
    assert reported == [
        f"{tmp_path}: validation was better after updates 2, 4, whose checkpoints were not kept; "
        "train with --keep-best 3"
    ]


def test_a_loss_that_was_not_finite_is_the_worst(tmp_path: Path) -> None:
    validated_run(tmp_path, losses=(math.nan, 9.0, math.inf, 8.0, 7.0))
    assert updates(best_checkpoints(tmp_path, 3, pytest.fail)) == [2, 4, 5]


def test_too_few_validated_checkpoints_is_an_error_with_their_number(
    tmp_path: Path,
) -> None:
    run = validated_run(tmp_path / "run")
    write_checkpoint(run, tiny_snapshot(6, is_scheduled=True))
    with refuses(ConfigError, "run 5 6; --validate-every --keep-best"):
        best_checkpoints(tmp_path / "run", 6, pytest.fail)


def test_a_run_without_checkpoints_has_no_best(tmp_path: Path) -> None:
    tiny_run(tmp_path / "run")
    with refuses(DamagedError, "run; nmtkit train"):
        best_checkpoints(tmp_path / "run", 1, pytest.fail)


@pytest.mark.parametrize(
    "choose", [last_checkpoints, partial(best_checkpoints, report=pytest.fail)]
)
def test_a_folder_that_is_no_run_is_refused(
    choose: Callable[[Path, int], list[Path]], tmp_path: Path
) -> None:
    folder = tiny_model_folder(tmp_path / "model", 1, tiny_tensors(1))
    for path in (folder, tmp_path / "missing"):
        with refuses(ConfigError, f"{path}; --last --best --try"):
            choose(path, 1)


# ----------------------------------------------------------------------- as many as do best


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with a checkpoint per update; the last is validated."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(RECIPE, data, folder)
    return folder


def tried(out: Path) -> list[dict[str, Any]]:
    """Return the results of all numbers in a model's manifest."""
    found: list[dict[str, Any]] = describe_model(out).manifest["tried"]
    return found


def fake_validations(monkeypatch: pytest.MonkeyPatch, *results: tuple[float, float]) -> None:
    """Have validations return these losses and BLEUs."""
    remaining = iter(results)

    def validate(
        _self: Validator, _is_stopping: Callable[[], bool], _show: ShowProgress
    ) -> Validation:
        loss, bleu = next(remaining)
        return Validation(loss, {"bleu": bleu}, {"bleu": "signed"})

    monkeypatch.setattr(Validator, "validate", validate)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_last_checkpoint_alone_scores_as_in_training(
    precision: str, data: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    run = tmp_path / "run"
    train(replace(RECIPE, engine=replace(RECIPE.engine, precision=precision)), data, run)
    average_best_count(run, [1], data, tmp_path / "out", False, WorkReporter(said.append))
    (record,) = MetricsLog(run / "metrics.jsonl").validations()
    assert record.update == NUM_UPDATES
    expected = {"nll": record.nll, "scores": record.scores, "signatures": record.signatures}
    assert tried(tmp_path / "out") == [{"last": 1, **expected}]
    assert said == [
        "validating the mean of --last 1",
        f"last=1 nll={record.nll:.4f} perplexity={record.perplexity:.2f} "
        f"bleu={record.scores['bleu']:.2f}",
    ]


def test_each_part_of_a_validation_is_counted(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_everything(monkeypatch)
    said: list[str] = []
    average_best_count(run, [2, 1], data, tmp_path / "out", False, WorkReporter(said.append))
    done = [line for line in said if line.startswith(("validat", "last="))]
    counts = [line.partition(", ")[0] for line in done]
    one = [
        "validated 1 of 2 batches of nll (50%)",
        "validated 2 batches of nll",
        "validated 3 translated lines",
        "validated 1 computed metric",
    ]
    assert [line.partition(" nll=")[0] for line in counts] == [
        *("validating the mean of --last 2", *one, "last=2"),
        *("validating the mean of --last 1", *one, "last=1"),
    ]


def test_each_mean_scores_the_same_when_it_is_written(
    run: Path, data: Path, tmp_path: Path
) -> None:
    average_best_count(run, [4, 2], data, tmp_path / "out", False, SILENT)
    dataset = Dataset.open(data)
    metrics = make_validation_metrics(RECIPE.validation, dataset.codec)
    expected = []
    for count in (4, 2):
        average(last_checkpoints(run, count), tmp_path / str(count), {}, overwrite=False)
        model = load_model(tmp_path / str(count), CPU).model
        validator = Validator(
            Objective(model, 0.0, None), dataset, RECIPE.search, metrics, 100, pytest.fail, Ranks()
        )
        found = validator.validate(lambda: False)
        assert found is not None
        # Batches of another size add in another order.
        loss = pytest.approx(found.nll, rel=1e-5)
        expected.append(
            {
                "last": count,
                "nll": loss,
                "scores": found.scores,
                "signatures": found.signatures,
            }
        )
    assert tried(tmp_path / "out") == expected


@pytest.mark.parametrize(
    ("results", "count"),
    [
        (((3.0, 10.0), (2.0, 20.0), (1.0, 15.0)), 2),
        (((3.0, 20.0), (2.0, 20.0), (2.5, 20.0)), 2),  # of equal BLEU the lowest loss
        (((3.0, 20.0), (2.0, 10.0), (3.0, 20.0)), 1),  # of equal ones the first
        (((3.0, 10.0), (2.0, 20.0), (9.0, 30.0)), 5),
    ],
)
def test_the_best_mean_is_written_with_all_results(
    results: tuple[tuple[float, float], ...],
    count: int,
    run: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_validations(monkeypatch, *results)
    out = tmp_path / "out"
    chosen = average_best_count(run, [1, 2, 5], data, out, False, SILENT)
    assert updates(chosen) == list(range(NUM_UPDATES - count + 1, NUM_UPDATES + 1))
    assert tried(out) == [
        {"last": number, "nll": loss, "scores": {"bleu": bleu}, "signatures": {"bleu": "signed"}}
        for number, (loss, bleu) in zip((1, 2, 5), results, strict=True)
    ]
    assert [one["update"] for one in describe_model(out).manifest["sources"]] == updates(chosen)
    average(last_checkpoints(run, count), tmp_path / "expected", {}, overwrite=False)
    expected = read_tensors(tmp_path / "expected")
    written = read_tensors(out)
    assert all(torch.equal(tensor, written[name]) for name, tensor in expected.items())


def test_without_another_best_metric_the_mean_with_the_lowest_nll_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(RECIPE, validation=ValidationConfig(validate_every=NUM_UPDATES))
    train(recipe, data, tmp_path / "run")
    fake_validations(monkeypatch, (3.0, 30.0), (1.0, 10.0), (2.0, 20.0))
    out = tmp_path / "out"
    chosen = average_best_count(tmp_path / "run", [1, 2, 5], data, out, False, SILENT)
    assert len(chosen) == 2


def test_output_that_exists_is_refused_before_anything_is_tried(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tiny_model_folder(tmp_path / "out", 1, tiny_tensors(1))
    fake_validations(monkeypatch)
    with refuses(ConfigError, "out; --overwrite"):
        average_best_count(run, [1], data, out, False, WorkReporter(pytest.fail))
    fake_validations(monkeypatch, (1.0, 1.0))
    average_best_count(run, [1], data, out, True, SILENT)
    assert len(tried(out)) == 1


def test_more_than_there_are_is_an_error_before_anything_is_tried(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_validations(monkeypatch)
    with refuses(ConfigError, "run 6 7; --save-every --keep"):
        average_best_count(run, [1, 7], data, tmp_path / "out", False, WorkReporter(pytest.fail))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("train_lines", "keys"),
    [((*TRAIN_LINES, "i j"), "vocabulary"), (TRAIN_LINES[::-1], "training text")],
)
def test_the_dataset_of_another_run_is_refused(
    train_lines: Sequence[str],
    keys: str,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_validations(monkeypatch)
    other = tiny_dataset(tmp_path, train_lines)
    with refuses(DamagedError, f"data {keys} /00000005"):
        average_best_count(run, [1, 2], other, tmp_path / "out", False, WorkReporter(pytest.fail))
    assert not (tmp_path / "out").exists()


def test_a_dataset_that_is_not_there_is_an_error(run: Path, tmp_path: Path) -> None:
    with refuses(DamagedError, "missing"):
        average_best_count(
            run, [1], tmp_path / "missing", tmp_path / "out", False, WorkReporter(pytest.fail)
        )
