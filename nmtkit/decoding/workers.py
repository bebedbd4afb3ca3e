"""Translation by several processes, each with its own device."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.long_lines import with_warnings
from nmtkit.decoding.requests import Answer, Request
from nmtkit.decoding.translator import Translator
from nmtkit.errors import LostRankError, NmtkitError, ResourceError, is_out_of_memory
from nmtkit.runtime.workers import Worker
from nmtkit.text.codec import KINDS
from nmtkit.text.lines import numbered_chunks

Message = list[Any]
"""What a worker sends: the kind of its target vocabulary, once loaded; answers."""


class Workers:
    """A translator that divides each chunk of lines among several processes."""

    def __init__(
        self,
        paths: Sequence[Path],
        recipe: TranslateRecipe,
        warn: Callable[[str], None],
        num_workers: int,
    ) -> None:
        """Start the processes, and wait until they have loaded the models.

        Args:
            paths, recipe, warn: as for `load_translator`; CPU threads are divided among workers.
            num_workers: number of processes.

        Raises:
            NmtkitError: a worker cannot load the models.
            LostRankError: a process died.
        """
        threads = recipe.runtime.threads or torch.get_num_threads()
        runtime = replace(recipe.runtime, threads=max(1, threads // num_workers))
        self._recipe = recipe
        self._warn = warn
        self._workers: list[Worker[Message]] = []
        for number in range(num_workers):
            self._workers.append(Worker(_serve, partial(_lost, number)))
            self._workers[-1].send((number, paths, replace(recipe, runtime=runtime)))
        self._target_kind: str = self._receive()[0]

    def answer_all(self, requests: Iterable[Request]) -> Iterator[list[Answer]]:
        """Yield the answers to requests in order, a chunk at a time, divided among the workers.

        Raises:
            DataError: as for `Translator.answer_all`.
            LostRankError: a process died.
        """
        yield from with_warnings(self._divided(requests), self._warn)

    def _divided(self, requests: Iterable[Request]) -> Iterator[list[Answer]]:
        size = len(self._workers)
        for first, chunk in numbered_chunks(requests, self._recipe.translation.chunk_lines):
            bounds = [len(chunk) * number // size for number in range(size + 1)]
            for worker, begin, end in zip(self._workers, bounds[:-1], bounds[1:], strict=True):
                # Other keys of a JSON line need not be pickled: this process writes the output.
                part = [replace(request, others={}) for request in chunk[begin:end]]
                worker.send((part, first + begin))
            yield [
                replace(answer, request=request)
                for request, answer in zip(chunk, self._receive(), strict=True)
            ]

    def summarize(self, repair_counts: Counter[bool | None]) -> str:
        """Return the line of `Translator.summarize`."""
        return KINDS[self._target_kind].summarize(repair_counts)

    def _receive(self) -> list[Any]:
        """Join the next list of each worker; raise the first error when all have answered."""
        received: list[Any] = []
        errors: list[NmtkitError] = []
        for worker in self._workers:
            try:
                received += worker.receive()
            except NmtkitError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return received


def open_translator(
    paths: Sequence[Path], recipe: TranslateRecipe, warn: Callable[[str], None]
) -> "Translator | Workers":
    """Load models in this process, or in several by the recipe's `devices`; see `Workers`."""
    num_gpus = torch.cuda.device_count() if recipe.runtime.device != "cpu" else 0
    num_workers = recipe.translation.devices or max(num_gpus, 1)
    if num_workers == 1:
        return load_translator(paths, recipe, warn)
    return Workers(paths, recipe, warn, num_workers)


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
                answers = translator.answer(requests, first_number)
        except NmtkitError as error:
            connection.send(error)
        else:
            connection.send(answers)


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
