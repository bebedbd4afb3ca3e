"""A power cut at any moment leaves the old or the new, and training ends as without it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import SearchConfig
from nmtkit.config.training import CheckpointConfig, LoggingConfig
from nmtkit.data.binary import Dataset
from nmtkit.data.prepare import prepare
from nmtkit.errors import DamagedError
from nmtkit.progress.counting import SILENT
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.storage.manifest import verify_files
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.run import train
from tests.faults.power_cut import Disk, restore, seen_of, with_most_left
from tests.faults.scenarios import SCENARIOS, Scenario, everything_in
from tests.snapshots import read_tensors
from tests.thoroughness import sample
from tests.tiny import TRAIN_LINES, tiny_corpus, tiny_dataset, tiny_recipe, tiny_train_recipe
from tests.training import assert_same_tensors


def watched(scenario: Scenario, root: Path, *, is_synced: bool = True) -> Disk:
    """Have a writer act in an empty folder; returns the disk, with what cuts of it permit."""
    root.mkdir()
    scenario.prepare(root)
    disk = Disk(root)
    with disk.watching(is_synced=is_synced):
        scenario.act(root)
    return disk


def check_end(disk: Disk) -> None:
    """Fail if a cut after the end could take anything away."""
    after = everything_in(disk.root)
    for state in disk.states_now():
        assert sorted(seen_of(state)) == after
        for path, content in seen_of(state).items():
            assert content is None or content == (disk.root / path).read_bytes()


def check_cuts(disk: Disk, scenario: Scenario, folder: Path) -> None:
    """Fail unless every cut leaves the old or the new, and trying again then ends well."""
    after = everything_in(disk.root)
    for number, state in enumerate(with_most_left(disk.states)):
        root = restore(state, folder / str(number))
        scenario.check(root)
        scenario.act(root)
        scenario.check(root)
        assert everything_in(root) == after


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_power_cut_leaves_the_old_or_the_new_and_the_next_try_succeeds(
    scenario: Scenario, tmp_path: Path
) -> None:
    disk = watched(scenario, tmp_path / "watched")
    check_end(disk)
    check_cuts(disk, scenario, tmp_path)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_power_cut_during_preprocessing_leaves_no_dataset_or_a_complete_one(
    overwrite: bool, tmp_path: Path
) -> None:
    sizes = (4, len(TRAIN_LINES))
    for size in sizes:
        (tmp_path / f"corpus{size}").mkdir()

    def preprocess(root: Path, size: int) -> None:
        recipe = tiny_recipe(*tiny_corpus(tmp_path / f"corpus{size}", TRAIN_LINES[:size]))
        prepare(recipe, root / "data", workers=1, overwrite=True, reporter=SILENT)

    def check(root: Path) -> None:
        if overwrite or (root / "data").exists():
            dataset = Dataset.open(root / "data")
            verify_files(root / "data", dataset.manifest)
            assert len(dataset.train[0]) in sizes

    scenario = Scenario(
        prepare=lambda root: preprocess(root, sizes[0]) if overwrite else None,
        act=lambda root: preprocess(root, sizes[1]),
        check=check,
    )
    disk = watched(scenario, tmp_path / "watched")
    check_end(disk)
    check_cuts(disk, scenario, tmp_path)


@pytest.mark.sampled
def test_training_after_a_power_cut_ends_as_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first save of a run, the second, and one that others give way to."""
    data = tiny_dataset(tmp_path)
    recipe = tiny_train_recipe(max_updates=3, dropout=0.1)
    recipe = replace(
        recipe,
        checkpoints=CheckpointConfig(save_every=1, keep=1),
        validation=replace(recipe.validation, validate_every=2, validate_metrics="none"),
        search=SearchConfig(),
        logging=LoggingConfig(log_every=3),
    )
    disk = watched(
        Scenario(lambda _: None, lambda root: train(recipe, data, root / "run"), lambda _: None),
        tmp_path / "watched",
    )
    expected = end_of(disk.root / "run")
    states = with_most_left(disk.states)
    assert len(states) > 20
    for number, state in enumerate(sample(states, 7)):
        run = restore(state, tmp_path / str(number)) / "run"
        capsys.readouterr()
        train(recipe, data, run)
        assert "is skipped" not in capsys.readouterr().err
        assert_same_tensors(end_of(run), expected)
        assert [path.name for path in run.rglob(".*")] == []


def end_of(run: Path) -> dict[str, torch.Tensor]:
    """Return the last parameters of a run, and what it found in each validation."""
    last = RunFolder(run).last()
    assert last is not None
    validations = MetricsLog(run / "metrics.jsonl").validations()
    found = {f"validation {one.update}": torch.tensor(one.nll) for one in validations}
    return {**read_tensors(last), **found}


# ---------------------------------------------------------------------------- these tests can fail


@pytest.mark.parametrize(
    "name", ["a new folder", "a folder that replaces another", "a pointer", "a file that grows"]
)
def test_a_writer_whose_syncs_are_in_vain_is_found(name: str, tmp_path: Path) -> None:
    disk = watched(SCENARIOS[name], tmp_path / "watched", is_synced=False)
    with pytest.raises(AssertionError):
        check_end(disk)
    with pytest.raises((AssertionError, DamagedError)):
        check_cuts(disk, SCENARIOS[name], tmp_path)


def test_of_a_file_that_grows_only_what_was_synced_is_certain(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"12\n")
    disk = Disk(tmp_path)
    with disk.watching(is_synced=True), (tmp_path / "log").open("ab") as stream:
        stream.write(b"34\n")
    found = {state["log"] for state in disk.states}
    assert found == {b"12\n", b"12\n3", b"12\n\0\0\0", b"12\n34\n"}
