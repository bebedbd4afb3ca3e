"""Memory: what there is for a device's tensors, and what they have needed."""

import os
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

KIBIBYTE = 1024

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Where a process sees the limits of control groups, version 2."""

OWN_GROUPS = Path("/proc/self/cgroup")
"""Which of them a process belongs to."""


def peak_memory(device: torch.device) -> int:
    """Return the bytes that a GPU's tensors, or on a CPU this process, have needed at most."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE


def forget_peak(device: torch.device) -> None:
    """Let `peak_memory` count from here on a GPU; the peak of a CPU's process stays."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def memory_limit(device: torch.device) -> int:
    """Return the bytes that there are for a GPU's tensors, or on a CPU for this process.

    The processes that a launcher has started on this machine share what is free.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device)
    free = min(_free_on_machine(), _free_in_group())
    return free // int(os.environ.get("LOCAL_WORLD_SIZE", "1")) + _resident()


def _free_on_machine() -> int:
    status = Path("/proc/meminfo").read_text(encoding="ascii")
    available = re.search(r"MemAvailable: *([0-9]+) kB", status)
    assert available, f"/proc/meminfo has no MemAvailable: {status[:200]}"
    return int(available[1]) * KIBIBYTE


def _free_in_group() -> int:
    """Return what containers and schedulers' control groups leave; without one, any number."""
    return min((_left_by(group) for group in _control_groups()), default=sys.maxsize)


def _control_groups() -> Iterator[Path]:
    """Yield the folders of this process's control group, version 2, and of those it is within.

    In a container the path of its own may be seen from outside, and only the root be there.
    """
    memberships = OWN_GROUPS.read_text(encoding="utf-8").split("\n")
    own = next((line[3:] for line in memberships if line.startswith("0::")), "/")
    group = CONTROL_GROUPS / own.lstrip("/")
    while group != CONTROL_GROUPS:
        yield group
        group = group.parent
    yield CONTROL_GROUPS


def _left_by(group: Path) -> int:
    """Return the bytes that a control group may still use; any number without a limit."""
    try:
        limit, used = (
            int((group / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
        status = (group / "memory.stat").read_text(encoding="ascii")
    except (OSError, ValueError):  # no group, or one without a limit
        return sys.maxsize
    # Copies of files that nothing has asked for lately; they go when memory is needed.
    reclaimable = re.search(r"^inactive_file ([0-9]+)$", status, re.M)
    return max(limit - used + (int(reclaimable[1]) if reclaimable else 0), 0)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
