"""The benchmarks of a GPU run on a CPU as well, in small, and what they print is consistent."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from benchmarks.gpu import __main__ as runner
from benchmarks.gpu import budgets, decoding, limits, updates
from tests.recipes import ROOT

pytestmark = pytest.mark.thorough

MAINS = {
    "budgets": budgets.main,
    "updates": updates.main,
    "decoding": decoding.main,
    "limits": limits.main,
}


Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def dry_run() -> "subprocess.CompletedProcess[str]":
    """Run all parts in small, as users do."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", "--dry-run"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def tables(dry_run: "subprocess.CompletedProcess[str]") -> dict[str, Rows]:
    """Return the rows that were printed as JSON, by the name of the table."""
    printed = [json.loads(line) for line in dry_run.stdout.split("\n") if line.startswith("{")]
    return {table["table"]: table["rows"] for table in printed}


def columns(rows: Rows) -> list[str]:
    (names,) = {tuple(row) for row in rows}
    return list(names)


def test_all_parts_run_one_after_another(
    dry_run: "subprocess.CompletedProcess[str]", tables: dict[str, Rows]
) -> None:
    assert dry_run.returncode == 0, dry_run.stderr
    outcomes = {row["part"]: row["outcome"] for row in tables["parts"]}
    assert outcomes == dict.fromkeys(MAINS, "ok")


def test_what_must_hold_holds_on_a_cpu(tables: dict[str, Rows]) -> None:
    rows = tables["limits"]
    assert columns(rows) == ["check", "result", "holds"]
    assert all(row["holds"] for row in rows)
    results = {row["check"]: row["result"] for row in rows}
    assert results["equal runs have equal bits by default"]
    assert [results[name] for name in results if name.startswith("micro-batches")] == [1, 1, 1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("main", [runner.main, *MAINS.values()])
def test_without_a_gpu_one_line_says_what_is_missing(
    main: Callable[[Sequence[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^benchmarks\.gpu: .* finds no usable GPU; .*$"):
        main([])
    assert capsys.readouterr().out == ""
