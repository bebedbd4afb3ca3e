"""The result of a complete run, for comparison with an undisturbed one."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Result:
    """The parts of a run that must not depend on how often it was stopped.

    Attributes:
        hashes: of the last checkpoint's parameters and training state, and of the best one.
        losses: number and loss of each update.
        validations: update and loss of each.
        lines: the file with the lines of the best ones.
        leftovers: hidden files; there must be none.
    """

    hashes: tuple[str, ...]
    losses: list[tuple[int, float]]
    validations: list[tuple[int, float]]
    lines: bytes
    leftovers: list[str]


def result_of(run: Path) -> Result:
    """Read the result of a run, which logs each update."""
    folder = RunFolder(run)
    last, best = folder.last(), folder.best()
    assert last is not None
    assert best is not None
    files = [
        last / "model.safetensors",
        last.with_name(f"{last.name}.state") / "state.safetensors",
        best / "model.safetensors",
    ]
    validations = MetricsLog(folder.metrics_path).validations()
    records = [json.loads(line) for line in folder.metrics_path.read_bytes().splitlines()]
    return Result(
        hashes=tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files),
        losses=[(one["update"], one["loss"]) for one in records if one["event"] == "training"],
        validations=[(one.update, one.nll) for one in validations],
        lines=folder.validation_lines_path.read_bytes(),
        leftovers=[str(path) for path in run.rglob(".*")],
    )
