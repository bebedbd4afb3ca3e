"""The benchmarks of a GPU run on a CPU as well, in small, and what they print is consistent."""

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from benchmarks.gpu import __main__ as runner
from benchmarks.gpu import attention, decoding, limits, ranks, updates

MAINS = {
    "updates": updates.main,
    "attention": attention.main,
    "decoding": decoding.main,
    "limits": limits.main,
    "ranks": ranks.main,
}
LENGTHS = [5, 10]
"""Of sentences in a dry run."""

BFLOAT16_STEP = 2**-8

Rows = list[dict[str, Any]]
DryRun = Callable[[str], Rows]


@pytest.fixture
def dry_run(capsys: pytest.CaptureFixture[str]) -> DryRun:
    def run(part: str) -> Rows:
        MAINS[part](["--dry-run"])
        *table, line = capsys.readouterr().out.split("\n")[1:-1]
        printed = json.loads(line)
        assert (table[0], printed["device"]) == (printed["table"], "cpu")
        assert len(table) == len(printed["rows"]) + 2  # the title and the header
        return list(printed["rows"])

    return run


def columns(rows: Rows) -> list[str]:
    (names,) = {tuple(row) for row in rows}
    return list(names)


def test_the_parts_are_those_that_all_run_together() -> None:
    assert list(runner.PARTS) == list(MAINS)
    assert sum(runner.PARTS.values()) <= 30


def test_updates_learn_the_same_whatever_changes_their_speed_alone(dry_run: DryRun) -> None:
    rows = dry_run("updates")
    assert columns(rows) == [
        *("way", "length", "compiled", "opened_s", "first_s", "ms", "host_ms"),
        *("target_tokens_s", "loss", "norm"),
    ]
    losses = {(row["way"], row["length"]): row["loss"] for row in rows}
    assert [(row["way"], row["length"]) for row in rows] == [
        (way, length)
        for way in updates.WAYS
        if way != "compiled"
        for length in (LENGTHS if way in updates.BY_LENGTH else LENGTHS[-1:])
    ]
    for length in LENGTHS:
        # Rounding to bfloat16 is off by half a step of each number, and by less in the mean.
        exact = pytest.approx(losses["float32", length], rel=BFLOAT16_STEP)
        assert losses["eager", length] == losses["padded", length] == exact
    alike = {losses[way, LENGTHS[-1]] for way in ("EMA", "recompute", "deterministic")}
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


def test_attention_is_the_same_by_any_kernel(dry_run: DryRun) -> None:
    rows = dry_run("attention")
    assert columns(rows) == ["way", "length", "forward_ms", "both_ms", "error", "equal_bits"]
    assert {row["way"] for row in rows} == {"torch's choice, mask", "plain products"}
    for row in rows:
        assert 0 < row["error"] < BFLOAT16_STEP
        assert row["equal_bits"]


def test_searches_take_one_step_per_token(dry_run: DryRun) -> None:
    rows = dry_run("decoding")
    assert columns(rows) == ["way", "sentences", "target_tokens_s", "step_ms"]
    assert [(row["way"], row["sentences"]) for row in rows] == [
        (way, size) for way in decoding.WAYS for size in (1, 3)
    ]
    for row in rows:
        per_step = row["target_tokens_s"] * row["step_ms"] / 1e3
        assert per_step == pytest.approx(row["sentences"], rel=1e-3)  # of five printed digits


def test_what_must_hold_holds_on_a_cpu(dry_run: DryRun) -> None:
    rows = dry_run("limits")
    assert columns(rows) == ["check", "result", "holds"]
    assert all(row["holds"] for row in rows)
    results = {row["check"]: row["result"] for row in rows}
    assert results["equal runs have equal bits by default"]
    assert [results[name] for name in results if name.startswith("micro-batches")] == [1, 1, 1]


def test_a_limit_that_does_not_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "equal_bits", lambda _: iter(()))
    monkeypatch.setattr(limits, "compiled_graphs", lambda *_: iter(()))
    monkeypatch.setattr(limits, "num_micro_batches", lambda _: 2)
    with pytest.raises(SystemExit, match="does not hold: micro-batches that a new run decides for"):
        limits.main(["--dry-run"])


def test_one_rank_exchanges_its_own_gradients(dry_run: DryRun) -> None:
    (row,) = dry_run("ranks")
    assert list(row) == ["compile", "backend", "difference", "ms", "ms_alone"]
    assert (row["backend"], row["difference"]) == ("gloo", 0)


def test_gradients_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "measure", lambda *_: {"difference": math.nan})
    with pytest.raises(SystemExit, match="gradients differ by nan"):
        ranks.main(["--dry-run"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("main", [runner.main, *MAINS.values()])
def test_without_a_gpu_one_line_says_what_is_missing(
    main: Callable[[Sequence[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^benchmarks\.gpu: .* finds no usable GPU; .*$"):
        main([])
    assert capsys.readouterr().out == ""


def test_parts_that_fail_or_take_too_long_do_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = {"broken": "import sys; sys.exit(3)", "slow": "import time; time.sleep(60)", "well": ""}
    monkeypatch.setattr(runner, "PARTS", dict(zip(codes, (1.0, 1e-3, 1.0), strict=True)))
    monkeypatch.setattr(
        runner,
        "module",
        lambda name, _: [sys.executable, "-c", codes[name.removeprefix("benchmarks.gpu.")]],
    )
    with pytest.raises(SystemExit, match="not complete: broken, slow"):
        runner.main(["--dry-run"])
    rows = json.loads(capsys.readouterr().out.split("\n")[-2])["rows"]
    assert [row["outcome"] for row in rows] == ["exit code 3", "too slow", "ok"]
