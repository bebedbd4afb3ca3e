import dataclasses

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
    monkeypatch.setattr(torch.cuda, "set_device", lambda _device: None)
    assert runtime.set_up(RuntimeConfig(device=device)).type == chosen


def test_each_rank_of_a_machine_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert runtime.set_up(RuntimeConfig()) == torch.device("cuda", 3)
    assert taken == [torch.device("cuda", 3)]


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
