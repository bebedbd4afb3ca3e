"""Child processes that end with their parent, even if it is killed: the kernel ends them."""

import ctypes
import os
import signal

LAUNCHER = "NMTKIT_LAUNCHER"
"""Environment variable with the process id of the launcher of training; its ranks end with it."""

PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process gets when the thread that started it ends."""


def speaks_for_all_ranks() -> bool:
    """Return whether this process is its command's only one, the launcher, or torchrun's rank 0."""
    return LAUNCHER not in os.environ and os.environ.get("RANK", "0") == "0"


def is_launched() -> bool:
    """Return whether a launcher has started this process as a rank."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends.

    Args:
        parent: id of the process that started this one; if it has ended already, this process is
            killed immediately.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call of prctl
        os.kill(os.getpid(), signal.SIGKILL)
