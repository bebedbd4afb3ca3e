"""The batch that warms up counts in nothing that is told."""

import json
import sys

import pytest
import torch

from benchmarks import techniques
from nmtkit.data.batch import Batch

CPU = torch.device("cpu")


def test_the_first_batch_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = {"plain": [9.0, 2.0, 4.0], "compiled": [1.0, 1.0, 1.0]}
    made = iter(seconds)

    def seconds_of(objective: str, _batch: Batch, *, is_padded: bool) -> float:
        assert not is_padded
        return seconds[objective].pop(0)

    monkeypatch.setattr(techniques, "set_up", lambda _runtime: CPU)
    monkeypatch.setattr(techniques, "fresh_objective", lambda *_: next(made))
    monkeypatch.setattr(techniques, "choose_execution", lambda recipe, *_: recipe.engine.compile)
    monkeypatch.setattr(techniques, "seconds_of", seconds_of)
    monkeypatch.setattr(sys, "argv", ["techniques", "--batches", "2", "--tokens", "100"])
    techniques.main()
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["gains"] == {"plain": 1.0, "compiled": 3.0}
