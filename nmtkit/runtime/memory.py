"""Memory use of a device: its limit and its peak."""

import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from nmtkit.runtime.parent_process import num_local_ranks

KIBIBYTE = 1024

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""The folder of control groups, version 2, which limit memory."""

OWN_PROCESS = Path("/proc/self")
"""The folder in which the kernel lists the control groups and memory of this process."""


def peak_memory(device: torch.device) -> int:
    """Return the peak bytes of a GPU's tensors, or of this process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE


def reset_peak_memory(device: torch.device) -> None:
    """Restart the count of `peak_memory` on a GPU; on a CPU do nothing."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def memory_limit(
    device: torch.device, groups: Path = CONTROL_GROUPS, process: Path = OWN_PROCESS
) -> int:
    """Return the bytes available to a GPU's tensors, or to this process on a CPU.

    On a CPU, the processes of one launcher share the free memory equally.

    Args:
        device: the device whose memory is counted.
        groups: the folder of the control groups.
        process: the folder that describes this process.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device)
    free = min(_free_on_machine(), _free_in_group(groups, process))
    return free // num_local_ranks() + _resident(process)


def _free_on_machine() -> int:
    status = Path("/proc/meminfo").read_text(encoding="ascii")
    available = re.search(r"MemAvailable: *([0-9]+) kB", status)
    assert available, f"/proc/meminfo has no MemAvailable: {status[:200]}"
    return int(available[1]) * KIBIBYTE


def _free_in_group(groups: Path, process: Path) -> int:
    """Return the bytes that control groups (containers, schedulers) leave; maxsize without one."""
    return min((_left_by(group) for group in _control_groups(groups, process)), default=sys.maxsize)


def _control_groups(root: Path, process: Path) -> Iterator[Path]:
    """Yield the folders of this process's control group, version 2, and of all groups around it.

    In a container the path may be the host's, of which only the root exists.
    """
    memberships = (process / "cgroup").read_text(encoding="utf-8").split("\n")
    own = next((line[3:] for line in memberships if line.startswith("0::")), "/")
    group = root / own.lstrip("/")
    while group != root:
        yield group
        group = group.parent
    yield root


def _left_by(group: Path) -> int:
    """Return the bytes that a control group may still use; maxsize without a limit."""
    try:
        limit, used = (
            int((group / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
        status = (group / "memory.stat").read_text(encoding="ascii")
    except (OSError, ValueError):  # no group, or one without a limit
        return sys.maxsize
    # Cached files without recent use: the kernel drops them when memory is needed.
    reclaimable = re.search(r"^inactive_file ([0-9]+)$", status, re.M)
    return max(limit - used + (int(reclaimable[1]) if reclaimable else 0), 0)


def _resident(process: Path) -> int:
    pages = int((process / "statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
