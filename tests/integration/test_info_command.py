"""`nmtkit info` as a process, on a run of an earlier version."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.messages import refused

RUN = Path("tests/golden/formats/run")


def info(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nmtkit_cli", "info", *arguments],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


def test_a_run_is_described_without_loading_torch() -> None:
    process = info(str(RUN), environment={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rpartition("|")[2].strip() for line in process.stderr.splitlines()}
    lines = process.stdout.splitlines()
    assert lines[0] == "checkpoints    2, updates 300 to 600"
    assert lines[1].startswith("best           update 600, nll 3.8932, ")
    assert "checked        every file matches its hash" in lines
    assert "nmtkit.reporting.saved_model" in imported
    assert "torch" not in imported


@pytest.mark.parametrize("name", ["best", "last"])
def test_a_model_is_described_in_one_line_of_json(name: str) -> None:
    process = info(str(RUN / name), "--json", environment={})
    assert process.stderr == ""
    assert process.stdout.count("\n") == 1
    found = json.loads(process.stdout)
    assert found["path"] == str(RUN / "checkpoints" / (RUN / name).read_text().strip())
    assert found["manifest"]["update"] == 600


def test_options_of_the_other_uses_are_refused() -> None:
    process = info(str(RUN), "--check", environment={})
    refused(process, 2, "--check")
