"""The harness does what other tests rely on."""

import os
from pathlib import Path

import pytest

from tests.faults.harness import Fault, fault_points, injected, run_in_child
from tests.folders import names_in


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir()


def test_a_kill_comes_before_the_change(tmp_path: Path) -> None:
    outcome = run_in_child(lambda: make(tmp_path, "a", "b", "c"), Fault("kill", 2))
    assert outcome.is_killed
    assert names_in(tmp_path) == ["a"]


@pytest.mark.parametrize(("mode", "told"), [("enospc", "No space left"), ("eio", "Input/output")])
def test_an_error_comes_instead_of_the_change(mode: str, told: str, tmp_path: Path) -> None:
    outcome = run_in_child(lambda: make(tmp_path, "a", "b", "c"), Fault(mode, 3))
    assert not outcome.is_killed
    assert outcome.exception.startswith("OSError: ")
    assert told in outcome.exception
    assert names_in(tmp_path) == ["a", "b"]


def test_without_a_fault_nothing_but_the_count_differs(tmp_path: Path) -> None:
    assert fault_points(lambda: make(tmp_path, "a", "b", "c")) == range(1, 4)
    assert names_in(tmp_path) == ["a", "b", "c"]


def test_files_that_are_opened_to_read_are_no_change(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    fault, mkdir = Fault("count", 0), os.mkdir
    with injected(fault, is_synced=False):
        os.close(os.open(tmp_path / "file", os.O_RDONLY))
        assert fault.num_changes == 0
        os.close(os.open(tmp_path / "file", os.O_WRONLY))
        assert fault.num_changes == 1
    assert os.mkdir is mkdir
