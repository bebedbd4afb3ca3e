"""A signal is not lost and shows no traceback, at whatever import of a command it arrives."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launching import SETTINGS, TIMEOUT_S
from tests.messages import check_errors

CONSOLE_SCRIPT = "import sys; from nmtkit_cli.main import main; sys.exit(main())"
ENTRIES = {"module": ("-m", "nmtkit_cli"), "script": ("-c", CONSOLE_SCRIPT)}
HOOK = """
import os, sys
class Killer:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["MODULE"]:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
sys.meta_path.insert(0, Killer())
"""
FIRST = "nmtkit.signals"
"""The first module that the entry point imports."""


def end(
    folder: Path, entry: str, line: str, module: str, number: signal.Signals
) -> tuple[int, str]:
    """Run a command that gets a signal when it imports a module; return its code and messages."""
    (folder / "sitecustomize.py").write_text(HOOK, encoding="ascii")
    path = f"{folder}{os.pathsep}{Path.cwd()}"
    environment = {**os.environ, "PYTHONPATH": path, "MODULE": module, "SIGNAL": str(int(number))}
    done = subprocess.run(
        [sys.executable, *ENTRIES[entry], *line.split()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=environment,
        cwd=folder,
        timeout=TIMEOUT_S,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("entry", "module", "number"),
    [
        ("module", FIRST, signal.SIGHUP),
        ("script", FIRST, signal.SIGINT),
        ("script", "click", signal.SIGTERM),
        ("module", "nmtkit_cli.score", signal.SIGINT),
        ("module", "nmtkit.evaluation.texts", signal.SIGTERM),
    ],
)
def test_a_command_ends_with_the_code_of_the_signal(
    entry: str, module: str, number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "reference").write_bytes(b"a\n")
    code, talk = end(tmp_path, entry, "score --reference reference", module, number)
    assert code == 128 + number
    if number is signal.SIGINT:
        assert talk == "nmtkit: interrupted\n"
    else:
        check_errors(talk, code, number.name)
    assert talk.count("\n") == 1


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("entry", "module", "number"),
    [
        ("module", FIRST, signal.SIGTERM),
        ("script", "nmtkit_cli.train", signal.SIGUSR1),
        ("module", "torch", signal.SIGHUP),
    ],
)
def test_training_ends_as_when_it_is_stopped_later(
    entry: str, module: str, number: signal.Signals, data: Path, tmp_path: Path
) -> None:
    line = f"train {data} --out run {SETTINGS} --max-updates 1000000"
    code, talk = end(tmp_path, entry, line, module, number)
    assert code == 75
    check_errors(talk, code, f"{number.name} update")
    assert "Traceback" not in talk


@pytest.mark.parametrize(("devices", "module"), [(1, "torch"), (2, FIRST)])
def test_an_interrupt_ends_training_that_loads_pytorch_immediately(
    devices: int, module: str, data: Path, tmp_path: Path
) -> None:
    """No rank is started, and no folder of a run."""
    line = f"train {data} --out run {SETTINGS} --max-updates 1000000 --devices {devices}"
    code, talk = end(tmp_path, "module", line, module, signal.SIGINT)
    assert code == 130
    assert talk.splitlines()[1:] == ["nmtkit: interrupted"]
    assert not (tmp_path / "run").exists()
