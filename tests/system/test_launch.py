"""Ranks of `nmtkit train --devices 2`: signals, lost and hanging ranks at critical moments."""

import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from nmtkit.storage.run_folder import RunFolder
from tests.launching import (
    WHOLE,
    assert_only_nmtkit_talks,
    children,
    end,
    in_signals,
    interrupt_twice,
    is_running,
    parameters,
    rank_processes,
    start,
    wait_for,
    wait_for_checkpoint,
    wait_for_restart,
)

pytestmark = pytest.mark.usefixtures("no_training_left")

LISTENING = "0A"
IMPATIENT = """
import nmtkit.training.launch
nmtkit.training.launch.STOP_TIMEOUT_S = 1.0
"""


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
    error = "" if number == signal.SIGINT else "error: "
    (update,) = re.findall(rf"nmtkit: {error}stopped by {number.name} after update ([0-9]+)", talk)
    last = RunFolder(tmp_path).last()
    assert last is not None
    assert int(last.name) == int(update)
    assert_only_nmtkit_talks(talk)


def holds_signals_back(process: int) -> bool:
    """Return whether a process is importing torch."""
    return in_signals(process, "SigBlk", signal.SIGTERM)


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
    assert re.search("error: stopped by SIGTERM,? before its (first update|processes were)", talk)
    assert_only_nmtkit_talks(talk)


def test_a_second_interrupt_does_not_wait_for_ranks_that_join(data: Path, tmp_path: Path) -> None:
    """One is stopped, as if it loaded PyTorch for ever; no signal would end either."""
    process = start(data, tmp_path / "run", "--max-updates", "1000000", "--devices", "2")
    ranks = rank_processes(process.pid)
    os.kill(ranks[1], signal.SIGSTOP)
    interrupt_twice(process.pid)
    code, talk = end(process)
    assert (code, talk.splitlines()[-1]) == (130, "nmtkit: interrupted")
    assert_only_nmtkit_talks(talk)
    wait_for(lambda: not any(map(is_running, ranks)))


def test_a_second_interrupt_ends_ranks_that_train(data: Path, tmp_path: Path) -> None:
    """The first asks for a save, which takes long; two that wait in a rank would be one."""
    slow_write = """
import os
import time
from nmtkit.training import checkpointing
from nmtkit.signals import StopRequest
write = checkpointing.write_checkpoint
def write_slowly(run, snapshot):
    time.sleep(3 * (snapshot.update > 5))
    write(run, snapshot)
checkpointing.write_checkpoint = write_slowly
handle = StopRequest._handle
def note_and_handle(request, number, frame):
    open(f"{__file__}.{os.environ['RANK']}", "w").close()
    handle(request, number, frame)
StopRequest._handle = note_and_handle
"""
    run = tmp_path / "run"
    settings = ("--max-updates", "1000000", "--save-every", "5", "--devices", "2")
    process = start(data, run, *settings, code=slow_write)
    wait_for_checkpoint(run, 5)
    ranks = rank_processes(process.pid)
    noted = [run.with_name("hooks") / f"sitecustomize.py.{rank}" for rank in range(2)]
    process.send_signal(signal.SIGINT)
    wait_for(lambda: all(path.exists() for path in noted))
    process.send_signal(signal.SIGINT)
    code, talk = end(process)
    assert code == 130, talk
    assert talk.count("nmtkit: ") == 1, talk
    assert_only_nmtkit_talks(talk)
    wait_for(lambda: not any(map(is_running, ranks)))


def test_a_rank_that_hangs_is_killed_when_another_is_lost(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(data, run, "--max-updates", "1000000", "--devices", "2", code=IMPATIENT)
    wait_for_checkpoint(run, 5)
    hung, lost = rank_processes(process.pid)
    os.kill(hung, signal.SIGSTOP)
    os.kill(lost, signal.SIGKILL)
    wait_for_restart(process)
    process.send_signal(signal.SIGTERM)
    code, talk = end(process)
    assert code == 75, talk


def test_a_hangup_ignored_by_nohup_does_not_stop_training(data: Path, tmp_path: Path) -> None:
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


def test_ranks_end_with_their_launcher_and_the_same_command_resumes(
    data: Path, whole: Path, tmp_path: Path
) -> None:
    process = start(data, tmp_path, *WHOLE)
    wait_for_checkpoint(tmp_path, 20)
    ranks = rank_processes(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not any(is_running(rank) for rank in ranks))
    code, talk = end(start(data, tmp_path, *WHOLE))
    assert code == 0, talk
    assert torch.equal(parameters(tmp_path), parameters(whole))


def test_the_launcher_waits_for_a_save_longer_than_its_timeout(data: Path, tmp_path: Path) -> None:
    slow_write = """
import time
from nmtkit.training import checkpointing
write = checkpointing.write_checkpoint
def write_slowly(run, snapshot):
    time.sleep(4)
    write(run, snapshot)
checkpointing.write_checkpoint = write_slowly
"""
    run = tmp_path / "run"
    settings = ("--max-updates", "1000000", "--save-every", "1000000", "--devices", "2")
    process = start(data, run, *settings, code=slow_write + IMPATIENT)
    wait_for(lambda: (run / "metrics.jsonl").exists())
    process.send_signal(signal.SIGUSR1)
    code, talk = end(process)
    assert code == 75, talk
    assert parameters(run).isfinite().all()


def test_the_store_of_the_ranks_listens_only_on_the_loopback_interface(
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
    """Return the addresses on which a process listens, in the kernel's notation."""
    files = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            files.append(str(entry.readlink()))
    sockets = {file.removeprefix("socket:[").removesuffix("]") for file in files}
    tables = (Path(f"/proc/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return [row[1].partition(":")[0] for row in rows if row[3] == LISTENING and row[9] in sockets]
