import dataclasses
from pathlib import Path

import pytest
import torch

from nmtkit import runtime
from nmtkit.config.schema import RuntimeConfig
from nmtkit.errors import ConfigError


@pytest.fixture(autouse=True)
def leaves_the_process_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "keep_freed_memory", lambda: None)


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
    with pytest.raises(ConfigError, match="no GPU for process 4 of this machine, which has 4;"):
        runtime.set_up(RuntimeConfig())


def test_memory_is_what_the_machine_or_its_control_group_leaves_shared_by_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "CONTROL_GROUP", tmp_path)
    monkeypatch.setattr(runtime, "_resident", lambda: 7)
    cpu = torch.device("cpu")
    machine = runtime.memory_limit(cpu)
    assert 7 < machine < 2**50
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("1000\n", encoding="ascii")
    assert runtime.memory_limit(cpu) == pytest.approx(machine, rel=0.2)
    (tmp_path / "memory.max").write_text("5000\n", encoding="ascii")
    assert runtime.memory_limit(cpu) == 4007
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert runtime.memory_limit(cpu) == 1007


def test_a_gpu_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    message = r"device \('cuda'\): torch .* finds no usable GPU; take --device cpu, or install"
    with pytest.raises(ConfigError, match=message):
        runtime.set_up(RuntimeConfig(device="cuda"))


def test_threads_are_set_if_given_and_left_alone_if_not(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    config = RuntimeConfig(device="cpu")
    runtime.set_up(config)
    assert chosen == []
    runtime.set_up(dataclasses.replace(config, threads=3))
    assert chosen == [3]


def test_freed_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[bool] = []
    monkeypatch.setattr(runtime, "keep_freed_memory", lambda: called.append(True))
    runtime.set_up(RuntimeConfig(device="cpu"))
    assert called == [True]
