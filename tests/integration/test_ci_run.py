"""`.ci/run` on a small project: what it runs, and where."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.recipes import ROOT

MAKEFILE = """\
test test-system check:
\t@echo "$@ `pwd` $$NMTKIT_TEST_DATA `ls`"
clean:
\t@rm -rf .venv
"""


@pytest.mark.parametrize(("is_git", "data"), [(True, "shared/data"), (False, "own")])
def test_a_clone_in_an_odd_folder_is_tested_with_the_data_of_the_original(
    tmp_path: Path, is_git: bool, data: str
) -> None:
    project, scratch = tmp_path / "project", tmp_path / "scratch"
    for folder in (project / ".ci", scratch, tmp_path / data):
        folder.mkdir(parents=True)
    (project / "Makefile").write_text(MAKEFILE)
    (project / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    environment = {name: os.environ[name] for name in os.environ if name != "NMTKIT_TEST_DATA"}
    if data == "own":
        environment["NMTKIT_TEST_DATA"] = str(tmp_path / data)
    if is_git:
        git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.com")
        for line in ("init -q", "add .", "commit -q -m x"):
            subprocess.run([*git, *line.split()], cwd=project, check=True)
        (project / "uncommitted").touch()
    else:
        (project / ".venv").mkdir()
    done = subprocess.run(
        ["sh", ".ci/run"],
        cwd=project,
        env={**environment, "TMPDIR": str(scratch)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    chores = ("test", "test-system", "check")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*chores]
    for line in lines:
        assert "/nmtkit \u00e9/nmtkit " in line
        assert line.endswith(f" {tmp_path / data} Makefile")
    assert not list(scratch.iterdir())
