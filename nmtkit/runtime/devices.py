"""The device of a process, and the precision in which it computes."""

import os
import re
from pathlib import Path

import torch

from nmtkit.config.schema import RuntimeConfig
from nmtkit.errors import ConfigError
from nmtkit.runtime.allocator import keep_freed_memory

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


def make_deterministic() -> None:
    """Have equal computations give equal bits on GPUs too; call it before the first of them."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(mode=True)
