"""The number of processes to start, and the exit code that follows from theirs."""

import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch
from torch.distributed import PrefixStore, TCPStore

from nmtkit.config.schema import RuntimeConfig, TrainRecipe
from nmtkit.config.training import RanksConfig
from nmtkit.errors import (
    ConfigError,
    InterruptedByUserError,
    LostRankError,
    NmtkitError,
    StoppedError,
)
from nmtkit.training import launch as launching
from nmtkit.training.distributed import Ranks
from nmtkit.training.launch import (
    MAX_STARTS_WITHOUT_PROGRESS,
    STOP_TIMEOUT_S,
    launch,
    num_processes,
)
from tests.messages import refuses
from tests.ranks import from_launcher


def recipe_of(devices: int, device: str = "auto") -> TrainRecipe:
    return replace(
        TrainRecipe(), ranks=RanksConfig(devices=devices), runtime=RuntimeConfig(device=device)
    )


@pytest.mark.parametrize(
    ("num_gpus", "devices", "device", "expected"),
    [
        *((0, 0, "auto", 1), (4, 0, "auto", 4), (4, 0, "cpu", 1)),
        *((0, 4, "auto", 4), (4, 1, "auto", 1), (4, 4, "auto", 4)),
        *((0, 8, "cpu", 8), (4, 8, "cpu", 8)),
    ],
)
def test_as_many_are_started_as_given_or_all_gpus_or_else_one(
    num_gpus: int, devices: int, device: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: num_gpus)
    assert num_processes(recipe_of(devices, device)) == expected


def test_more_devices_than_there_are_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with refuses(ConfigError, "devices 5 4 GPUs; --devices --device"):
        num_processes(recipe_of(5))


def test_a_process_that_was_launched_as_a_rank_launches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in from_launcher().items():
        monkeypatch.setenv(name, value)
    assert num_processes(recipe_of(8, "cpu")) == 1


def test_ranks_out_of_memory_restart_only_after_more_micro_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_increases = MAX_STARTS_WITHOUT_PROGRESS + 2
    increases: list[dict[str, int]] = []
    starts: list[int] = []

    def run_out(*_: object) -> tuple[int, str]:
        starts.append(1)
        if len(increases) < num_increases:
            increases.append({"from_update": 1, "micro_batches": 2 ** (len(increases) + 1)})
            (tmp_path / "micro_batches.json").write_text(json.dumps(increases), encoding="ascii")
        return 5, "rank 1 ended with exit code 5"

    reported: list[str] = []
    monkeypatch.setattr(launching, "_run", run_out)
    assert launch([], 2, tmp_path, reported.append) == 5
    assert len(starts) == num_increases + 1
    assert len(reported) == num_increases


def test_the_launcher_gives_up_after_restarts_without_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(launching, "_run", lambda *_: (7, "rank 1 was killed by SIGKILL"))
    with refuses(LostRankError, "rank 1 SIGKILL 3; --max-tokens --devices"):
        launch([], 2, tmp_path, reported.append)
    assert len(reported) == MAX_STARTS_WITHOUT_PROGRESS - 1


class FakeRank:
    """A fake process that ends with an exit code, or on a signal in `ended_by`."""

    def __init__(self, code: int | None, ended_by: Mapping[signal.Signals, int] | None = None):
        self.code = code
        self.ended_by = ended_by or {}
        self.received: list[signal.Signals] = []

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, number: signal.Signals) -> None:
        if self.code is None:
            self.received.append(number)
            self.code = self.ended_by.get(number)


def launch_fakes(
    monkeypatch: pytest.MonkeyPatch, ranks: Sequence[FakeRank], *requests: signal.Signals
) -> None:
    """Replace ranks by fakes, and have stop signals waiting."""
    waiting, starting = list(requests), iter(ranks)
    monkeypatch.setattr(launching, "_start", lambda *_: next(starting))
    monkeypatch.setattr(
        launching,
        "next_request",
        lambda timeout_s: waiting.pop(0) if waiting and timeout_s else None,
    )


def run_launched(
    processes: int, clock: Callable[[], float] = time.monotonic
) -> tuple[int, str | None]:
    return launching._run([], processes, clock)


@pytest.mark.parametrize(
    ("codes", "end"),
    [
        ((0, 0), (0, None)),
        ((75, 75), (75, None)),
        ((7, -9), (7, "rank 1 was killed by SIGKILL")),
        ((7, 7), (7, "rank 0 ended with exit code 7")),
        ((7, 5), (5, "rank 1 ended with exit code 5")),
        ((2, 2), (2, None)),
    ],
)
def test_the_exit_code_is_that_of_the_rank_that_failed_first(
    codes: tuple[int, int], end: tuple[int, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    launch_fakes(monkeypatch, [FakeRank(code) for code in codes])
    assert run_launched(2) == end


@pytest.mark.parametrize(
    ("number", "kind"),
    [(signal.SIGTERM, StoppedError), (signal.SIGINT, InterruptedByUserError)],
)
def test_a_rank_lost_after_a_stop_request_is_reported_and_not_restarted(
    number: signal.Signals, kind: type[NmtkitError], monkeypatch: pytest.MonkeyPatch
) -> None:
    launch_fakes(monkeypatch, [FakeRank(7), FakeRank(-9)], number)
    with refuses(kind, f"{number.name} rank 1 SIGKILL"):
        run_launched(2)


def test_a_request_before_ranks_are_started_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "_start", pytest.fail)
    monkeypatch.setattr(launching, "next_request", lambda **_: signal.SIGUSR1)
    with refuses(StoppedError, "SIGUSR1"):
        run_launched(2)


@pytest.mark.parametrize("num_joined", [0, 1])
def test_a_second_interrupt_kills_ranks_that_wait_for_each_other(
    num_joined: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = [FakeRank(None, {signal.SIGKILL: -signal.SIGKILL}) for _ in range(2)]
    launch_fakes(monkeypatch, ranks, signal.SIGTERM, signal.SIGINT, signal.SIGINT)
    store_with_joined(monkeypatch, num_joined)
    with pytest.raises(KeyboardInterrupt):
        run_launched(2)
    forwarded = [signal.SIGTERM, signal.SIGINT, signal.SIGINT]
    assert [rank.received for rank in ranks] == [[*forwarded, signal.SIGKILL]] * 2


def test_a_second_interrupt_is_forwarded_to_ranks_that_train_and_may_be_saving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = [FakeRank(None, {signal.SIGUSR1: 130}) for _ in range(2)]
    launch_fakes(monkeypatch, ranks, signal.SIGINT, signal.SIGINT, signal.SIGUSR1)
    store_with_joined(monkeypatch, 2)
    assert run_launched(2) == (130, None)
    assert ranks[0].received == [signal.SIGINT, signal.SIGINT, signal.SIGUSR1]


def store_with_joined(monkeypatch: pytest.MonkeyPatch, num_joined: int) -> None:
    """Have ranks join as soon as the launcher has made its store."""
    make = vars(launching)["_loopback_store"]

    def make_and_join() -> TCPStore:
        store: TCPStore = make()
        for rank in range(num_joined):
            Ranks(rank, 2, PrefixStore("ranks", store)).count_exchange()
        return store

    monkeypatch.setattr(launching, "_loopback_store", make_and_join)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_the_launcher_adds_nothing_to_what_the_ranks_print_when_asked_to_stop(
    number: signal.Signals, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch_fakes(monkeypatch, [FakeRank(None, {number: code}) for _ in range(2)], number)
    assert launch([], 2, tmp_path, pytest.fail) == code


def test_a_request_is_forwarded_once_to_each_rank_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = [FakeRank(0), *(FakeRank(None, {signal.SIGUSR1: 75}) for _ in range(2))]
    launch_fakes(monkeypatch, ranks, signal.SIGUSR1)
    assert run_launched(3) == (75, None)
    assert [rank.received for rank in ranks] == [[], [signal.SIGUSR1], [signal.SIGUSR1]]


def test_the_first_failure_is_the_exit_code_and_hung_ranks_are_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_to = {signal.SIGTERM: 1}
    hung = {signal.SIGKILL: -signal.SIGKILL}
    ranks = [FakeRank(None, hung), FakeRank(2), FakeRank(None, asked_to)]
    launch_fakes(monkeypatch, ranks)
    clock = count(step=STOP_TIMEOUT_S).__next__
    assert run_launched(3, clock) == (2, None)
    assert ranks[0].received == [signal.SIGTERM, signal.SIGKILL]
    assert ranks[2].received == [signal.SIGTERM]


def test_no_rank_is_left_when_another_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    first = FakeRank(None)

    def start(_arguments: Sequence[str], environment: Mapping[str, str]) -> FakeRank:
        if environment["RANK"] == "1":
            raise BlockingIOError("no more processes")
        return first

    monkeypatch.setattr(launching, "_start", start)
    with pytest.raises(BlockingIOError):
        run_launched(2, pytest.fail)
    assert first.received == [signal.SIGKILL]


def test_a_rank_has_torchruns_variables_and_the_users_override_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    found = launching._environment(1, 3, 29500)
    expected = {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "3",
        "LOCAL_WORLD_SIZE": "3",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "OMP_NUM_THREADS": "2",
        "GLOO_SOCKET_IFNAME": "eth7",
        "NCCL_SOCKET_IFNAME": "lo",
    }
    assert found.items() >= expected.items()
