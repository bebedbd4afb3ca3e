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
        """Store where this process stands.

        Args:
            rank, size: its number, and how many there are.
            store: what they know of each other beside exchanges; None for one alone.
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
        """Let the others know that this rank waits for them: should one be lost, it is not this."""
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
        """Tell whether no other rank has asked for this before; one alone always is."""
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
            LostRankError: a rank died or does not answer; told by the first of the others.
            ToldElsewhereError: likewise on the rest; or a rank ended with an error that it told.
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
        """Return an error that all ranks meet for rank 0, and a silent end for the others."""
        return error if self.is_first else ToldElsewhereError(error.exit_code)

    def tell_end(self, exit_code: int) -> None:
        """Let the other ranks know that this one ends, and has told why."""
        if self._store is not None:
            self._store.set(f"ended/{self.rank}", str(exit_code))

    def leave(self) -> None:
        """Part with the others: rank 0, through which they may still exchange, as the last."""
        if self._store is None:
            return
        self._store.set(f"left/{self.rank}", "")
        others = [f"left/{rank}" for rank in range(self.size)] if self.is_first else []
        deadline = self._clock() + LEAVING_S
        while not all(self._store.check([key]) for key in others) and self._clock() < deadline:
            time.sleep(LEAVING_S / 1000)
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
        """Tell the failure of an exchange from other errors of torch."""
        is_told_by_gloo = "/gloo/" in str(error) or "gloo::" in str(error)
        return not self.is_alone and (isinstance(error, dist.DistError) or is_told_by_gloo)

    def _lost(self, when: str) -> NmtkitError:
        """Find out which ranks are still there, and make the error of this one."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            silent, ended = self._call_roll(others)
            missing = [rank for rank in silent if self._is_behind(rank)] or silent
        except RuntimeError:  # the store went with the rank, or the launcher, that kept it
            return LostRankError(_told("rank 0, or the launcher, was", when))
        if ended:
            return ToldElsewhereError(max(ended))
        if any(rank < self.rank and rank not in missing for rank in others):
            return ToldElsewhereError(LostRankError.exit_code)
        names = " and ".join(f"rank {rank}" for rank in missing) or "the connection between ranks"
        return LostRankError(_told(f"{names} {'were' if len(missing) > 1 else 'was'}", when))

    def _is_behind(self, rank: int) -> bool:
        """Tell whether a rank that does not answer has not come as far as this one."""
        assert self._store is not None, "a rank that is alone has no one to lose"
        key = f"arrivals/{rank}"
        return not self._store.check([key]) or int(self._store.get(key)) < self._num_arrivals

    def _call_roll(self, others: list[int]) -> tuple[list[int], list[int]]:
        """Return which ranks are silent, and the exit codes of those that told an error."""
        store = self._store
        assert store is not None, "a rank that is alone has no one to lose"
        store.set(f"present/{self.rank}", "")
        deadline = self._clock() + ROLL_CALL_S
        while True:
            ended = [rank for rank in others if store.check([f"ended/{rank}"])]
            silent = [
                rank
                for rank in others
                if rank not in ended and not store.check([f"present/{rank}"])
            ]
            if not silent or self._clock() > deadline:
                return silent, [int(store.get(f"ended/{rank}")) for rank in ended]
            time.sleep(ROLL_CALL_S / 30)


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
        ResourceError: the block ran out of memory, which the others are told.
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
        with _want_of_memory_told():
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
def _want_of_memory_told() -> Iterator[None]:
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
    """Tell whether a launcher has started this process as one rank of several, or of one."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def _boxed(make: Callable[[], Made]) -> tuple[list[Any], NmtkitError | None]:
    try:
        return [(make(), None)], None
    except NmtkitError as error:
        return [(None, error.exit_code)], error


def _told(who: str, when: str) -> str:
    return (
        f"{who} lost {when}: died, or did not answer within --rank-timeout; the same command "
        "goes on from the last checkpoint"
    )
