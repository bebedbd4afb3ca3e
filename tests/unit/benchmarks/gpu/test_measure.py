"""Rows that were measured are printed whatever ends a part, and waits of the host are counted."""

import argparse
import json
import math
import warnings

import pytest
import torch

from benchmarks.gpu.measure import SYNCHRONIZATION, Table, read_options, seconds, synchronizations

CPU = torch.device("cpu")
OPTIONS = argparse.Namespace(device="cpu", tokens=5)


def test_rows_are_printed_as_they_come_and_as_json_even_after_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        with Table("speed", OPTIONS, width=5) as table:
            table.add({"way": "a", "tokens_s": 123456.0, "gpu_ms": math.nan})
            assert capsys.readouterr().out.split("\n")[1:] == [
                "speed",
                "way    tokens s   gpu ms",
                "a        123456        -",
                "",
            ]
            table.add({"way": "b", "tokens_s": 0.123456, "gpu_ms": None})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    row, line, _ = capsys.readouterr().out.split("\n")
    assert row.split() == ["b", "0.1235", "-"]
    printed = json.loads(line)
    assert (printed["table"], printed["tokens"], printed["device"]) == ("speed", 5, "cpu")
    assert printed["rows"] == [
        {"way": "a", "tokens_s": 123460.0, "gpu_ms": None},
        {"way": "b", "tokens_s": 0.12346, "gpu_ms": None},
    ]


def test_a_dry_run_changes_what_the_command_line_leaves_open() -> None:
    def read(arguments: str) -> tuple[str, int, str]:
        parser = argparse.ArgumentParser()
        parser.add_argument("--tokens", type=int, default=100)
        parser.add_argument("--shape", default="base")
        options = read_options(parser, arguments.split(), {"tokens": 3, "shape": "small"})
        return options.device, options.tokens, options.shape

    assert read("") == ("cuda", 100, "base")
    assert read("--dry-run") == ("cpu", 3, "small")
    assert read("--dry-run --tokens 7") == ("cpu", 7, "small")


def test_only_calls_after_the_warm_up_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def work() -> None:
        nonlocal now
        now += 100.0 if now < 200 else 2.0

    monkeypatch.setattr("time.perf_counter", lambda: now)
    assert seconds(work, CPU, num_calls=3, num_warm_up=2) == 2.0


def test_operations_that_wait_for_the_device_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[object] = []
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def work() -> None:
        for text in (SYNCHRONIZATION, "a prototype feature", SYNCHRONIZATION):
            warnings.warn(text, stacklevel=1)

    assert synchronizations(work) == 2
    assert modes == ["warn", 0]
