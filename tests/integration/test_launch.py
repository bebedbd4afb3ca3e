"""`nmtkit train --devices 2` starts the ranks itself, and looks after them."""

import getpass
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from nmtkit.checkpoint import RunFolder
from nmtkit.model_path import read_tensors
from tests.tiny import tiny_dataset

TIMEOUT_S = 120
LISTENING = "0A"
SETTINGS = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 24 --max-tokens 12 --warmup-updates 4 --save-every 5 --validate-every 0 "
    "--log-every 5 --device cpu"
)

IMPATIENT = """
from torch.distributed.elastic.multiprocessing.api import SubprocessContext
close = SubprocessContext._close
SubprocessContext._close = lambda self, death_sig, timeout: close(self, death_sig, timeout=1)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_dataset(tmp_path_factory.mktemp("corpus"))


def start(data: Path, run: Path, *settings: str, code: str = "") -> subprocess.Popen[bytes]:
    """Train in a process of its own, in which, and in its ranks, some code is run first."""
    if code:
        hooks = run.with_name("hooks")
        hooks.mkdir(exist_ok=True)
        (hooks / "sitecustomize.py").write_text(code, encoding="utf-8")
        path = f"{hooks}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "nmtkit_cli", "train", str(data), "--out", str(run)]
    return subprocess.Popen(
        [*command, *SETTINGS.split(), *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path} if code else None,
    )


def end(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, talk = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, talk.decode()


def parameters(run: Path) -> torch.Tensor:
    folder = RunFolder(run).last()
    assert folder is not None
    return torch.cat([tensor.flatten() for tensor in read_tensors(folder).values()])


def wait_for_checkpoint(run: Path, update: int) -> None:
    wait_for((run / "checkpoints" / f"{update:08}" / "manifest.json").exists)


def wait_for(is_there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_there():
        assert time.monotonic() < deadline, "what was waited for has not come"
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


def is_running(pid: int) -> bool:
    """Tell whether a process is there, and not only until whoever adopted it looks at its end."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def environment(pid: int) -> bytes:
    return b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0"


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    code, talk = end(start(data, run, "--max-updates", "400", "--devices", "2"))
    assert code == 0, talk
    assert "ranks=2" in talk
    assert talk.count("event=start") == 1
    assert_only_nmtkit_talks(talk)
    return run


def assert_only_nmtkit_talks(talk: str) -> None:
    assert not re.search(r"torch|Traceback|gloo|terminate", talk), talk


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
    ("number", "code"),
    [(signal.SIGTERM, 75), (signal.SIGUSR1, 75), (signal.SIGHUP, 75), (signal.SIGINT, 130)],
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
    assert_only_nmtkit_talks(talk)


def holds_signals_back(process: int) -> bool:
    """Tell whether a process is in the seconds in which it imports torch."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    blocked = re.search(r"^SigBlk:\s*([0-9a-f]+)$", status, re.M)
    return blocked is not None and bool(int(blocked[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize(
    ("devices", "moment"),
    [
        ("1", holds_signals_back),
        ("2", holds_signals_back),
        ("2", lambda launcher: len(list(children(launcher))) == 2),
    ],
)
def test_a_signal_while_processes_start_stops_them_in_order(
    devices: str, moment: Callable[[int], bool], data: Path, tmp_path: Path
) -> None:
    process = start(data, tmp_path / "run", "--max-updates", "1000000", "--devices", devices)
    wait_for(lambda: moment(process.pid))
    process.send_signal(signal.SIGTERM)
    code, talk = end(process)
    assert code == 75, talk
    assert "error: stopped by SIGTERM before its first update" in talk
    assert_only_nmtkit_talks(talk)


def test_a_signal_while_ranks_are_started_again_stops_them_in_order(
    data: Path, tmp_path: Path
) -> None:
    process = start(data, tmp_path, "--max-updates", "1000000", "--devices", "2")
    wait_for_checkpoint(tmp_path, 5)
    os.kill(rank_process(process.pid, 1), signal.SIGKILL)
    wait_for_restart(process)
    process.send_signal(signal.SIGTERM)
    code, talk = end(process)
    assert code == 75, talk
    assert "error: stopped by SIGTERM after update" in talk


def wait_for_restart(launcher: subprocess.Popen[bytes]) -> None:
    assert launcher.stderr is not None
    told = b""
    while b"starting all ranks again" not in told:
        told = launcher.stderr.readline()
        assert told


def test_a_rank_that_hangs_is_killed_when_another_is_lost(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(data, run, "--max-updates", "1000000", "--devices", "2", code=IMPATIENT)
    wait_for_checkpoint(run, 5)
    hung, lost = (rank_process(process.pid, rank) for rank in range(2))
    os.kill(hung, signal.SIGSTOP)
    os.kill(lost, signal.SIGKILL)
    wait_for_restart(process)
    process.send_signal(signal.SIGTERM)
    code, talk = end(process)
    assert code == 75, talk


def test_a_hangup_that_is_ignored_as_by_nohup_stops_nothing(data: Path, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process = start(data, tmp_path, "--max-updates", "1000000", "--devices", "2")
    signal.signal(signal.SIGHUP, before)
    wait_for_checkpoint(tmp_path, 5)
    for pid in (process.pid, *children(process.pid)):
        os.kill(pid, signal.SIGHUP)
    last = RunFolder(tmp_path).last()
    assert last is not None
    wait_for_checkpoint(tmp_path, int(last.name) + 50)
    process.send_signal(signal.SIGTERM)
    code, talk = end(process)
    assert code == 75, talk


def test_ranks_end_with_their_launcher_and_the_same_command_goes_on(
    data: Path, whole: Path, tmp_path: Path
) -> None:
    process = start(data, tmp_path, "--max-updates", "400", "--devices", "2")
    wait_for_checkpoint(tmp_path, 20)
    ranks = [rank_process(process.pid, rank) for rank in range(2)]
    process.kill()
    process.communicate()
    wait_for(lambda: not any(is_running(rank) for rank in ranks))
    code, talk = end(start(data, tmp_path, "--max-updates", "400", "--devices", "2"))
    assert code == 0, talk
    assert torch.equal(parameters(tmp_path), parameters(whole))


def test_the_launcher_waits_for_a_save_that_takes_longer_than_its_patience(
    data: Path, tmp_path: Path
) -> None:
    slow_save = """
import time
import nmtkit.checkpoint
save = nmtkit.checkpoint.RunFolder.save
def save_slowly(self, snapshot):
    time.sleep(4)
    save(self, snapshot)
nmtkit.checkpoint.RunFolder.save = save_slowly
"""
    run = tmp_path / "run"
    settings = ("--max-updates", "1000000", "--save-every", "1000000", "--devices", "2")
    process = start(data, run, *settings, code=slow_save + IMPATIENT)
    wait_for(lambda: (run / "metrics.jsonl").exists())
    process.send_signal(signal.SIGUSR1)
    code, talk = end(process)
    assert code == 75, talk
    assert parameters(run).isfinite().all()


def test_the_store_of_the_ranks_listens_on_the_loopback_interface_alone(
    data: Path, tmp_path: Path
) -> None:
    process = start(data, tmp_path, "--max-updates", "1000000", "--devices", "2")
    wait_for_checkpoint(tmp_path, 5)
    places = [places_of_listeners(pid) for pid in (process.pid, *children(process.pid))]
    process.send_signal(signal.SIGTERM)
    end(process)
    assert places[0]
    assert {address for found in places for address in found} == {"0100007F"}


def places_of_listeners(pid: int) -> list[str]:
    """Return the addresses, as the kernel writes them, on which a process waits for others."""
    files = (str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir())
    sockets = {file.removeprefix("socket:[").removesuffix("]") for file in files}
    tables = (Path(f"/proc/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return [row[1].partition(":")[0] for row in rows if row[3] == LISTENING and row[9] in sockets]


def test_an_error_of_the_ranks_is_told_once_with_its_exit_code(data: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"not a run")
    code, talk = end(start(data, tmp_path, "--max-updates", "5", "--devices", "2"))
    assert code == 2
    (line,) = talk.splitlines()
    assert "is not the folder of a run" in line


def test_arguments_reach_the_ranks_as_they_were_typed(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "$local_rank$$${local_rank}"
    run.mkdir()
    (run / "other").write_bytes(b"not a run")
    code, talk = end(start(data, run, "--max-updates", "5", "--devices", "2"))
    assert code == 2
    assert str(run) in talk
