"""Translation by several processes, each with its own device."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.answers import Answer, BatchResult, Chunk, Request, with_warnings
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.translator import Translator
from nmtkit.errors import LostRankError, NmtkitError, ResourceError, is_out_of_memory
from nmtkit.runtime.workers import Worker, wait_for_any
from nmtkit.text.codec import KINDS

Message = list[Any]
"""What a worker sends: the kind of its target vocabulary, once loaded; the result of a batch."""


@dataclass
class _Part:
    """A worker's part of a chunk.

    Attributes:
        first_number: number of its first line.
        requests: its lines.
        answers: the answers so far, in order.
        num_taken: how many of them the caller has.
        error: the error that ended its translation.
    """

    first_number: int
    requests: Sequence[Request]
    answers: list[Answer] = field(default_factory=list)
    num_taken: int = 0
    error: NmtkitError | None = None

    @property
    def is_finished(self) -> bool:
        """All lines are translated, or an error has occurred."""
        return self.error is not None or len(self.answers) == len(self.requests)

    def message(self) -> tuple[list[Request], int]:
        """Return what its worker receives: requests without other keys, which may not pickle."""
        return [replace(one, others={}) for one in self.requests], self.first_number

    def take(self) -> list[Answer]:
        """Return the answers since the last call, with the requests as they were given."""
        first, self.num_taken = self.num_taken, len(self.answers)
        answers = self.answers[first:]
        requests = self.requests[first : self.num_taken]
        return [replace(one, request=own) for one, own in zip(answers, requests, strict=True)]


class Workers:
    """A translator that divides each chunk of lines among several processes."""

    def __init__(
        self,
        paths: Sequence[Path],
        recipe: TranslateRecipe,
        warn: Callable[[str], None],
        num_workers: int,
        *,
        reads_ahead: bool = False,
    ) -> None:
        """Start the processes, and wait until they have loaded the models.

        Args:
            paths, recipe, warn: as for `load_translator`; CPU threads are divided among workers.
            num_workers: number of processes.
            reads_ahead: read the next chunk before the results of one are complete, so that no
                worker waits for another; for input that does not keep its reader waiting.

        Raises:
            NmtkitError: a worker cannot load the models.
            LostRankError: a process died.
        """
        threads = recipe.runtime.threads or torch.get_num_threads()
        runtime = replace(recipe.runtime, threads=max(1, threads // num_workers))
        self._warn = warn
        self._num_chunks = 2 if reads_ahead else 1
        self._workers: list[Worker[Message]] = []
        for number in range(num_workers):
            self._workers.append(Worker(_serve, partial(_lost, number)))
            self._workers[-1].send((number, paths, replace(recipe, runtime=runtime)))
        # Dictionaries keep their order: that of the parts of a chunk.
        self._work: dict[Worker[Message], deque[_Part]] = {one: deque() for one in self._workers}
        self._target_kind: str = {worker.receive()[0] for worker in self._workers}.pop()

    def answer_all(self, chunks: Iterable[Chunk]) -> Iterator[BatchResult]:
        """Translate chunks of lines, each divided among the workers; yield each batch's result.

        The answers of all results together are in the order of the lines.

        Raises:
            DataError: as for `Translator.answer_all`.
            LostRankError: a process died.
        """
        self._drop_unfinished()
        yield from with_warnings(self._results(chunks), self._warn)

    def _results(self, chunks: Iterable[Chunk]) -> Iterator[BatchResult]:
        divided: deque[list[_Part]] = deque()
        remaining, error = iter(chunks), None
        while error is None:
            try:
                first, chunk = next(remaining)
            except StopIteration:
                break
            except NmtkitError as reading:
                error = reading  # raised after the answers to the lines before
            else:
                divided.append(self._divide(chunk, first))
                if len(divided) == self._num_chunks:
                    yield from self._finish(divided.popleft())
        for parts in divided:
            yield from self._finish(parts)
        if error:
            raise error

    def _divide(self, chunk: Sequence[Request], first: int) -> list[_Part]:
        """Add a part of a chunk to the work of each worker."""
        size = len(self._workers)
        bounds = [len(chunk) * number // size for number in range(size + 1)]
        parts = [_Part(first + begin, chunk[begin:end]) for begin, end in pairwise(bounds)]
        for worker, part in zip(self._work, parts, strict=True):
            if part.requests:
                self._work[worker].append(part)
                if len(self._work[worker]) == 1:
                    worker.send(part.message())
        return parts

    def _finish(self, parts: Sequence[_Part]) -> Iterator[BatchResult]:
        """Yield all results until these parts are translated, and their answers in order."""
        for part in parts:
            yield BatchResult(part.take(), 0, 0)
            while not part.is_finished:
                for worker in wait_for_any([one for one, parts in self._work.items() if parts]):
                    result = self._receive_result(worker)
                    yield BatchResult(part.take(), result.num_lines, result.num_tokens)
            if part.error:
                raise part.error

    def _receive_result(self, worker: Worker[Message]) -> BatchResult:
        """Receive the result of a batch; if it was the last of a part, send the next part."""
        work = self._work[worker]
        result = BatchResult((), 0, 0)
        try:
            (result,) = worker.receive()
        except NmtkitError as error:
            work[0].error = error
        work[0].answers += result.answers
        if work[0].is_finished:
            work.popleft()
            if work:
                worker.send(work[0].message())
        return result

    def _drop_unfinished(self) -> None:
        """Wait for the parts that are left over after an error."""
        for worker, parts in self._work.items():
            while len(parts) > 1:
                parts.pop()
            while parts:
                self._receive_result(worker)

    def summarize(self, repair_counts: Counter[bool | None]) -> str:
        """Return the line of `Translator.summarize`."""
        return KINDS[self._target_kind].summarize(repair_counts)


def open_translator(
    paths: Sequence[Path],
    recipe: TranslateRecipe,
    warn: Callable[[str], None],
    report: Callable[[str], None],
    *,
    reads_ahead: bool = False,
) -> "Translator | Workers":
    """Load models in this process, or in several by the recipe's `devices`; see `Workers`."""
    num_gpus = torch.cuda.device_count() if recipe.runtime.device != "cpu" else 0
    num_workers = recipe.translation.devices or max(num_gpus, 1)
    if num_workers == 1:
        return load_translator(paths, recipe, warn, report)
    return Workers(paths, recipe, warn, num_workers, reads_ahead=reads_ahead)


def _lost(number: int, _exit_code: int | None) -> LostRankError:
    return LostRankError(
        f"translating process {number} died (out of memory?); give fewer --devices, or smaller "
        "--max-tokens"
    )


def _serve(connection: "Connection[Message | Exception, Any]") -> None:
    """Serve a `Workers`: load models on the device of a number, then answer parts of chunks."""
    number, paths, recipe = connection.recv()
    os.environ["LOCAL_RANK"] = str(number)
    with _errors_of_torch():
        translator = load_translator(paths, recipe, _no_warning)
    connection.send([translator.target_kind])
    while True:
        requests, first_number = connection.recv()
        try:
            with _errors_of_torch():
                for result in translator.answer_chunk(requests, first_number):
                    connection.send([result])
        except NmtkitError as error:
            connection.send(error)


def _no_warning(message: str) -> None:
    raise AssertionError(f"answers carry their warnings: {message}")


@contextmanager
def _errors_of_torch() -> Iterator[None]:
    """Turn errors of torch into errors that the parent process can raise."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise ResourceError(
                "a translating process is out of memory; give smaller --max-tokens or "
                "--batch-size, or fewer --devices"
            ) from error
        raise NmtkitError(
            f"a bug in nmtkit: {type(error).__name__}: {error}; without --devices, "
            "`nmtkit --debug ...` shows where"
        ) from error
