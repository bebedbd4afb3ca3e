"""Copies of a device's tensors on the host, made while both continue."""

import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress

import torch
from torch import Tensor

ALIGNMENT = 64
"""Each copy begins at a multiple of this number of bytes."""


class HostCopy:
    """A copy of a tensor on the host; the host may continue before it has arrived."""

    def __init__(self, values: Tensor) -> None:
        """Begin to copy a tensor, which the device need not have computed yet."""
        self._values = values.to("cpu", non_blocking=True, copy=True)
        self._arrival = torch.cuda.Event() if values.is_cuda else None
        if self._arrival is not None:
            self._arrival.record()

    def has_arrived(self) -> bool:
        """Return whether the host can read the values without waiting."""
        return self._arrival is None or self._arrival.query()

    def tolist(self) -> list[float]:
        """Wait for the values, and return them."""
        if self._arrival is not None:
            self._arrival.synchronize()
        values: list[float] = self._values.tolist()
        return values


class Staging:
    """Host memory for copies of tensors, which are valid until the next ones.

    For tensors of a GPU the memory is page-locked: the host does not wait for the copies, and they
    are several times as fast. It is registered with the driver, because torch's own page-locked
    memory would be rounded up to powers of two. On a CPU each copy has memory of its own, which is
    freed with it.
    """

    def __init__(self) -> None:
        self._memory = torch.empty(0, dtype=torch.uint8)
        self._arrival: torch.cuda.Event | None = None

    def copy(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """Begin to copy tensors to the host; `wait` for them before they are read.

        They may be changed afterwards: what the device computes later, it computes after the copy.
        """
        sources = [tensor.detach() for tensor in tensors]
        if not any(source.is_cuda for source in sources):
            return [source.to("cpu", copy=True) for source in sources]
        copies = self._allocate(sources)
        for copied, source in zip(copies, sources, strict=True):
            copied.copy_(source, non_blocking=True)
        self._arrival = torch.cuda.Event()
        self._arrival.record()
        return copies

    def wait(self) -> None:
        """Wait until the last copies have arrived."""
        if self._arrival is not None:
            self._arrival.synchronize()

    def _allocate(self, sources: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors of the same types and shapes, one after the other in the memory."""
        ends, copies = [0], []
        for source in sources:
            ends.append(ends[-1] + -(-source.nbytes // ALIGNMENT) * ALIGNMENT)
        if ends[-1] > len(self._memory):
            self._memory = torch.empty(0, dtype=torch.uint8)  # freed before there is more
            self._memory = _page_locked(ends[-1], sources[0].device)
        for first, source in zip(ends, sources, strict=False):
            content = self._memory[first : first + source.nbytes]
            copies.append(content.view(source.dtype).view(source.shape))
        return copies


def _page_locked(num_bytes: int, device: torch.device) -> Tensor:
    """Return page-locked memory, or other memory if the system permits no more of it."""
    memory = torch.empty(num_bytes, dtype=torch.uint8)
    runtime, address = torch.cuda.cudart(), memory.data_ptr()
    if int(runtime.cudaHostRegister(address, num_bytes, 0)) == 0:
        weakref.finalize(memory.untyped_storage(), runtime.cudaHostUnregister, address)
    else:
        with suppress(RuntimeError):  # else the next kernel of training would raise the error
            torch.ones(1, device=device).add_(1)
    return memory
