"""Translation and alignment by several processes, each with its own device."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import torch

from nmtkit.config.schema import AlignRecipe, RuntimeConfig, TranslateRecipe
from nmtkit.decoding.aligner import Aligner
from nmtkit.decoding.answers import Results, with_warnings
from nmtkit.decoding.loading import load_aligner, load_translator
from nmtkit.decoding.translator import Translator
from nmtkit.errors import LostRankError, NmtkitError, ResourceError, is_out_of_memory
from nmtkit.model.attention import aligning_attention
from nmtkit.runtime.workers import Worker, wait_for_any
from nmtkit.storage.model_description import shape_from, stored_aligning_attention
from nmtkit.storage.run_folder import find_model
from nmtkit.text.translations import SPAN_KEYS

Message = list[Any]
"""What a worker sends, and its new warnings: the kind of its target vocabulary, once loaded; the
result of a batch."""


class Loader(Protocol):
    """Loads what answers lines, in a process; see `load_translator` and `load_aligner`."""

    def __call__(
        self, paths: Sequence[Path], recipe: Any, warn: Callable[[str], None]
    ) -> Translator | Aligner:
        """Load models from paths, by the recipe of the command."""


@dataclass
class _Part:
    """A worker's part of a chunk.

    Attributes:
        first_number: number of its first line.
        requests: its lines.
        answers: the answers so far, in order.
        num_taken: how many of them the caller has.
        error: the error that ended its work.
    """

    first_number: int
    requests: Sequence[Any]
    answers: list[Any] = field(default_factory=list)
    num_taken: int = 0
    error: NmtkitError | None = None

    @property
    def is_finished(self) -> bool:
        """All lines are answered, or an error has occurred."""
        return self.error is not None or len(self.answers) == len(self.requests)

    def message(self) -> tuple[list[Any], int]:
        """Return what its worker receives: requests without keys of the user's, maybe too deep."""
        own = [{key: one.others[key] for key in SPAN_KEYS & {*one.others}} for one in self.requests]
        requests = zip(self.requests, own, strict=True)
        return [replace(one, others=others) for one, others in requests], self.first_number

    def take(self) -> list[Any]:
        """Return the answers since the last call, with the requests as they were given."""
        first, self.num_taken = self.num_taken, len(self.answers)
        answers = self.answers[first:]
        requests = self.requests[first : self.num_taken]
        return [replace(one, request=own) for one, own in zip(answers, requests, strict=True)]


class Workers:
    """A translator or an aligner that divides each chunk of lines among several processes.

    Attributes:
        target_kind: kind of the target vocabulary, a key of `KINDS`.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        recipe: TranslateRecipe | AlignRecipe,
        warn: Callable[[str], None],
        num_workers: int,
        *,
        load: Loader = load_translator,
        reads_ahead: bool = False,
    ) -> None:
        """Start the processes, and wait until they have loaded the models.

        Args:
            paths, recipe, warn: as for `load`; CPU threads are divided among workers.
            num_workers: number of processes.
            load: loads the models in each process.
            reads_ahead: read the next chunk before the results of one are complete, so that no
                worker waits for another; for input that does not keep its reader waiting.

        Raises:
            NmtkitError: a worker cannot load the models.
            LostRankError: a process died.
        """
        threads = recipe.runtime.threads or torch.get_num_threads()
        runtime = replace(recipe.runtime, threads=max(1, threads // num_workers))
        self._warn = warn
        self._warned: set[str] = set()
        self._num_chunks = 2 if reads_ahead else 1
        self._workers: list[Worker[Message]] = []
        for number in range(num_workers):
            self._workers.append(Worker(_serve, partial(_lost, number)))
            self._workers[-1].send((number, load, paths, replace(recipe, runtime=runtime)))
        # Dictionaries keep their order: that of the parts of a chunk.
        self._work: dict[Worker[Message], deque[_Part]] = {one: deque() for one in self._workers}
        self.target_kind: str = {self._receive(worker) for worker in self._workers}.pop()

    def answer_all(self, chunks: Iterable[tuple[int, Sequence[Any]]]) -> Iterator[Results[Any]]:
        """Answer chunks of lines, each divided among the workers; yield each batch's result.

        The answers of all results together are in the order of the lines.

        Raises:
            DataError: as for `answer_all` of `Translator` and `Aligner`.
            LostRankError: a process died.
        """
        self._drop_unfinished()
        yield from with_warnings(self._results(chunks), self._warn)

    def _results(self, chunks: Iterable[tuple[int, Sequence[Any]]]) -> Iterator[Results[Any]]:
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

    def _divide(self, chunk: Sequence[Any], first: int) -> list[_Part]:
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

    def _finish(self, parts: Sequence[_Part]) -> Iterator[Results[Any]]:
        """Yield all results until these parts are answered, and their answers in order."""
        for part in parts:
            yield Results[Any](part.take(), 0, 0)
            while not part.is_finished:
                for worker in wait_for_any([one for one, parts in self._work.items() if parts]):
                    result = self._receive_result(worker)
                    yield Results[Any](part.take(), result.num_lines, result.num_tokens)
            if part.error:
                raise part.error

    def _receive_result(self, worker: Worker[Message]) -> Results[Any]:
        """Receive the result of a batch; if it was the last of a part, send the next part."""
        work = self._work[worker]
        result = Results[Any]((), 0, 0)
        try:
            result = self._receive(worker)
        except NmtkitError as error:
            work[0].error = error
        work[0].answers += result.answers
        if work[0].is_finished:
            work.popleft()
            if work:
                worker.send(work[0].message())
        return result

    def _receive(self, worker: Worker[Message]) -> Any:
        """Receive a message without its warnings, each of which is passed on once."""
        received, warnings = worker.receive()
        for warning in (one for one in warnings if one not in self._warned):
            self._warned.add(warning)
            self._warn(warning)
        return received

    def _drop_unfinished(self) -> None:
        """Wait for the parts that are left over after an error."""
        for worker, parts in self._work.items():
            while len(parts) > 1:
                parts.pop()
            while parts:
                self._receive_result(worker)


def open_translator(
    paths: Sequence[Path],
    recipe: TranslateRecipe,
    warn: Callable[[str], None],
    report: Callable[[str], None],
    *,
    reads_ahead: bool = False,
) -> "Translator | Workers":
    """Load models in this process, or in several by the recipe's `devices`; see `Workers`."""
    if recipe.output.alignments or recipe.output.attention:
        _report_attention(paths, report)
    num_workers = _num_workers(recipe.translation.devices, recipe.runtime)
    if num_workers == 1:
        return load_translator(paths, recipe, warn)
    return Workers(paths, recipe, warn, num_workers, reads_ahead=reads_ahead)


def open_aligner(
    paths: Sequence[Path],
    recipe: AlignRecipe,
    warn: Callable[[str], None],
    report: Callable[[str], None],
    *,
    reads_ahead: bool = False,
) -> "Aligner | Workers":
    """Load models in this process, or in several by the recipe's `devices`; see `Workers`."""
    _report_attention(paths, report)
    num_workers = _num_workers(recipe.aligning.devices, recipe.runtime)
    if num_workers == 1:
        return load_aligner(paths, recipe, warn)
    return Workers(paths, recipe, warn, num_workers, load=load_aligner, reads_ahead=reads_ahead)


def _report_attention(paths: Iterable[Path], report: Callable[[str], None]) -> None:
    """Report where the alignments of models are read."""
    for path in paths:
        config = shape_from(path, None)
        stored = stored_aligning_attention(find_model(path), config.decoder_layers)
        found = aligning_attention(config, stored)
        where = f"layer {found.layer + 1} of {config.decoder_layers}"
        if found.head is not None:
            target = ", given the whole target" if found.sees_target else ""
            how = f"head {found.head + 1} of decoder {where}, which was trained for them{target}"
        elif stored is not None:
            step = "reads" if found.is_shifted else "predicts"
            how = f"decoder {where}, by the step that {step} a word, as --choose-layer stored"
        else:
            how = f"decoder {where}; `nmtkit align --choose-layer` finds and stores the best one"
        report(f"{path}: alignments are read at {how}")


def _num_workers(devices: int, runtime: RuntimeConfig) -> int:
    """Return the number of processes; without a setting, one per GPU."""
    num_gpus = torch.cuda.device_count() if runtime.device != "cpu" else 0
    return devices or max(num_gpus, 1)


def _lost(number: int, _exit_code: int | None) -> LostRankError:
    return LostRankError(
        f"process {number} of --devices died (out of memory?); give fewer --devices, or smaller "
        "--max-tokens"
    )


def _serve(connection: "Connection[Message | Exception, Any]") -> None:
    """Serve a `Workers`: load models on the device of a number, then answer parts of chunks."""
    number, load, paths, recipe = connection.recv()
    os.environ["LOCAL_RANK"] = str(number)
    warnings: list[str] = []
    with _errors_of_torch():
        loaded = load(paths, recipe, warnings.append)
    connection.send([loaded.target_kind, warnings])
    while True:
        requests, first_number = connection.recv()
        warnings.clear()
        try:
            with _errors_of_torch():
                for result in loaded.answer_chunk(requests, first_number):
                    connection.send([result, warnings])
        except NmtkitError as error:
            connection.send(error)


@contextmanager
def _errors_of_torch() -> Iterator[None]:
    """Turn errors of torch into errors that the parent process can raise."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise ResourceError(
                "a process of --devices is out of memory; give smaller --max-tokens or "
                "--batch-size, or fewer --devices"
            ) from error
        raise NmtkitError(
            f"a bug in nmtkit: {type(error).__name__}: {error}; without --devices, "
            "`nmtkit --debug ...` shows where"
        ) from error
