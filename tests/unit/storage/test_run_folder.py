"""What is a run's folder, what in it is another's, and which checkpoints it names."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.metrics import MetricsConfig, metrics_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.evaluation.metrics import count_corpus, make_metrics
from nmtkit.storage.checkpoint import list_checkpoints, newest_resumable, write_checkpoint
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RUN_FILES, RunFolder, ValidationLines, find_model, is_run
from tests.folders import planted
from tests.messages import refuses
from tests.snapshots import read_tensors, tiny_run, tiny_snapshot, tiny_tensors
from tests.tiny import tiny_codec, tiny_model

CPU = torch.device("cpu")


@pytest.mark.parametrize("exists", [False, True])
def test_a_run_begins_where_there_is_nothing(exists: bool, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    if exists:
        path.mkdir(parents=True)
        (path / ".lock").write_text("")
    assert not is_run(path)
    run = RunFolder.create_or_open(path)
    assert is_run(path)
    assert list_checkpoints(run) == []
    assert (run.best(), run.last(), newest_resumable(run, pytest.fail)) == (None, None, None)


def test_a_run_does_not_begin_in_a_folder_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("1")
    with refuses(ConfigError, "thesis.tex; --out"):
        RunFolder.create_or_open(tmp_path)
    with refuses(ConfigError, "thesis.tex/checkpoints"):
        RunFolder.create_or_open(tmp_path / "thesis.tex")


def test_a_recipe_is_read_back(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    run.write_recipe(TrainRecipe())
    assert run.read_recipe() == TrainRecipe()


def test_the_newest_model_is_the_last_with_a_manifest(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    assert run.newest_model() is None
    run = tiny_run(tmp_path / "other", 1, 2, 3)
    (run.model_dir(3) / "manifest.json").unlink()
    assert run.newest_model() == run.model_dir(2)


def test_a_folder_of_another_program_is_not_taken_for_a_run(tmp_path: Path) -> None:
    checkpoints = tmp_path / "other" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (tmp_path / "other" / "config.toml").write_text("name = 'mine'\n", encoding="utf-8")
    for names in ([], ["last.ckpt"], ["00000010"], ["opt.state"]):
        for name in names:
            (checkpoints / name).mkdir()
        assert not is_run(tmp_path / "other")
        with refuses(ConfigError, "other checkpoints; --out"):
            RunFolder.create_or_open(tmp_path / "other")
    assert (tmp_path / "other" / "config.toml").read_text("utf-8") == "name = 'mine'\n"


def test_a_run_that_was_killed_before_its_first_checkpoint_is_one(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    assert is_run(run.path)
    run.write_recipe(TrainRecipe())
    (tmp_path / "run" / "metrics.jsonl").touch()
    assert is_run(run.path)
    RunFolder.create_or_open(tmp_path / "run")


def test_a_folder_that_holds_every_file_of_a_run_is_one(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path)
    run.write_recipe(TrainRecipe())
    run.tensorboard_dir.mkdir()
    for path in (run.metrics_path, run.validation_lines_path, run.micro_batches_path):
        path.touch()
    for pointer in ("last", "best"):
        (tmp_path / pointer).touch()
    assert {path.name for path in tmp_path.iterdir()} == RUN_FILES
    assert is_run(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert not is_run(tmp_path)


# --------------------------------------------------------------------------------- validation lines

LINES = {
    "ter": ValidationLines(200, 12.5, "TER", [[1, 5.0], [0, 2.5]]),
    "bleu": ValidationLines(100, 26.25, "tok:13a", [[3, 4], [0, 0]]),
}


def test_the_lines_of_validations_are_read_as_they_were_written(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert run.read_validation_lines() == {}
    run.write_validation_lines(LINES)
    assert run.read_validation_lines() == LINES
    written = run.validation_lines_path.read_bytes()
    run.write_validation_lines(dict(reversed(LINES.items())))
    assert run.validation_lines_path.read_bytes() == written


@pytest.mark.parametrize("metric", [*metrics_of("text"), *metrics_of("trees")])
def test_lines_of_every_metric_are_numbers_and_are_read_as_such(
    metric: str, tmp_path: Path
) -> None:
    made, *_ = make_metrics(MetricsConfig(metric=metric, language_pair="en-de"))
    tree = "(S (NP (A a)) (VP (B b)))"
    counted = count_corpus(made, [tree, tree], [[tree, "(S (A a) (B b))"]])
    run, lines = RunFolder(tmp_path), {metric: ValidationLines(1, 50.0, "version:1", counted)}
    run.write_validation_lines(lines)
    assert run.read_validation_lines() == lines
    assert {type(number) for one in counted for number in one} <= {int, float}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (rb".*", b""),
        (rb".{9}$", b""),
        (rb"26\.25", b"26.75"),
        (rb"\[3,4\]", b"[3,5]"),
        (rb".*", b"[]"),
        (rb".*", b"{}"),
        (rb".*", b'{"metrics": [], "sha256": ""}'),
        (rb'"bleu":', b'"bleu":3,"x":'),
        (rb".*", b'{"metrics": {"bleu": {"update": 3}}, "sha256": ""}'),
        (rb".*", b"[" * 10**5),
        (rb".*", b"\xff\xfe"),
    ],
)
def test_damaged_lines_of_validations_are_as_missing_ones(
    old: bytes, new: bytes, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path)
    run.write_validation_lines(LINES)
    damaged = re.sub(old, new, run.validation_lines_path.read_bytes(), count=1, flags=re.DOTALL)
    run.validation_lines_path.write_bytes(damaged)
    assert run.read_validation_lines() == {}


# ----------------------------------------------------------------------------------------- pointers


def test_last_is_a_line_that_names_what_was_saved_last(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 9, 10)
    assert (tmp_path / "run" / "last").read_bytes() == b"00000010\n"
    assert run.last() == run.model_dir(10)


def test_best_is_what_it_was_pointed_to(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    assert run.best() is None
    run.point_best([1])
    assert run.best() == run.model_dir(1)
    assert (tmp_path / "run" / "best").read_bytes() == b"00000001\n"


def test_best_does_not_point_to_what_was_not_saved(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1)
    run.point_best([2, 1])
    assert run.best() == run.model_dir(1)
    run.point_best([2])
    assert run.best() is None
    assert not (tmp_path / "run" / "best").exists()


@pytest.mark.parametrize("content", [None, b"", b"00000099\n", b"../../etc\n", b"\xff\xfe", b"2\n"])
def test_a_missing_or_dangling_pointer_is_the_newest_and_is_rebuilt(
    content: bytes | None, tmp_path: Path
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    for pointer in (tmp_path / "run" / "last", tmp_path / "run" / "best"):
        pointer.unlink(missing_ok=True)
        if content is not None:
            pointer.write_bytes(content)
    assert run.last() == run.model_dir(2)
    assert run.best() is None
    run.point_last(2)
    assert (tmp_path / "run" / "last").read_bytes() == b"00000002\n"


def test_a_recipe_that_is_not_utf8_is_no_run(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    run.config_path.write_bytes("# größer\n".encode("latin-1"))
    with refuses(ConfigError, "config.toml TOML UTF-8"):
        run.read_recipe()
    assert not is_run(run.path)


@pytest.mark.parametrize("kind", ["link to a device", "pipe", "folder"])
@pytest.mark.parametrize(
    ("name", "read"),
    [("last", RunFolder.last), ("best", RunFolder.best), ("config.toml", RunFolder.read_recipe)],
)
def test_a_file_that_is_something_else_is_refused_unread(
    name: str, read: Callable[[RunFolder], object], kind: str, tmp_path: Path
) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    with (
        planted(kind, run.path / name),
        refuses(DamagedError, f"run/{name}"),
    ):
        read(run)


def real_run(path: Path) -> RunFolder:
    """Make a run of two checkpoints of a real model, of which the first is the best."""
    run = RunFolder.create_or_open(path)
    model = tiny_model(tiny_codec())
    for update in (1, 2):
        snapshot = tiny_snapshot(update, is_scheduled=True)
        recipe = TrainRecipe(model=model.config)
        write_checkpoint(run, replace(snapshot, model=model.state_dict(), recipe=recipe))
    run.point_best([1])
    return run


def test_a_run_and_its_pointers_stand_for_models(tmp_path: Path) -> None:
    run = real_run(tmp_path / "run")
    meanings = {
        run.path: 1,
        run.path / "best": 1,
        run.path / "last": 2,
        run.path / "checkpoints" / "00000002": 2,
    }
    for path, update in meanings.items():
        assert load_model(path, CPU).manifest["update"] == update, path
        assert find_model(path) == run.path / "checkpoints" / f"{update:08d}", path


def test_a_run_without_a_best_checkpoint_stands_for_its_last(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    assert find_model(run.path) == run.path / "checkpoints" / "00000002"
    assert torch.equal(read_tensors(run.path)["weight"], tiny_tensors(2)["weight"])


def test_a_run_without_checkpoints_is_an_error(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    with refuses(DamagedError, "run; nmtkit train"):
        load_model(run.path, CPU)


def test_other_files_named_last_are_no_pointers(tmp_path: Path) -> None:
    (tmp_path / "last").write_text("00000001\n")
    with refuses(DamagedError, "last"):
        load_model(tmp_path / "last", CPU)
