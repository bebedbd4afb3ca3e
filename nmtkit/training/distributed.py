"""Ranks: the processes that train one model together, one per device.

They communicate through torch.distributed. DistributedDataParallel exchanges gradients, and
`Ranks.sum` the few numbers of an update. Every rank reads dataset and run for itself, and all
compare what they have read; only rank 0 writes. A single process is one rank, and exchanges
nothing. Ranks send each other JSON, so none runs code that another one sent.

The launcher sets the environment variables of torchrun, by which the ranks find each other.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
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
    DamagedError,
    InterruptedByUserError,
    LostRankError,
    NmtkitError,
    ReportedElsewhereError,
    ResourceError,
    StoppedError,
    is_out_of_memory,
)
from nmtkit.runtime.environment import (
    LAUNCHER,
    end_with_parent,
    is_launched,
    number_from_launcher,
)
from nmtkit.storage.manifest import Json

ROLL_CALL_S = 3.0
"""After a failed exchange, a rank that does not answer within this time is lost."""

LEAVING_S = 20.0
"""Longest time that rank 0 waits for the others to leave."""

STORE_POLL_S = 0.02

PRESENT = b"present"
"""Answer to a roll call by a rank that has not ended with an error."""

AGREED_EXIT_CODES = (StoppedError.exit_code, InterruptedByUserError.exit_code)
"""Exit codes of the ends that all ranks agree on: requests to stop."""


Result = TypeVar("Result")
Value = TypeVar("Value", bound=Json)


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the number of this process and its connections.

        Args:
            rank, size: number of this process, and number of ranks.
            store: key-value store of all ranks; None for a single rank.
            control: group that exchanges values on the host. So the host notices the loss of a
                rank, while a device would wait for ever. None = the default group.
            clock: seconds from an arbitrary start, never going back.
        """
        self.rank = rank
        self.size = size
        self._store = store
        self._control = control
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

    def is_first_to(self, what: str) -> bool:
        """Return whether no other rank has called this with the same text before."""
        return self._store is None or self._store.add(f"first/{what}", 1) == 1

    def run_on_all(self, function: Callable[[], Result]) -> Result:
        """Call a function on every rank, and return its results; wait until all are done.

        Raises:
            NmtkitError: the error of the function, on the first rank that has one.
            ReportedElsewhereError: on the others, then.
        """
        error: NmtkitError | None = None
        try:
            result = function()
        except NmtkitError as raised:
            error = raised
        exit_codes = self.gather(error.exit_code if error else 0)
        if any(exit_codes):
            code = next(filter(None, exit_codes))
            is_first_failure = self.rank == exit_codes.index(code)
            raise error if error and is_first_failure else ReportedElsewhereError(code)
        return result

    def run_on_first(self, function: Callable[[], object]) -> None:
        """Call a function, which may write, on rank 0 only; see `run_on_all`."""
        self.run_on_all(lambda: function() if self.is_first else None)

    def read(
        self, what: str, function: Callable[[], Result], fingerprint: Callable[[Result], str]
    ) -> Result:
        """Read something on every rank, and check that all have read the same.

        Args:
            what: is read, for the message.
            function: reads it.
            fingerprint: returns a hash of what is read.

        Raises:
            DamagedError: this rank is the first that has read something else than rank 0.
            NmtkitError, ReportedElsewhereError: see `run_on_all`.
        """
        result = self.run_on_all(function)
        found = self.gather(fingerprint(result))
        strays = [rank for rank, one in enumerate(found) if one != found[0]]
        if strays[:1] == [self.rank]:
            raise DamagedError(
                f"rank {self.rank} reads another {what} than rank 0; give all ranks the same data "
                "and the same --out, in a folder that they share"
            )
        if strays:
            raise ReportedElsewhereError(DamagedError.exit_code)
        return result

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all ranks, ordered by rank.

        A value is None, a bool, int, float or str, or a list or dictionary of such values, at any
        depth. Every rank receives it unchanged, also floats that are not finite and ints beyond 64
        bits.

        Raises:
            TypeError: JSON cannot hold the value; nothing is sent.
            LostRankError, ReportedElsewhereError: see `exchange`.
        """
        if self.is_alone:
            return [value]
        with self._between_updates():
            return _gather(value, self._control, self.size)

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
        except torch.AcceleratorError as error:
            if is_out_of_memory(error):
                raise
            raise LostRankError(
                f"the device of rank {self.rank} failed {when} ({error}); run the same command "
                "again to continue from the last checkpoint"
            ) from error
        except RuntimeError as error:
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
    return Ranks(rank, size, _own_store(store), control, clock)


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


def _gather(value: Value, group: dist.ProcessGroup | None, size: int) -> list[Value]:
    """Return the values of all ranks, ordered by rank, exchanged by a group on the host."""
    content = _encoded(value)
    lengths = torch.zeros(size, dtype=torch.int64)
    dist.all_gather(list(lengths.split(1)), torch.tensor([len(content)]), group=group)
    padded = content.new_zeros(int(lengths.max()))
    padded[: len(content)] = content
    contents = [torch.empty_like(padded) for _ in range(size)]
    dist.all_gather(contents, padded, group=group)
    return [_decoded(one[:length]) for one, length in zip(contents, lengths.tolist(), strict=True)]


def _encoded(value: Json) -> Tensor:
    """Return the bytes of a value, (bytes,), uint8; TypeError if JSON cannot hold it."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _decoded(content: Tensor) -> Any:
    return json.loads(content.numpy().tobytes())
