"""A writer that ends, or fails, before any one of its changes leaves the old or the new, whole."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.faults.harness import CHANGES, Fault, fault_points, injected, run_in_child
from tests.faults.scenarios import SCENARIOS, Scenario, everything_in
from tests.thoroughness import sample


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("mode", ["kill", "enospc"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_it_leaves_the_old_or_the_new_and_the_next_try_ends_well(
    scenario: Scenario, mode: str, tmp_path: Path
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    with injected(Fault("count", 0), is_synced=False):
        scenario.prepare(before)
        shutil.copytree(before, after)
        points = fault_points(partial(scenario.act, after))
        assert len(points) > 3
        for point in sample(points, 7, mode):
            root = tmp_path / str(point)
            shutil.copytree(before, root)
            outcome = run_in_child(partial(scenario.act, root), Fault(mode, point))
            assert outcome.is_killed == (mode == "kill"), outcome
            assert not outcome.exception or outcome.exception.startswith("ResourceError: ")
            scenario.check(root)
            scenario.act(root)
            scenario.check(root)
            assert everything_in(root) == everything_in(after), point


# --------------------------------------------------------------------- what counts as a change

CALLS: dict[str, Callable[[Path, int], object]] = {
    "mkdir": lambda folder, _: (folder / "new").mkdir(),
    "rename": lambda folder, _: (folder / "file").rename(folder / "new"),
    "replace": lambda folder, _: (folder / "file").replace(folder / "new"),
    "unlink": lambda folder, _: (folder / "file").unlink(),
    "rmdir": lambda folder, _: (folder / "empty").rmdir(),
    "fsync": lambda _, descriptor: os.fsync(descriptor),
    "chmod": lambda folder, _: (folder / "file").chmod(0o600),
    "ftruncate": lambda _, descriptor: os.ftruncate(descriptor, 0),
    "open": lambda folder, _: (folder / "new").touch(),
}


def test_every_call_that_may_change_the_disk_is_tested() -> None:
    assert {*CALLS} == {*CHANGES}


@pytest.mark.parametrize("name", CALLS)
def test_each_change_is_counted_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"1")
    descriptor, fault = os.open(tmp_path / "file", os.O_RDWR), Fault("count", 0)
    with injected(fault, is_synced=True):
        CALLS[name](tmp_path, descriptor)
        os.close(descriptor)
    assert fault.num_changes == 1


def test_a_file_that_is_opened_to_read_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    fault = Fault("count", 0)
    with injected(fault, is_synced=True):
        os.close(os.open(tmp_path / "file", os.O_RDONLY))
    assert fault.num_changes == 0
