"""`nmtkit train --devices 2` as users start it: a launcher and its ranks."""

import os
import re
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


def start(data: Path, run: Path, *settings: str, code: str = "") -> subprocess.Popen[bytes]:
    """Start training in a new process; `code` runs first in it and in its ranks."""
    if code:
        hooks = run.with_name("hooks")
        hooks.mkdir(exist_ok=True)
        (hooks / "sitecustomize.py").write_text(code, encoding="utf-8")
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
    wait_for((run / "checkpoints" / f"{update:08}" / "manifest.json").exists)


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
    """Return whether a process runs and is not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def environment(pid: int) -> bytes:
    return b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0"


def assert_only_nmtkit_talks(talk: str) -> None:
    assert not re.search(r"torch|Traceback|gloo|terminate", talk), talk
