"""Copies keep their values while the tensors change; tests/integration/test_gpu.py: on a GPU."""

import pytest
import torch

from nmtkit.runtime import host_copies
from nmtkit.runtime.host_copies import ALIGNMENT, HostCopy, Staging


def tensors() -> list[torch.Tensor]:
    return [
        torch.arange(7, dtype=torch.float32).view(7, 1),
        torch.tensor(3.0, dtype=torch.float64),
        torch.arange(5, dtype=torch.bfloat16),
        torch.empty(0, 4),
    ]


def test_copies_do_not_follow_changes() -> None:
    originals = tensors()
    memory = Staging()
    copies = memory.copy(originals)
    memory.wait()
    for original in originals:
        original.zero_()
    for copied, expected in zip(copies, tensors(), strict=True):
        assert copied.dtype == expected.dtype
        assert torch.equal(copied, expected)


def test_places_in_the_memory_are_aligned_apart_and_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allocated: list[int] = []

    def allocate(num_bytes: int, _device: torch.device) -> torch.Tensor:
        allocated.append(num_bytes)
        return torch.zeros(num_bytes, dtype=torch.uint8)

    monkeypatch.setattr(host_copies, "_page_locked", allocate)
    memory = Staging()
    for _ in range(2):
        places = memory._allocate(tensors())
        for place, tensor in zip(places, tensors(), strict=True):
            assert (place.dtype, place.shape) == (tensor.dtype, tensor.shape)
            assert place.storage_offset() * place.element_size() % ALIGNMENT == 0
            place.copy_(tensor)
        for place, tensor in zip(places, tensors(), strict=True):
            assert torch.equal(place, tensor)
    assert allocated == [3 * ALIGNMENT]
    memory._allocate([torch.empty(100)])
    assert allocated == [3 * ALIGNMENT, 448]


def test_values_of_a_cpu_have_arrived_at_once() -> None:
    values = HostCopy(torch.tensor([1.5, 2.0]))
    assert values.has_arrived()
    assert values.tolist() == [1.5, 2.0]
    x = torch.ones(2)
    values = HostCopy(x)
    x.zero_()
    assert values.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("code", [0, 2])
def test_memory_that_cannot_be_page_locked_is_used_all_the_same(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    class Runtime:
        def cudaHostRegister(self, address: int, _size: int, _flags: int) -> int:  # noqa: N802
            calls.append(f"register {address}")
            return code

        def cudaHostUnregister(self, address: int) -> int:  # noqa: N802
            calls.append(f"unregister {address}")
            return 0

    def launch(*_: object, **__: object) -> torch.Tensor:
        calls.append("launch")
        raise RuntimeError("the error of the registration")

    monkeypatch.setattr(torch.cuda, "cudart", Runtime)
    monkeypatch.setattr(torch, "ones", launch)
    memory = host_copies._page_locked(100, torch.device("cpu"))
    address = memory.data_ptr()
    assert memory.nbytes == 100
    del memory
    last = f"unregister {address}" if code == 0 else "launch"
    assert calls == [f"register {address}", last]
