"""`nmtkit train --devices 2` starts the ranks itself, and looks after them."""

import getpass
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmtkit.checkpoint import RunFolder
from nmtkit.model_path import read_tensors
from tests.tiny import tiny_dataset

TIMEOUT_S = 120
SETTINGS = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 24 --max-tokens 12 --warmup-updates 4 --save-every 5 --validate-every 0 "
    "--log-every 5 --device cpu"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_dataset(tmp_path_factory.mktemp("corpus"))


def start(data: Path, run: Path, *settings: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nmtkit_cli", "train", str(data), "--out", str(run)]
    return subprocess.Popen(
        [*command, *SETTINGS.split(), *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def end(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, talk = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, talk.decode()


def parameters(run: Path) -> torch.Tensor:
    folder = RunFolder(run).last()
    assert folder is not None
    return torch.cat([tensor.flatten() for tensor in read_tensors(folder).values()])


def wait_for_checkpoint(run: Path, update: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not (run / "checkpoints" / f"{update:08}" / "manifest.json").exists():
        assert time.monotonic() < deadline, "no checkpoint was made"
        time.sleep(0.02)


def rank_process(launcher: int, rank: int) -> int:
    """Return the process of a rank that a launcher has started."""
    return next(pid for pid in children(launcher) if b"\0RANK=%d\0" % rank in environment(pid))


def children(parent: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                yield int(entry.name)


def environment(pid: int) -> bytes:
    return b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0"


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    code, talk = end(start(data, run, "--max-updates", "400", "--devices", "2"))
    assert code == 0, talk
    assert "ranks=2" in talk
    assert talk.count("event=start") == 1
    assert "torch" not in talk
    return run


def test_one_process_trains_the_same_model(data: Path, whole: Path, tmp_path: Path) -> None:
    code, talk = end(start(data, tmp_path, "--max-updates", "20"))
    assert code == 0, talk
    one, two = (
        [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
        for run in (tmp_path, whole)
    )
    assert [record["update"] for record in one] == [5, 10, 15, 20]
    for mine, other in zip(one, two, strict=False):
        assert mine["loss"] == pytest.approx(other["loss"], rel=1e-4)


def test_a_lost_rank_is_told_and_all_start_again_from_the_last_checkpoint(
    data: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = start(data, run, "--max-updates", "400", "--devices", "2")
    wait_for_checkpoint(run, 20)
    os.kill(rank_process(process.pid, 1), signal.SIGKILL)
    code, talk = end(process)
    assert code == 0, talk
    assert "rank 1 was killed by SIGKILL; starting all ranks again" in talk
    assert re.search(r"continuing after update [0-9]+", talk)
    assert torch.equal(parameters(run), parameters(whole))
    left = {path.name for path in temporary.iterdir()}
    assert left <= {f"torchinductor_{getpass.getuser()}"}, left  # a cache of torch


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 75), (signal.SIGUSR1, 75), (signal.SIGINT, 130)]
)
def test_a_signal_to_the_launcher_stops_all_after_saving(
    number: signal.Signals, code: int, data: Path, tmp_path: Path
) -> None:
    process = start(data, tmp_path, "--max-updates", "1000000", "--devices", "2")
    wait_for_checkpoint(tmp_path, 5)
    process.send_signal(number)
    found, talk = end(process)
    assert found == code, talk
    (update,) = re.findall(rf"error: stopped by {number.name} after update ([0-9]+)", talk)
    last = RunFolder(tmp_path).last()
    assert last is not None
    assert int(last.name) == int(update)
    assert "Traceback" not in talk


def test_an_error_of_the_ranks_is_told_once_with_its_exit_code(data: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"not a run")
    code, talk = end(start(data, tmp_path, "--max-updates", "5", "--devices", "2"))
    assert code == 2
    (line,) = talk.splitlines()
    assert "is not the folder of a run" in line
