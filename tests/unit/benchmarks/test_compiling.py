"""The batch that warms up counts in no figure."""

import json
import sys

import pytest
import torch

from benchmarks import compiling
from nmtkit.data.batch import Batch

CPU = torch.device("cpu")


def test_the_first_batch_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = {"eager": [9.0, 2.0, 4.0], "compiled": [1.0, 1.0, 1.0]}
    made = iter(seconds)

    def seconds_of(objective: str, _batch: Batch) -> float:
        return seconds[objective].pop(0)

    monkeypatch.setattr(compiling, "set_up", lambda _runtime: CPU)
    monkeypatch.setattr(compiling, "fresh_objective", lambda *_: next(made))
    monkeypatch.setattr(compiling, "choose_execution", lambda recipe, *_: recipe.engine.compile)
    monkeypatch.setattr(compiling, "seconds_of", seconds_of)
    monkeypatch.setattr(sys, "argv", ["compiling", "--batches", "2", "--tokens", "100"])
    compiling.main()
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["gains"] == {"eager": 1.0, "compiled": 3.0}
