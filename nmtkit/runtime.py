"""The machine as a command finds it: device, CPU threads, memory."""

import torch

from nmtkit.allocator import keep_freed_memory
from nmtkit.config.schema import RuntimeConfig
from nmtkit.errors import ConfigError


def set_up(runtime: RuntimeConfig) -> torch.device:
    """Set the process up for computing; call it once, before the first tensor.

    Returns:
        The device on which tensors are to live.

    Raises:
        ConfigError: a GPU is asked for and none can be used.
    """
    keep_freed_memory()
    if runtime.threads:
        torch.set_num_threads(runtime.threads)
    has_gpu = torch.cuda.is_available()
    if runtime.device == "cuda" and not has_gpu:
        raise ConfigError(
            f"device ('cuda'): torch {torch.__version__} finds no usable GPU; take --device cpu, "
            "or install a CUDA build of torch and its driver [runtime.device]"
        )
    return torch.device("cuda" if has_gpu and runtime.device != "cpu" else "cpu")
