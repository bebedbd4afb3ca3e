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
LENGTHS = [5, 10]
"""Of sentences in a dry run."""

BFLOAT16_STEP = 2**-8

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


def test_updates_learn_the_same_whatever_changes_their_speed_alone(tables: dict[str, Rows]) -> None:
    rows = tables["updates"]
    assert columns(rows) == [
        *("way", "length", "opened_s", "first_s", "ms", "host_ms"),
        *("target_tokens_s", "loss", "norm"),
    ]
    losses = {(row["way"], row["length"]): row["loss"] for row in rows}
    assert [(row["way"], row["length"]) for row in rows] == [
        (way, length)
        for way in updates.WAYS
        for length in (LENGTHS if way in updates.BY_LENGTH else LENGTHS[-1:])
    ]
    for length in LENGTHS:
        # Rounding to bfloat16 is off by half a step of each number, and by less in the mean.
        exact = pytest.approx(losses["float32", length], rel=BFLOAT16_STEP)
        assert losses["default", length] == exact
    alike = {
        losses[way, LENGTHS[-1]] for way in ("EMA", "activation checkpointing", "deterministic")
    }
    assert len(alike) == 1
    for row in rows:
        assert row["target_tokens_s"] * row["ms"] / 1e3 == pytest.approx(40, abs=8)  # of a batch


def test_a_way_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(updates.WAYS, "padded", updates.Way({"learning_rate": -1.0}))
    with pytest.raises(SystemExit, match="not measured: padded"):
        updates.main(["--dry-run", "--lengths", "5", "--ways", "padded", "window 16"])
    error, *_, line = capsys.readouterr().out.split("\n")[:-1]
    assert error.startswith("padded: learning_rate (-1.0)")
    assert [row["way"] for row in json.loads(line)["rows"]] == ["window 16"]


def test_updates_and_steps_are_compared_with_budgets(tables: dict[str, Rows]) -> None:
    rows = tables["budgets"]
    assert columns(rows) == ["work", "host_ms"]  # a CPU launches nothing
    assert [row["work"] for row in rows] == [*budgets.UPDATES, *budgets.STEPS]


def test_a_count_above_its_budget_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(budgets, "count", lambda *_: {"launches": 1105.0})
    with pytest.raises(SystemExit) as exceeded:
        budgets.main(["--dry-run", "--shape", "base"])
    assert str(exceeded.value) == (
        "benchmarks.gpu.budgets: exceeded: update, float32: 1105 launches, at most 1100"
    )
    assert "update, bfloat16" in capsys.readouterr().out


def test_searches_take_one_step_per_token(tables: dict[str, Rows]) -> None:
    rows = tables["beam search"]
    assert columns(rows) == ["way", "sentences", "target_tokens_s", "step_ms"]
    assert [(row["way"], row["sentences"]) for row in rows] == [
        (way, size) for way in decoding.WAYS for size in (1, 3)
    ]
    for row in rows:
        per_step = row["target_tokens_s"] * row["step_ms"] / 1e3
        assert per_step == pytest.approx(row["sentences"], rel=1e-3)  # of five printed digits


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
