"""The device of a process, and the precision in which it computes."""

import os

import torch

from nmtkit.config.schema import RuntimeConfig
from nmtkit.errors import ConfigError
from nmtkit.runtime.allocator import keep_freed_memory
from nmtkit.runtime.parent_process import number_from_launcher
from nmtkit.runtime.processor import multiplies_bfloat16

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
    """Set up memory, threads and GPU of the process; call it once, before the first tensor.

    Returns:
        The device for tensors. With several GPUs it is the one with this process's local rank,
        0 without a launcher.

    Raises:
        ConfigError: a GPU is requested and none is usable, or there are more processes than GPUs.
    """
    keep_freed_memory()
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
