"""`nmtkit train --devices 2` as users start it: a launcher and its ranks."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from nmtkit.storage.run_folder import RunFolder
from tests.snapshots import read_tensors

TIMEOUT_S = 120
SETTINGS = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 24 --max-tokens 12 --warmup-updates 4 --save-every 5 --validate-every 0 "
    "--log-every 5 --device cpu"
)
WHOLE = ("--max-updates", "200", "--save-every", "20", "--devices", "2")
"""A run that takes long enough to be disturbed after its first checkpoint."""

_started: list[subprocess.Popen[bytes]] = []


BLOCK = "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"
UNBLOCK = "signal.pthread_sigmask(signal.SIG_SETMASK, before)"


def start(data: Path, run: Path, *settings: str, code: str = "") -> subprocess.Popen[bytes]:
    """Start training in a new process; `code` runs first in it and in its ranks."""
    if code:
        hooks = run.with_name("hooks")
        hooks.mkdir(exist_ok=True)
        # Threads that imports start would take the signals that the command blocks later.
        text = f"import signal\nbefore = {BLOCK}\n{code}\n{UNBLOCK}\n"
        (hooks / "sitecustomize.py").write_text(text, encoding="utf-8")
        path = f"{hooks}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "nmtkit_cli", "train", str(data), "--out", str(run)]
    process = subprocess.Popen(
        [*command, *SETTINGS.split(), *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path} if code else None,
    )
    _started.append(process)
    return process


def kill_all() -> None:
    """Kill what `start` started; the kernel kills the ranks, which have their own sessions."""
    while _started:
        with _started.pop() as process:  # closes its pipes, and waits
            process.kill()


def end(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, talk = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, talk.decode()


def train_whole(data: Path, run: Path) -> Path:
    """Train undisturbed on two ranks; return the folder of the run."""
    code, talk = end(start(data, run, *WHOLE))
    assert code == 0, talk
    assert "ranks=2" in talk
    assert talk.count("event=start") == 1
    assert_only_nmtkit_talks(talk)
    return run


def parameters(run: Path) -> torch.Tensor:
    folder = RunFolder(run).last()
    assert folder is not None
    return torch.cat([tensor.flatten() for tensor in read_tensors(folder).values()])


def wait_for_checkpoint(run: Path, update: int) -> None:
    """Wait for a checkpoint of this update or a later one: old ones are deleted."""

    def is_there() -> bool:
        last = RunFolder(run).last()
        return last is not None and int(last.name) >= update

    wait_for(is_there)


def wait_for(is_there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_there():
        assert time.monotonic() < deadline, "what was waited for has not come"
        time.sleep(0.02)


def wait_for_restart(launcher: subprocess.Popen[bytes]) -> None:
    assert launcher.stderr is not None
    reported = b""
    while b"starting all ranks again" not in reported:
        reported = launcher.stderr.readline()
        assert reported


def rank_processes(launcher: int, devices: int = 2) -> list[int]:
    """Wait until a launcher has started all ranks; return their processes, by rank.

    A child that does not run its own program yet has no rank, and to stop it would stop the
    launcher, which waits for that.
    """
    found: dict[int, int] = {}

    def have_started() -> bool:
        found.clear()
        for pid in children(launcher):
            if rank := re.search(rb"\0RANK=([0-9]+)\0", environment(pid)):
                found[int(rank[1])] = pid
        return len(found) == devices

    wait_for(have_started)
    return [found[rank] for rank in range(devices)]


def interrupt_twice(launcher: int) -> None:
    """Send SIGINT as soon as the launcher has taken the first: two that wait would be one."""
    for _ in range(2):
        os.kill(launcher, signal.SIGINT)
        wait_for(lambda: not in_signals(launcher, "ShdPnd", signal.SIGINT))


def in_signals(pid: int, field: str, number: signal.Signals) -> bool:
    """Return whether a signal is in a set of a process's status, such as SigBlk; no if it ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    found = re.search(rf"^{field}:\s*([0-9a-f]+)$", status, re.M)
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)


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
    """Return whether a process runs and is not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def environment(pid: int) -> bytes:
    try:
        return b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
    except OSError:  # it has ended
        return b""


def assert_only_nmtkit_talks(talk: str) -> None:
    assert not re.search(r"torch|Traceback|gloo|terminate", talk), talk
