"""Processes that a test did not start itself."""

import os
import select

DEADLINE_S = 30.0


def has_ended(pid: int) -> bool:
    """Return whether a process ends within the deadline."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], DEADLINE_S)[0])
    finally:
        os.close(descriptor)
