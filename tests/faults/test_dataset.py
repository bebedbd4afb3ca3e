"""Preprocessing that ends, or fails, before any one of its changes leaves nothing, or all."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.binary import Dataset
from nmtkit.data.prepare import prepare
from nmtkit.errors import ConfigError
from nmtkit.progress.counting import SILENT
from nmtkit.storage.manifest import verify_files
from tests.faults.harness import Fault, fault_points, run_in_child
from tests.thoroughness import IS_THOROUGH, sample
from tests.tiny import TRAIN_LINES, tiny_corpus, tiny_recipe

OLD_LINES, NEW_LINES = TRAIN_LINES[:4], TRAIN_LINES
NUM_FILES = 12
Recipes = tuple[PreprocessRecipe, PreprocessRecipe]


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Recipes:
    """Return the recipes of an older and a newer dataset, of different sizes."""
    folders = [tmp_path_factory.mktemp(name) for name in ("old", "new")]
    filters = FilterConfig(drop_duplicates=True)  # which writes more for a while
    old, new = (
        replace(tiny_recipe(*tiny_corpus(folder, lines)), filters=filters)
        for folder, lines in zip(folders, (OLD_LINES, NEW_LINES), strict=True)
    )
    return old, new


def preparing(recipe: PreprocessRecipe, out: Path, *, overwrite: bool) -> Callable[[], object]:
    def action() -> None:
        with paths_opened_through_os():
            prepare(recipe, out, workers=1, overwrite=overwrite, reporter=SILENT)

    return action


@contextmanager
def paths_opened_through_os() -> Iterator[None]:
    """Have `Path.open` call `os.open` before it writes, where the harness sees it."""
    open_path: Callable[..., IO[Any]] = Path.open

    def open_through_os(path: Path, mode: str = "r", *arguments: Any, **keywords: Any) -> IO[Any]:
        if mode[0] in "wa":
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        return open_path(path, mode, *arguments, **keywords)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "open", open_through_os)
        yield


def pairs_in(folder: Path) -> int:
    """Open a dataset and compare every byte of it; returns how many pairs it trains with."""
    dataset = Dataset.open(folder)
    verify_files(folder, dataset.manifest)
    return sum(len(shard) for shard in dataset.train)


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["kill", "enospc"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_it_leaves_the_old_or_the_new_and_the_next_try_ends_well(
    overwrite: bool, mode: str, recipes: Recipes, tmp_path: Path
) -> None:
    before, counted = tmp_path / "before", tmp_path / "counted"
    before.mkdir()
    if overwrite:
        preparing(recipes[0], before / "data", overwrite=False)()
    shutil.copytree(before, counted)
    points = fault_points(preparing(recipes[1], counted / "data", overwrite=overwrite))
    assert len(points) > 2 * NUM_FILES  # each is opened, and synced
    left_by_fault = []
    for point in sample(points, 7, mode):
        out = tmp_path / str(point) / "data"
        shutil.copytree(before, out.parent)
        action = preparing(recipes[1], out, overwrite=overwrite)
        outcome = run_in_child(action, Fault(mode, point))
        left = pairs_in(out) if overwrite or out.exists() else 0
        if outcome.is_killed or outcome.exception:
            left_by_fault.append(left)
        else:
            assert left == len(NEW_LINES), point
        assert outcome.is_killed == (mode == "kill"), outcome
        assert not outcome.exception or outcome.exception.startswith(f"ResourceError: {out}: No ")
        # A user who tries again is told that there is a dataset already, if there is.
        with nullcontext() if overwrite or not left else suppress(ConfigError):
            action()
        assert pairs_in(out) == len(NEW_LINES)
        assert [path.name for path in out.parent.iterdir()] == ["data"], point
    # One change, the renaming, is all that parts the old from the new.
    old = len(OLD_LINES) if overwrite else 0
    num_old = left_by_fault.count(old)
    num_new = left_by_fault.count(len(NEW_LINES))
    assert left_by_fault == [old] * num_old + [len(NEW_LINES)] * num_new
    if IS_THOROUGH:
        assert num_old > 2 * NUM_FILES
        assert num_new > 0
