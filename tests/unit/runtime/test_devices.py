import dataclasses
import os
import subprocess
import sys

import pytest
import torch

from nmtkit.config.schema import RuntimeConfig
from nmtkit.errors import ConfigError
from nmtkit.runtime import devices as runtime
from tests.messages import refuses


@pytest.mark.parametrize(
    ("device", "has_gpu", "chosen"),
    [
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_auto_takes_a_gpu_if_there_is_one(
    device: str, has_gpu: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _device: None)
    assert runtime.set_up(RuntimeConfig(device=device)).type == chosen


def test_each_rank_of_a_machine_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert runtime.set_up(RuntimeConfig()) == torch.device("cuda", 3)
    assert taken == [torch.device("cuda", 3)]
    monkeypatch.setenv("LOCAL_RANK", "4")
    with refuses(ConfigError, "GPU process 4 runtime.device; --device cpu"):
        runtime.set_up(RuntimeConfig())


def test_deterministic_means_that_torch_refuses_kernels_that_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    was = torch.are_deterministic_algorithms_enabled()
    try:
        runtime.make_deterministic()
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
        assert not torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    finally:
        torch.use_deterministic_algorithms(was)
        torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_blocks_of_gpu_memory_grow_unless_the_user_sets_the_allocator(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _device: None)
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.setenv(variable, "")  # restored after the test
        monkeypatch.delenv(variable)
    runtime.set_up(RuntimeConfig(device="cpu"))
    assert "PYTORCH_CUDA_ALLOC_CONF" not in os.environ
    runtime.set_up(RuntimeConfig())
    assert os.environ.pop("PYTORCH_CUDA_ALLOC_CONF") == "expandable_segments:True"
    own = "max_split_size_mb:64"
    monkeypatch.setenv(name, own)
    runtime.set_up(RuntimeConfig())
    assert os.environ.get("PYTORCH_CUDA_ALLOC_CONF", own) == own


def test_a_gpu_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with refuses(ConfigError, "device cuda GPU; --device cpu"):
        runtime.set_up(RuntimeConfig(device="cuda"))


def test_threads_are_set_if_given_and_unchanged_if_not(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    config = RuntimeConfig(device="cpu")
    runtime.set_up(config)
    assert chosen == []
    runtime.set_up(dataclasses.replace(config, threads=3))
    assert chosen == [3]


@pytest.mark.parametrize(
    ("setting", "trained_size", "has_instructions", "expected"),
    [
        ("auto", 256, True, torch.bfloat16),
        ("auto", 256, False, None),
        ("auto", 255, True, None),
        ("auto", None, True, None),
        ("float32", 256, True, None),
        ("float32", None, True, None),
        ("bfloat16", 128, False, torch.bfloat16),
        ("bfloat16", None, False, torch.bfloat16),
    ],
)
def test_on_a_cpu_auto_takes_bfloat16_to_train_wide_models_if_it_has_instructions(
    setting: str,
    trained_size: int | None,
    has_instructions: bool,
    expected: torch.dtype | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "multiplies_bfloat16", lambda: has_instructions)
    assert runtime.choose_precision(setting, torch.device("cpu"), trained_size) == expected


@pytest.mark.parametrize("trained_size", [None, 8, 1024])
@pytest.mark.parametrize(
    ("setting", "has_bfloat16", "expected"),
    [
        ("auto", True, torch.bfloat16),
        ("auto", False, None),
        ("float32", True, None),
        ("bfloat16", True, torch.bfloat16),
    ],
)
def test_on_a_gpu_auto_takes_bfloat16_if_it_has_it(
    setting: str,
    has_bfloat16: bool,
    expected: torch.dtype | None,
    trained_size: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: has_bfloat16)
    assert runtime.choose_precision(setting, torch.device("cuda"), trained_size) == expected


def test_a_gpu_without_bfloat16_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    with refuses(ConfigError, "precision bfloat16 GPU; --precision float32"):
        runtime.choose_precision("bfloat16", torch.device("cuda"), trained_size=None)


# ------------------------------------------------------------------------------------------ threads


COUNTS_ITS_THREADS = """
import os
import torch
from nmtkit.runtime.devices import background_thread

def count_of_threads():
    return len(os.listdir("/proc/self/task"))

def compute():
    return torch.ones(1 << 20).add(1).isfinite().all()

torch.set_num_threads(4)
compute()
before = count_of_threads()
background = background_thread("test")
background.submit(compute).result()
print(count_of_threads() - before, torch.get_num_threads())
"""


@pytest.mark.thorough
def test_torch_in_the_background_starts_no_team_of_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTS_ITS_THREADS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "4"], "only the background thread is new"
