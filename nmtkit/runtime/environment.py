"""What nmtkit sets in the environment of its process and of those that it starts, and their ends.

Variables of the user are kept. A process is to wait without taking a core from others, to import
nothing from the working directory, and to execute no code that another user may have written. Child
processes end with their parent, even if it is killed: the kernel ends them.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nmtkit.errors import ConfigError

LAUNCHER = "NMTKIT_LAUNCHER"
"""Environment variable with the process id of the launcher of training; its ranks end with it."""

PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process gets when the thread that started it ends."""


def speaks_for_all_ranks() -> bool:
    """Return whether this process is its command's only one, the launcher, or torchrun's rank 0."""
    return LAUNCHER not in os.environ and own_rank() == "0"


def is_launched() -> bool:
    """Return whether a launcher has started this process as a rank."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def own_rank() -> str:
    """Return the rank of this process as its launcher spells it; "0" without a launcher."""
    return os.environ["RANK"] if is_launched() else "0"


def num_local_ranks() -> int:
    """Return the number of ranks that a launcher started on this machine; 1 without one."""
    return max(number_from_launcher("LOCAL_WORLD_SIZE", 1), 1) if is_launched() else 1


def number_from_launcher(name: str, default: int) -> int:
    """Return the number in an environment variable of launchers.

    Raises:
        ConfigError: it is no number.
    """
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdecimal()):
        raise ConfigError(
            f"{name} ({text!r}), an environment variable that launchers set, must be a number; "
            "unset it, or start with torchrun"
        )
    return int(text)


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends.

    Args:
        parent: id of the process that started this one; if it has ended already, this process is
            killed immediately.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call of prctl
        os.kill(os.getpid(), signal.SIGKILL)


SPIN_COUNT = 3000
"""Rounds in which a thread of libgomp looks for work before it sleeps; about 30 microseconds.

With libgomp's default of 300 000, threads that wait for others hold cores which these need. With
1 000, decoding on a quiet machine is slower (docs/performance.md).
"""

_WAITING = {
    "GOMP_SPINCOUNT": str(SPIN_COUNT),
    # Of libomp and Intel's OpenMP, in milliseconds. 0 would sleep after each parallel region.
    "KMP_BLOCKTIME": "1",
}

WAITING_VARIABLES = ("OMP_WAIT_POLICY", *_WAITING)
"""Variables by which a user may set how threads wait."""

_SAFE_PATH, _OWN = "PYTHONSAFEPATH", "nmtkit"
"""A variable of Python that any text turns on, and the text by which nmtkit knows its own."""


def set_environment() -> None:
    """Set the variables of a process that nmtkit owns; call it before torch is imported."""
    shorten_spinning()
    os.environ[_SAFE_PATH] = os.environ.get(_SAFE_PATH) or _OWN


def shorten_spinning() -> bool:
    """Let waiting threads of OpenMP sleep soon, which OpenMP reads when torch is imported.

    Does nothing if torch is imported already, or if the user has set how threads wait; returns
    whether it has set variables.
    """
    is_left = "torch" in sys.modules or bool(os.environ.keys() & WAITING_VARIABLES)
    if not is_left:
        os.environ.update(_WAITING)
    return not is_left


@contextmanager
def short_spinning() -> Iterator[None]:
    """Shorten the spinning of a torch that is imported within; restore the environment."""
    is_set = shorten_spinning()
    try:
        yield
    finally:
        for name in _WAITING if is_set else ():
            os.environ.pop(name, None)


def environment_of_users() -> dict[str, str]:
    """Return the variables for a program of the user, which may import modules next to it."""
    return {
        name: value for name, value in os.environ.items() if (name, value) != (_SAFE_PATH, _OWN)
    }


def python_command(module: str) -> list[str]:
    """Return the command line that runs a module where this process finds modules.

    `python -m` would search the working directory first.
    """
    code = (
        f"import runpy, sys; sys.path = {[*map(str, sys.path)]}; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-P", "-c", code]
