"""The rank of a launched process, and its end with the process that started it.

Child processes end with their parent, even if it is killed: the kernel ends them.
"""

import ctypes
import os
import signal

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
