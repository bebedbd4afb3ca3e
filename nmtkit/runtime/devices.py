"""The device of a process: precision, memory, threads that compute."""

import ctypes
import os
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch

from nmtkit.config.schema import RuntimeConfig
from nmtkit.errors import ConfigError
from nmtkit.runtime.environment import number_from_launcher
from nmtkit.runtime.processor import multiplies_bfloat16

KIBIBYTE = 1024


def peak_memory(device: torch.device) -> int:
    """Return the peak bytes of a GPU's tensors, or of this process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE


def reset_peak_memory(device: torch.device) -> None:
    """Restart the count of `peak_memory` on a GPU; on a CPU do nothing."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def gpu_memory(device: torch.device) -> int:
    """Return the bytes of a GPU that this process has or could have."""
    return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)


def background_thread(name: str) -> ThreadPoolExecutor:
    """Return an executor with one thread, in which torch starts no OpenMP threads.

    Otherwise each Python thread that computes gets its own team of OpenMP threads. libgomp then
    counts more threads than cores, and all of them sleep between parallel regions instead of
    spinning, for the rest of the process: training on a CPU loses a third of its speed. All
    background threads that compute are therefore made here.

    Args:
        name: prefix of the thread's name.
    """
    return ThreadPoolExecutor(
        max_workers=1, thread_name_prefix=name, initializer=_compute_without_a_team
    )


def _compute_without_a_team() -> None:
    """Use one OpenMP thread in the calling thread; torch.set_num_threads would set all threads."""
    torch.get_num_threads()  # torch's first call in a thread would reset the number later
    with suppress(AttributeError):  # a build of torch without OpenMP
        ctypes.CDLL(None).omp_set_num_threads(1)


NUM_CACHED_KERNELS = "256"
"""Number of compiled kernels that oneDNN keeps; it compiles one per shape of a bfloat16 product.

Linear layers use the same shapes again; attention has new shapes in each update. With oneDNN's
default of 1024, a small model needs half a gigabyte more and is not faster.
"""

GPU_ALLOCATOR = "expandable_segments:True"
"""Setting of torch's allocator for GPUs: blocks grow in place.

Updates differ in their sizes. Blocks that cannot grow would leave gaps, too small for later ones.
"""

_ALLOCATOR_SETTINGS = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}
"""Variables of the user's own settings; torch reads them at the first allocation on a GPU."""

MIN_BFLOAT16_SIZE = 256
"""Smallest model size that trains faster in bfloat16 on a CPU with bfloat16 instructions.

Smaller models spend most of the time outside matrix products.
"""


def set_up(runtime: RuntimeConfig) -> torch.device:
    """Set up threads and GPU of the process; call it once, before the first tensor.

    Returns:
        The device for tensors. With several GPUs it is the one with this process's local rank,
        0 without a launcher.

    Raises:
        ConfigError: a GPU is requested and none is usable, or there are more processes than GPUs.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", NUM_CACHED_KERNELS)
    if runtime.threads:
        torch.set_num_threads(runtime.threads)
    has_gpu = torch.cuda.is_available()
    if runtime.device == "cuda" and not has_gpu:
        raise ConfigError(
            f"device ('cuda'): torch {torch.__version__} finds no usable GPU; use --device cpu, "
            "or install a CUDA build of torch and its driver [runtime.device]"
        )
    if not has_gpu or runtime.device == "cpu":
        return torch.device("cpu")
    number, num_gpus = number_from_launcher("LOCAL_RANK", 0), torch.cuda.device_count()
    if number >= num_gpus:
        raise ConfigError(
            f"there is no GPU for process {number} of this machine, which has {num_gpus}; start "
            "one process per GPU, or use --device cpu [runtime.device]"
        )
    if not _ALLOCATOR_SETTINGS & os.environ.keys():
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = GPU_ALLOCATOR
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    return device


def device_name(device: torch.device) -> str:
    """Return the driver's name of a GPU; "cpu" for a CPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def choose_precision(
    setting: str, device: torch.device, trained_size: int | None
) -> torch.dtype | None:
    """Return the dtype of matrix products; None = the dtype of the weights.

    Args:
        setting: auto, float32 or bfloat16.
        device: the device of the products.
        trained_size: the model size in training; None in inference, where `auto` means float32 on
            every CPU.

    Raises:
        ConfigError: bfloat16 is requested and the GPU does not support it.
    """
    has_bfloat16 = device.type == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False)
    if setting == "bfloat16" and not has_bfloat16:
        raise ConfigError(
            "precision ('bfloat16'): this GPU does not support it; use --precision float32"
        )
    if setting == "auto" and device.type == "cpu":
        is_wide = trained_size is not None and trained_size >= MIN_BFLOAT16_SIZE
        is_low = is_wide and multiplies_bfloat16()
    else:
        is_low = setting != "float32" and has_bfloat16
    return torch.bfloat16 if is_low else None


def precision_of_inference(runtime: RuntimeConfig) -> str:
    """Return what `--precision auto` means in inference: "float32" or "bfloat16"."""
    has_gpu = runtime.device != "cpu" and torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    return "bfloat16" if choose_precision("auto", device, trained_size=None) else "float32"


def make_deterministic() -> None:
    """Make equal computations on GPUs give equal bits; call it before the first computation."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(mode=True)
    # Every element is written before it is read, so filling new tensors would only take time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
