"""The repository as a whole: its folders, its version, its pinned packages."""

import re
import stat
import tomllib
from fnmatch import fnmatch

from nmtkit import __version__
from tests.architecture.source_tree import ROOT

FOLDERS = {".ci", ".github", "benchmarks", "docs", "examples", "nmtkit", "nmtkit_cli", "tests"}


def ignored_patterns() -> list[str]:
    lines = (ROOT / ".gitignore").read_text("utf-8").split("\n")
    return [line.strip("/") for line in lines if line and not line.startswith("#")]


def test_the_top_level_holds_the_folders_that_the_design_names() -> None:
    patterns = [*ignored_patterns(), ".git"]
    found = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not any(fnmatch(path.name, pattern) for pattern in patterns)
    }
    assert found == FOLDERS


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert versions[0] == __version__


def test_every_package_that_is_needed_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=!~ ]", requirement)[0] for requirement in needed}
    lines = (ROOT / "constraints.txt").read_text("utf-8").split("\n")
    pinned = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pinned), pinned
    assert names <= {line.split("==")[0] for line in pinned}


def test_scripts_can_be_executed() -> None:
    for name in (".ci/run", "examples/demo/run.sh"):
        path = ROOT / name
        assert path.stat().st_mode & stat.S_IXUSR, name
        assert path.read_text("utf-8").startswith("#!/bin/sh\n")


def test_the_workflow_runs_the_script_with_versions_of_python_that_are_supported() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert re.findall(r"^ +- run: (.*)$", workflow, re.M) == [".ci/run"]
    assert re.search(r"^permissions:\n  contents: read\n\n", workflow, re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    matrix = re.search(r"python: \[(.*)\]", workflow)
    assert matrix
    assert {*re.findall(r"3\.\d+", matrix[1])} == {versions[0], versions[-1]}
    assert project["requires-python"] == f">={versions[0]}"
