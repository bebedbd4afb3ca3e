"""Ranks: the processes that train one model together, one per device.

They communicate through torch.distributed. DistributedDataParallel exchanges gradients, `Ranks.sum`
the few numbers of an update, and `Ranks.run_on_first` what rank 0 alone reads and decides. A single
process is one rank, and exchanges nothing. `nmtkit.training.exchange` defines the values that ranks
send to each other.

The launcher sets the environment variables of torchrun, by which the ranks find each other.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

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
    ReportedElsewhereError,
    ResourceError,
    StoppedError,
    is_out_of_memory,
)
from nmtkit.runtime.host_copies import HostCopy
from nmtkit.runtime.parent_process import (
    LAUNCHER,
    end_with_parent,
    is_launched,
    number_from_launcher,
)
from nmtkit.training import exchange
from nmtkit.training.exchange import Value

ROLL_CALL_S = 3.0
"""After a failed exchange, a rank that does not answer within this time is lost."""

LEAVING_S = 20.0
"""Longest time that rank 0 waits for the others to leave."""

DEVICE_POLL_S = 2e-4
STORE_POLL_S = 0.02

PRESENT = b"present"
"""Answer to a roll call by a rank that has not ended with an error."""

AGREED_EXIT_CODES = (StoppedError.exit_code, InterruptedByUserError.exit_code)
"""Exit codes of the ends that all ranks agree on: requests to stop."""


class Ranks:
    """One rank's view of all ranks that train a model together.

    Attributes:
        rank: number of this process, from 0; only rank 0 writes checkpoints, logs and
            progress.
        size: W, the number of ranks.
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
        """Store the number of this process and its connections.

        Args:
            rank, size: number of this process, and number of ranks.
            store: key-value store of all ranks; None for a single rank.
            control: group that exchanges values on the host. So the host notices the loss of a
                rank, while a device would wait for ever. None = the default group.
            timeout_s: longest wait for a device.
            clock: seconds from an arbitrary start, never going back.
        """
        self.rank = rank
        self.size = size
        self._store = store
        self._control = control
        self._timeout_s = timeout_s
        self._clock = clock
        self._num_exchanges = 0

    @property
    def is_first(self) -> bool:
        """This is rank 0."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """There is no other rank."""
        return self.size == 1

    def wrap(self, module: nn.Module, backward: Callable[[nn.Module], None]) -> nn.Module:
        """Return a module whose backward pass averages the gradients of all ranks.

        Args:
            module: the module to wrap.
            backward: runs a forward and a backward pass of it. The order in which
                DistributedDataParallel sums gradients is fixed only after a first pass; after this
                one, a resumed run sums like an uninterrupted one.
        """
        if self.is_alone:
            return module
        with self._between_updates():
            parallel = DistributedDataParallel(module, gradient_as_bucket_view=True)
            backward(parallel)
            parallel.zero_grad()
            return parallel

    def count_exchange(self) -> None:
        """Count an exchange that this rank has reached; a lost rank has reached fewer."""
        if self._store is not None:
            self._num_exchanges += 1
            self._store.set(f"exchanges/{self.rank}", str(self._num_exchanges))

    def sum(self, values: Tensor) -> Tensor:
        """Sum a tensor over all ranks, in place, and return it."""
        if not self.is_alone:
            dist.all_reduce(values, group=None if values.is_cuda else self._control)
        return values

    def read(self, values: HostCopy, when: str) -> list[float]:
        """Wait for values of this rank's device, up to the time limit: another rank's may hang.

        Args:
            values: what the device computes from exchanges with other ranks.
            when: what the ranks are doing, for the message.

        Raises:
            LostRankError, ReportedElsewhereError: they did not arrive in time; or see `exchange`.
        """
        deadline = self._clock() + self._timeout_s
        with self.exchange(when):
            # Without other ranks, there is nothing that could hang.
            while not self.is_alone and not values.has_arrived():
                if self._clock() > deadline:
                    raise self._lost(when)
                time.sleep(DEVICE_POLL_S)
            return values.tolist()

    def is_first_to(self, what: str) -> bool:
        """Return whether no other rank has called this with the same text before."""
        return self._store is None or self._store.add(f"first/{what}", 1) == 1

    def run_on_first(self, function: Callable[[], Value]) -> Value:
        """Call a function on rank 0, and return its result, a JSON value, on all ranks.

        Raises:
            NmtkitError: the error of the function on rank 0; ReportedElsewhereError on the others.
            TypeError: the result is not a value of `nmtkit.training.exchange`.
        """
        if self.is_alone:
            return function()
        error: NmtkitError | None = None
        outcome: dict[str, Any] = {}
        if self.is_first:
            try:
                outcome = {"result": function()}
            except NmtkitError as raised:
                error, outcome = raised, {"exit_code": raised.exit_code}
        with self._between_updates():
            outcome = exchange.broadcast(outcome, self._control, self.rank)
        if error is not None:
            raise error
        if "exit_code" in outcome:
            raise ReportedElsewhereError(outcome["exit_code"])
        result: Value = outcome["result"]
        return result

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors by those of rank 0, which have the same shapes in the same order."""
        if self.is_alone:
            return
        with self._between_updates():
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def gather(self, value: Value) -> list[Value]:
        """Return the JSON values of all ranks, ordered by rank; TypeError for other values."""
        if self.is_alone:
            return [value]
        with self._between_updates():
            return exchange.gather(value, self._control, self.size)

    @contextmanager
    def exchange(self, when: str) -> Iterator[None]:
        """Turn the failure of an exchange into an error that names the lost ranks.

        Args:
            when: what the ranks are doing, for the message.

        Raises:
            LostRankError: a rank died or does not answer. The lowest rank that remains raises it.
            ReportedElsewhereError: the same on the other ranks; or a rank ended with an error that
                it has reported.
        """
        try:
            yield
        except RuntimeError as error:
            if type(error).__name__ == "AcceleratorError":
                raise LostRankError(
                    f"the device of rank {self.rank} failed {when} ({error}); run the same command "
                    "again to continue from the last checkpoint"
                ) from error
            if not self._is_broken(error):
                raise
            raise self._lost(when) from error

    def report_once(self, error: NmtkitError) -> NmtkitError:
        """Return an error of all ranks on rank 0, and one that is not printed on the others."""
        return error if self.is_first else ReportedElsewhereError(error.exit_code)

    def report_end(self, exit_code: int) -> None:
        """Store for the other ranks that this one has reported an error and ends."""
        if self._store is not None:
            self._store.set(f"answers/{self.rank}", str(exit_code))

    def leave(self) -> None:
        """Leave the group of ranks; rank 0, which may hold the store, leaves last."""
        if self._store is None:
            return
        self._store.set(f"left/{self.rank}", "")
        if self.is_first:
            self._await_keys(self._store, [f"left/{rank}" for rank in range(self.size)], LEAVING_S)
        # Groups of gloo live until the process ends. If one were destroyed here, DDP's reducer
        # would hold the last reference. It would wait, with the GIL, for a thread that may need
        # the GIL to drop the tensors of the last exchange.
        if self._control is not None:
            dist.destroy_process_group()

    @contextmanager
    def _between_updates(self) -> Iterator[None]:
        with self.exchange("between two updates"):
            self.count_exchange()
            yield

    def _is_broken(self, error: RuntimeError) -> bool:
        """Return whether an error of torch is the failure of an exchange."""
        is_from_gloo = "/gloo/" in str(error) or "gloo::" in str(error)
        return not self.is_alone and (isinstance(error, dist.DistError) or is_from_gloo)

    def _lost(self, when: str) -> NmtkitError:
        """Find out which other ranks answer, and return the error that this rank raises."""
        store = self._store
        assert store is not None, "a single rank loses no other"
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            answers = self._call_roll(store, others)
            silent = [rank for rank in others if rank not in answers]
            # A rank that waits in the same exchange cannot answer either, but it has reached it.
            exchanges = {rank: store.add(f"exchanges/{rank}", 0) for rank in silent}
        except RuntimeError:  # the rank or launcher that held the store has ended
            return LostRankError(_lost_message("rank 0, or the launcher, was", when))
        exit_codes = [int(answer) for answer in answers.values() if answer != PRESENT]
        if exit_codes:
            return ReportedElsewhereError(max(exit_codes))
        missing = [rank for rank in silent if exchanges[rank] < self._num_exchanges] or silent
        if any(rank < self.rank and rank not in missing for rank in others):
            return ReportedElsewhereError(LostRankError.exit_code)
        names = " and ".join(f"rank {rank}" for rank in missing) or "the connection between ranks"
        verb = "were" if len(missing) > 1 else "was"
        return LostRankError(_lost_message(f"{names} {verb}", when))

    def _call_roll(self, store: Store, others: list[int]) -> dict[int, bytes]:
        """Return the answers that come in time, by rank: `PRESENT`, or an exit code."""
        store.set(f"answers/{self.rank}", PRESENT.decode())
        keys = {rank: f"answers/{rank}" for rank in others}
        self._await_keys(store, list(keys.values()), ROLL_CALL_S)
        return {rank: store.get(key) for rank, key in keys.items() if store.check([key])}

    def _await_keys(self, store: Store, keys: list[str], timeout_s: float) -> None:
        """Wait for keys of the store; Store.wait would log a timeout."""
        deadline = self._clock() + timeout_s
        while not store.check(keys) and self._clock() < deadline:
            time.sleep(STORE_POLL_S)


@contextmanager
def join_ranks(
    device: torch.device, timeout_minutes: float, clock: Callable[[], float]
) -> Iterator[Ranks]:
    """Join the other ranks if a launcher started several; leave them when the context ends.

    Args:
        device: the device of this rank.
        timeout_minutes: a rank that does not answer for this time is lost.
        clock: seconds from an arbitrary start, never going back.

    Raises:
        ConfigError: the launcher's environment variables are malformed.
        LostRankError: the others cannot be reached.
        ResourceError: the context ran out of memory; the other ranks are informed.
    """
    if not is_launched():
        yield Ranks()
        return
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
        number_from_launcher(name, 0)
    try:
        ranks = _join(device, timedelta(minutes=timeout_minutes), clock)
    except dist.DistError as error:
        raise LostRankError(
            f"rank {os.environ['RANK']} cannot reach the others at {os.environ['MASTER_ADDR']} "
            f"({error}); check their logs, and that this address can be reached"
        ) from error
    try:
        with _as_resource_errors():
            yield ranks
    except NmtkitError as error:
        if error.exit_code in AGREED_EXIT_CODES:
            ranks.leave()
        elif error.exit_code != LostRankError.exit_code:  # each finds lost ranks itself
            ranks.report_end(error.exit_code)
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
            "out of memory; use a smaller --max-tokens or a larger machine"
        ) from error


def end_with_launcher() -> None:
    """Have this process killed when its launcher, if there is one, ends."""
    launcher = os.environ.get(LAUNCHER)
    if launcher is not None:
        end_with_parent(int(launcher))


def _join(device: torch.device, timeout: timedelta, clock: Callable[[], float]) -> Ranks:
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    is_gpu = device.type == "cuda"
    dist.init_process_group(
        "nccl" if is_gpu else "gloo",
        store=PrefixStore("exchange", store),
        rank=rank,
        world_size=size,
        timeout=2 * timeout if is_gpu else timeout,  # the host times out first
        device_id=device if is_gpu else None,
    )
    control = dist.new_group(backend="gloo", timeout=timeout) if is_gpu else None
    return Ranks(rank, size, _own_store(store), control, timeout.total_seconds(), clock)


def have_joined(store: Store, num_ranks: int) -> bool:
    """Return whether all ranks have joined each other and reached an exchange.

    Args:
        store: the launcher's.
        num_ranks: W, the number of ranks.
    """
    return _own_store(store).check([f"exchanges/{rank}" for rank in range(num_ranks)])


def _own_store(store: Store) -> Store:
    """Return the part of the launcher's store that `Ranks` uses; torch uses others."""
    return PrefixStore("ranks", store)


def _lost_message(who: str, when: str) -> str:
    return (
        f"{who} lost {when}: died, or did not answer within --rank-timeout; run the same command "
        "again to continue from the last checkpoint"
    )
