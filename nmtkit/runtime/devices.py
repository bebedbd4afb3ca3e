"""The machine as a command finds it: device, CPU threads, memory."""

import ctypes
import os
import re
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import torch

from nmtkit.config.schema import RuntimeConfig
from nmtkit.errors import ConfigError
from nmtkit.runtime.allocator import keep_freed_memory

KIBIBYTE = 1024

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Where a process sees the limits of control groups, version 2."""

OWN_GROUPS = Path("/proc/self/cgroup")
"""Which of them a process belongs to."""

NUM_CACHED_KERNELS = "256"
"""oneDNN, which computes in bfloat16 on CPUs, makes code for each shape of a product, and keeps it.

Linear layers find theirs again; attention meets new shapes in each update, whose code piles up. Of
oneDNN's own limit, 1024, a small model takes half a gigabyte more, and is no faster.
"""

PROCESSOR = Path("/proc/cpuinfo")
"""The file that lists the instructions of the CPU."""

MIN_BFLOAT16_SIZE = 256
"""The smallest model size whose training is faster in bfloat16 on a CPU with instructions for it.

Smaller models spend most of the time outside the matrix products.
"""


def set_up(runtime: RuntimeConfig) -> torch.device:
    """Set the process up for computing; call it once, before the first tensor.

    Returns:
        The device on which tensors are to live: of several GPUs, the one of this process's
        number on its machine, where a launcher has given it one.

    Raises:
        ConfigError: a GPU is asked for and none can be used, or there are more processes.
    """
    keep_freed_memory()
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", NUM_CACHED_KERNELS)
    if runtime.threads:
        torch.set_num_threads(runtime.threads)
    has_gpu = torch.cuda.is_available()
    if runtime.device == "cuda" and not has_gpu:
        raise ConfigError(
            f"device ('cuda'): torch {torch.__version__} finds no usable GPU; take --device cpu, "
            "or install a CUDA build of torch and its driver [runtime.device]"
        )
    if not has_gpu or runtime.device == "cpu":
        return torch.device("cpu")
    number, num_gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= num_gpus:
        raise ConfigError(
            f"there is no GPU for process {number} of this machine, which has {num_gpus}; start "
            "one process a GPU, or take --device cpu [runtime.device]"
        )
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    return device


def device_name(device: torch.device) -> str:
    """Return what the driver calls a GPU; of a CPU, which has none, "cpu"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def peak_memory(device: torch.device) -> int:
    """Return the bytes that a GPU's tensors, or on a CPU this process, have needed at most."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE


def forget_peak(device: torch.device) -> None:
    """Have `peak_memory` begin anew on a GPU; a CPU's process cannot."""
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


def choose_precision(
    setting: str, device: torch.device, trained_size: int | None
) -> torch.dtype | None:
    """Choose the type of matrix products; None = the type of the weights.

    Args:
        setting: auto, float32 or bfloat16.
        device: where they are computed.
        trained_size: the model size in training; None in inference, where `auto` means float32 on
            every CPU.

    Raises:
        ConfigError: the GPU cannot compute in it.
    """
    has_bfloat16 = device.type == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False)
    if setting == "bfloat16" and not has_bfloat16:
        raise ConfigError(
            "precision ('bfloat16'): this GPU does not have it; take --precision float32"
        )
    if setting == "auto" and device.type == "cpu":
        is_wide = trained_size is not None and trained_size >= MIN_BFLOAT16_SIZE
        is_low = is_wide and multiplies_bfloat16()
    else:
        is_low = setting != "float32" and has_bfloat16
    return torch.bfloat16 if is_low else None


def multiplies_bfloat16() -> bool:
    """Return whether the CPU has instructions for products in bfloat16; without, they are slow."""
    try:
        processor = PROCESSOR.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(r"\b(avx512_bf16|amx_bf16)\b", processor) is not None


def background_thread(name: str) -> ThreadPoolExecutor:
    """Make an executor of one thread, in which torch computes without further threads.

    A thread that enters a parallel region of OpenMP gets a team of its own. libgomp then counts
    more threads than cores, and for the rest of the process all of them sleep between regions
    instead of spinning: training on a CPU loses a third of its speed. Every thread but the main
    one is therefore made here.

    Args:
        name: prefix of the thread's name.
    """
    return ThreadPoolExecutor(
        max_workers=1, thread_name_prefix=name, initializer=_compute_without_a_team
    )


def _compute_without_a_team() -> None:
    """Set the OpenMP threads of the calling thread alone, which torch.set_num_threads cannot."""
    torch.get_num_threads()  # torch sets up a thread at its first call, which would undo this
    with suppress(AttributeError):  # a build of torch without OpenMP
        ctypes.CDLL(torch._C.__file__).omp_set_num_threads(1)


def make_deterministic() -> None:
    """Have equal computations give equal bits on GPUs too; call it before the first of them."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(mode=True)


def _free_on_machine() -> int:
    status = Path("/proc/meminfo").read_text(encoding="ascii")
    available = re.search(r"MemAvailable: *([0-9]+) kB", status)
    assert available, f"/proc/meminfo does not tell MemAvailable: {status[:200]}"
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
