"""The harness does what other tests rely on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.harness import Fault, fault_points, injected, run_in_child
from tests.folders import names_in

HARNESS = Path(__file__).with_name("harness.py")
CHANGES = """
import os, sys

def change():
    for name in sys.argv[1:]:
        os.mkdir(name)
"""


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


def harness(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    (folder / "changes.py").write_text(CHANGES)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, str(HARNESS), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_can_be_killed_by_hand(tmp_path: Path) -> None:
    ended = harness(tmp_path, "kill@2", "--", "changes:change", "a", "b", "c")
    assert ended.returncode == -signal.SIGKILL
    assert "a" in names_in(tmp_path)
    assert not {"b", "c"}.intersection(names_in(tmp_path))


def test_the_changes_of_a_command_can_be_counted_by_hand(tmp_path: Path) -> None:
    ended = harness(tmp_path, "count@0", "--", "changes:change", "a", "b", "c")
    assert ended.returncode == 0
    assert "changes: 3" in ended.stderr
    assert {"a", "b", "c"}.issubset(names_in(tmp_path))


def test_a_wrong_command_line_is_an_error(tmp_path: Path) -> None:
    ended = harness(tmp_path, "stab@2", "--", "changes:change")
    assert ended.returncode == 1
    assert ended.stderr.startswith("usage: harness.py count|kill|enospc|eio@K -- ")
