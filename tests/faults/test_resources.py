"""Real limits of the operating system, size of files and memory; places closed to writing."""

import errno
import json
import os
import resource
import struct
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from nmtkit.errors import ResourceError
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.storage.checkpoint import list_checkpoints
from nmtkit.storage.model_folder import load_tensors
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training import trainer
from nmtkit.training.run import train
from tests.faults.harness import Fault, run_in_child
from tests.faults.moments import in_update
from tests.faults.results import result_of
from tests.folders import limit_file_size, refusing
from tests.messages import refuses
from tests.tiny import tiny_train_recipe

RECIPE = tiny_train_recipe(max_updates=6, dropout=0.1)
MAX_FILE_BYTES = 10_000
MORE_MEMORY_BYTES = 200 * 2**20


def test_a_disk_that_is_full_for_a_while_does_not_end_training(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train(RECIPE, data, tmp_path / "undisturbed")
    run = tmp_path / "run"

    def train_while_it_is_full() -> None:
        full, free = partial(limit_file_size, MAX_FILE_BYTES), partial(limit_file_size, -1)
        with in_update(2, full), in_update(6, free):
            train(RECIPE, data, run)

    outcome = run_in_child(train_while_it_is_full, Fault("count", 0))
    assert outcome.exception == ""
    assert capfd.readouterr().err.count("not saved, training continues") >= 2
    assert result_of(run) == result_of(tmp_path / "undisturbed")


@pytest.mark.parametrize("save_minutes", [0, 10], ids=["at once", "at the end"])
def test_a_disk_that_is_full_for_good_ends_training_and_loses_nothing(
    save_minutes: float, data: Path, tmp_path: Path
) -> None:
    train(RECIPE, data, tmp_path / "undisturbed")
    run = tmp_path / "run"
    recipe = replace(RECIPE, checkpoints=replace(RECIPE.checkpoints, save_minutes=save_minutes))

    def train_while_it_fills() -> None:
        with in_update(3, partial(limit_file_size, MAX_FILE_BYTES)):
            train(recipe, data, run)

    outcome = run_in_child(train_while_it_fills, Fault("count", 0))
    assert outcome.exception.startswith(f"ResourceError: {run}/checkpoints/0000000"), outcome
    assert "File too large; choose a place where files may grow larger" in outcome.exception
    assert [one.update for one in list_checkpoints(RunFolder(run))] in ([1, 2], [1])
    last_logged = max(record.update for record in MetricsLog(run / "metrics.jsonl").records())
    assert (last_logged == 6) == (save_minutes > 0)
    train(RECIPE, data, run)
    assert result_of(run) == result_of(tmp_path / "undisturbed")


def test_a_folder_that_cannot_be_written_to_is_an_error_before_any_update(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(*_: object) -> int:
        pytest.fail("an update was begun")

    monkeypatch.setattr(trainer, "micro_batch_seed", compute)
    monkeypatch.setattr(os, "mkdir", refusing(errno.EROFS))
    with refuses(ResourceError, f"run {os.strerror(errno.EROFS)}"):
        train(RECIPE, data, tmp_path / "run")


# ---------------------------------------------------------------- files that ask for all the memory


def safetensors(header: object, num_bytes: int = 0, length: int | None = None) -> bytes:
    """Return a file with a header of any content, which may lie about its length."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(num_bytes)


def tensor(shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}


BOMBS = {
    "a header of 2^63 bytes": safetensors({}, length=2**63),
    "a header longer than the file": safetensors({}, length=10**6),
    "a header of more than 100 MB": safetensors({}, num_bytes=10**5, length=10**8 + 1),
    "a shape of 2^62 numbers": safetensors({"a": tensor([2**31, 2**31], 0, 4)}, 4),
    "a shape whose product is 2^64": safetensors({"a": tensor([2**32, 2**32], 0, 0)}),
    "a tensor beyond the end": safetensors({"a": tensor([2**30], 0, 2**32)}, 4),
    "tensors that share their bytes": safetensors(
        {str(number): tensor([1000], 0, 4000) for number in range(10**4)}, 4000
    ),
    "names nested 100000 deep": struct.pack("<Q", 10**5) + b"[" * 10**5,
}


def memory_in_use() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS)
def test_a_file_that_asks_for_more_memory_than_there_is_is_damaged(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(content)
    limit = memory_in_use() + MORE_MEMORY_BYTES

    def read() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        load_tensors(tmp_path / "file")

    outcome = run_in_child(read, Fault("count", 0))
    assert outcome.exception.startswith(f"DamagedError: {tmp_path / 'file'}: damaged ("), outcome
