"""Ranks: the processes that train one model together, a device each.

PyTorch's own engine carries what they exchange: gradients through DistributedDataParallel, the few
numbers of an update through `Ranks.sum`, and what rank 0 alone reads and decides through
`Ranks.share`. A process on its own is one rank, and exchanges nothing.

Whatever launches the ranks says so in the environment, as torchrun does.
"""

import ctypes
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from nmtkit.errors import (
    InterruptedByUserError,
    LostRankError,
    NmtkitError,
    ResourceError,
    StoppedError,
    ToldElsewhereError,
    is_out_of_memory,
)

ROLL_CALL_S = 3.0
"""When an exchange has failed, a rank that does not say so within this time is lost."""

LEAVING_S = 20.0
"""Rank 0 waits no longer than this for the others to leave."""

LAUNCHER = "NMTKIT_LAUNCHER"
"""Environment variable that names the process without which a rank is not to live on."""

PR_SET_PDEATHSIG = 1
"""Of prctl(2): which signal a process gets when its parent ends."""

DEVICE_POLL_S = 2e-4
STORE_POLL_S = 0.02

PRESENT = b"present"
"""Answer to a roll call of a rank that has not ended with an error."""

TOGETHER = (StoppedError.exit_code, InterruptedByUserError.exit_code)
"""Exit codes of what all ranks have agreed to end with."""

Made = TypeVar("Made")


class Ranks:
    """This process among those that train one model together.

    Attributes:
        rank: its number, from 0; rank 0 alone writes and talks.
        size: W, how many there are.
    """

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        store: Store | None = None,
        control: dist.ProcessGroup | None = None,
        timeout_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the place of this process.

        Args:
            rank, size: its number, and how many there are.
            store: shares facts about ranks without an exchange; None for one alone.
            control: exchanges what is on the host, so that the loss of a rank is noticed there,
                and not by a device that waits for ever; None = what exchanges tensors.
            timeout_s: how long to wait for a device.
            clock: seconds from an arbitrary start.
        """
        self.rank = rank
        self.size = size
        self._store = store
        self._control = control
        self._timeout_s = timeout_s
        self._clock = clock
        self._num_arrivals = 0

    @property
    def is_first(self) -> bool:
        """This is rank 0."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """There is no other rank."""
        return self.size == 1

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return a module whose backward pass adds up the gradients of all ranks, divided by W."""
        if self.is_alone:
            return module
        with self._between_updates():
            return DistributedDataParallel(module, gradient_as_bucket_view=True)

    def arrive(self) -> None:
        """Count an exchange that this rank has reached: a lost rank has reached fewer."""
        if self._store is not None:
            self._num_arrivals += 1
            self._store.set(f"arrivals/{self.rank}", str(self._num_arrivals))

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over all ranks of a tensor, which is overwritten."""
        if not self.is_alone:
            dist.all_reduce(values, group=None if values.is_cuda else self._control)
        return values

    def await_device(self, when: str) -> None:
        """Wait until this rank's GPU is done, but not for ever: that of another may hang.

        Args:
            when: what the ranks were doing, for the message.

        Raises:
            LostRankError, ToldElsewhereError: it did not end in time.
        """
        if self._control is None:  # a CPU is done, and so will be a GPU that waits for no other
            return
        done = torch.cuda.Event()
        done.record()
        deadline = self._clock() + self._timeout_s
        while not done.query():
            if self._clock() > deadline:
                raise self._lost(when)
            time.sleep(DEVICE_POLL_S)

    def is_first_to(self, what: str) -> bool:
        """Return whether no other rank has asked for this before; one alone is always first."""
        return self._store is None or self._store.add(f"first/{what}", 1) == 1

    def share(self, make: Callable[[], Made]) -> Made:
        """Have rank 0 make something, and give it to all.

        Raises:
            NmtkitError: what making it raised on rank 0; ToldElsewhereError on the others.
        """
        if self.is_alone:
            return make()
        error, box = None, [None]
        if self.is_first:
            box, error = _boxed(make)
        with self._between_updates():
            dist.broadcast_object_list(box, src=0, group=self._control)
        if error is not None:
            raise error
        value, exit_code = box[0] or (None, None)
        if exit_code is not None:
            raise ToldElsewhereError(exit_code)
        return value  # type: ignore[return-value]  # None where that is what was made

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors by those of rank 0, which gives equal shapes in equal order."""
        if self.is_alone:
            return
        with self._between_updates():
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def gather(self, value: Made) -> list[Made]:
        """Return everyone's value, by rank."""
        if self.is_alone:
            return [value]
        values: list[Any] = [None] * self.size
        with self._between_updates():
            dist.all_gather_object(values, value, group=self._control)
        return values

    @contextmanager
    def exchange(self, when: str) -> Iterator[None]:
        """Turn the failure of an exchange into the error that names the ranks that are lost.

        Args:
            when: what the ranks were doing, for the message.

        Raises:
            LostRankError: a rank died or does not answer; the first of the others reports it.
            ToldElsewhereError: the same on the rest; or a rank has reported an error and ended.
        """
        try:
            yield
        except RuntimeError as error:
            if type(error).__name__ == "AcceleratorError":
                raise LostRankError(
                    f"the device of rank {self.rank} failed {when} ({error}); the same command "
                    "goes on from the last checkpoint"
                ) from error
            if not self._is_broken(error):
                raise
            raise self._lost(when) from error

    def told_once(self, error: NmtkitError) -> NmtkitError:
        """Return an error of all ranks on rank 0, and on the others one that is not printed."""
        return error if self.is_first else ToldElsewhereError(error.exit_code)

    def tell_end(self, exit_code: int) -> None:
        """Let the other ranks know that this one has reported an error and ends."""
        if self._store is not None:
            self._store.set(f"answers/{self.rank}", str(exit_code))

    def leave(self) -> None:
        """Part with the others: rank 0, through which they may still exchange, as the last."""
        if self._store is None:
            return
        self._store.set(f"left/{self.rank}", "")
        if self.is_first:
            self._await_keys(self._store, [f"left/{rank}" for rank in range(self.size)], LEAVING_S)
        # Groups of gloo are left to the end of the process. Were one destroyed here, the reducer
        # of DDP would be the last to hold it, and would wait, with the interpreter's lock, for a
        # thread that may need that lock to drop the tensors of the last exchange.
        if self._control is not None:
            dist.destroy_process_group()

    @contextmanager
    def _between_updates(self) -> Iterator[None]:
        with self.exchange("between two updates"):
            self.arrive()
            yield

    def _is_broken(self, error: RuntimeError) -> bool:
        """Return whether an error of torch is the failure of an exchange."""
        is_from_gloo = "/gloo/" in str(error) or "gloo::" in str(error)
        return not self.is_alone and (isinstance(error, dist.DistError) or is_from_gloo)

    def _lost(self, when: str) -> NmtkitError:
        """Return the error of this rank, after finding out which others are still there."""
        store = self._store
        assert store is not None, "a rank that is alone has no one to lose"
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            answers = self._call_roll(store, others)
            silent = [rank for rank in others if rank not in answers]
            # One that waits in the same exchange cannot answer either, but it is not behind.
            arrivals = {rank: store.add(f"arrivals/{rank}", 0) for rank in silent}
        except RuntimeError:  # the store went with the rank, or the launcher, that kept it
            return LostRankError(_lost_message("rank 0, or the launcher, was", when))
        exit_codes = [int(answer) for answer in answers.values() if answer != PRESENT]
        if exit_codes:
            return ToldElsewhereError(max(exit_codes))
        missing = [rank for rank in silent if arrivals[rank] < self._num_arrivals] or silent
        if any(rank < self.rank and rank not in missing for rank in others):
            return ToldElsewhereError(LostRankError.exit_code)
        names = " and ".join(f"rank {rank}" for rank in missing) or "the connection between ranks"
        verb = "were" if len(missing) > 1 else "was"
        return LostRankError(_lost_message(f"{names} {verb}", when))

    def _call_roll(self, store: Store, others: list[int]) -> dict[int, bytes]:
        """Return the answers of the ranks that answer in time: `PRESENT`, or an exit code."""
        store.set(f"answers/{self.rank}", PRESENT.decode())
        keys = {rank: f"answers/{rank}" for rank in others}
        self._await_keys(store, list(keys.values()), ROLL_CALL_S)
        return {rank: store.get(key) for rank, key in keys.items() if store.check([key])}

    def _await_keys(self, store: Store, keys: list[str], timeout_s: float) -> None:
        """Wait for keys of the store; Store.wait would log when they do not come."""
        deadline = self._clock() + timeout_s
        while not store.check(keys) and self._clock() < deadline:
            time.sleep(STORE_POLL_S)


@contextmanager
def joined(
    device: torch.device, timeout_minutes: float, clock: Callable[[], float]
) -> Iterator[Ranks]:
    """Join the other ranks, if something has launched several; leave them when the block ends.

    Args:
        device: this rank's.
        timeout_minutes: a rank that does not answer for this time is lost.
        clock: seconds from an arbitrary start.

    Raises:
        LostRankError: the others cannot be reached.
        ResourceError: the block ran out of memory; the other ranks know it.
    """
    if not is_launched():
        yield Ranks()
        return
    try:
        ranks = _join(device, timedelta(minutes=timeout_minutes), clock)
    except dist.DistError as error:
        raise LostRankError(
            f"rank {os.environ['RANK']} did not find the others at {os.environ['MASTER_ADDR']} "
            f"({error}); see what ended them, or whether that address can be reached"
        ) from error
    try:
        with _as_resource_errors():
            yield ranks
    except NmtkitError as error:
        if error.exit_code in TOGETHER:
            ranks.leave()
        elif error.exit_code != LostRankError.exit_code:  # who is lost, each finds out
            ranks.tell_end(error.exit_code)
        raise
    else:
        ranks.leave()


@contextmanager
def _as_resource_errors() -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise ResourceError(
            "out of memory; take a smaller --max-tokens, or a larger machine"
        ) from error


def end_with_launcher() -> None:
    """Have this process killed when the launcher that started it, if one did, is killed."""
    launcher = os.environ.get(LAUNCHER)
    if launcher is None:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(launcher):  # which was killed before that
        os.kill(os.getpid(), signal.SIGKILL)


def _join(device: torch.device, timeout: timedelta, clock: Callable[[], float]) -> Ranks:
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    is_gpu = device.type == "cuda"
    dist.init_process_group(
        "nccl" if is_gpu else "gloo",
        store=PrefixStore("exchange", store),
        rank=rank,
        world_size=size,
        timeout=2 * timeout if is_gpu else timeout,  # it is the host that notices first
        device_id=device if is_gpu else None,
    )
    control = dist.new_group(backend="gloo", timeout=timeout) if is_gpu else None
    return Ranks(rank, size, PrefixStore("ranks", store), control, timeout.total_seconds(), clock)


def is_launched() -> bool:
    """Return whether a launcher has started this process as a rank."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def _boxed(make: Callable[[], Made]) -> tuple[list[Any], NmtkitError | None]:
    try:
        return [(make(), None)], None
    except NmtkitError as error:
        return [(None, error.exit_code)], error


def _lost_message(who: str, when: str) -> str:
    return (
        f"{who} lost {when}: died, or did not answer within --rank-timeout; the same command "
        "goes on from the last checkpoint"
    )
