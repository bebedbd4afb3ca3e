"""Several processes that share the lines of an input, a device each."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.requests import Answer, Request
from nmtkit.decoding.translator import Translator
from nmtkit.errors import LostRankError, NmtkitError, ResourceError, is_out_of_memory
from nmtkit.runtime.workers import start_worker

_READY: list[Answer] = []
"""What a worker says when its models are loaded."""

_TOLD = (NmtkitError, MemoryError, RuntimeError)
"""What a worker tells; torch raises RuntimeErrors. Of anything else it dies, with a traceback."""


class Workers:
    """Translates as one `Translator` does, in several processes."""

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
            num_workers: how many.

        Raises:
            NmtkitError: what loading the models raised.
            LostRankError: a process died.
        """
        threads = recipe.runtime.threads or torch.get_num_threads()
        runtime = replace(recipe.runtime, threads=max(1, threads // num_workers))
        self._recipe = recipe
        self._warn = warn
        self._is_warned = False
        self._connections: list[Connection] = []
        for number in range(num_workers):
            own, other = multiprocessing.Pipe()
            arguments = (other, number, paths, replace(recipe, runtime=runtime))
            start_worker(_work, arguments, [signal.SIGINT])
            other.close()
            self._connections.append(own)
        for number in range(num_workers):
            self._receive(number)

    def answer_all(self, requests: Iterable[Request]) -> Iterator[list[Answer]]:
        """Answer requests in order, a chunk at a time, each worker its part of it.

        Raises:
            DataError: as `Translator.answer_all`.
            LostRankError: a process died.
        """
        remaining = iter(requests)
        number = 1
        self._is_warned = False
        while chunk := list(islice(remaining, self._recipe.translation.chunk_lines)):
            size = len(self._connections)
            cuts = [len(chunk) * worker // size for worker in range(size + 1)]
            for worker, connection in enumerate(self._connections):
                # What was told beside is for this process alone to pass on.
                part = [
                    replace(request, others={})
                    for request in chunk[cuts[worker] : cuts[worker + 1]]
                ]
                with suppress(BrokenPipeError):  # the missing answer tells
                    connection.send((part, number + cuts[worker]))
            answers = [answer for worker in range(size) for answer in self._receive(worker)]
            yield [
                replace(answer, request=request)
                for request, answer in zip(chunk, answers, strict=True)
            ]
            number += len(chunk)

    def _receive(self, worker: int) -> list[Answer]:
        try:
            answers, warnings, error = self._connections[worker].recv()
        except (EOFError, ConnectionResetError):
            raise LostRankError(
                f"translating process {worker} died (out of memory?); give fewer --devices, or "
                "smaller --max-tokens"
            ) from None
        if warnings and not self._is_warned:
            self._is_warned = True
            self._warn(warnings[0])
        if error is not None:
            raise error
        return list(answers)


def open_translator(
    paths: Sequence[Path], recipe: TranslateRecipe, warn: Callable[[str], None]
) -> "Translator | Workers":
    """Load models, in this process or in as many as the recipe's `devices`; see `Workers`."""
    num_gpus = torch.cuda.device_count() if recipe.runtime.device != "cpu" else 0
    num_workers = recipe.translation.devices or max(num_gpus, 1)
    if num_workers == 1:
        return load_translator(paths, recipe, warn)
    return Workers(paths, recipe, warn, num_workers)


def _work(
    connection: Connection, number: int, paths: Sequence[Path], recipe: TranslateRecipe
) -> None:
    """Load the models on the device of a number, and answer until nobody asks any more."""
    os.environ["LOCAL_RANK"] = str(number)
    warnings: list[str] = []
    with suppress(EOFError, OSError):  # the process that asks is gone
        try:
            translator = load_translator(paths, recipe, warnings.append)
        except _TOLD as error:
            connection.send((_READY, warnings, _told(error)))
            return
        connection.send((_READY, warnings, None))
        while True:
            requests, first_number = connection.recv()
            warnings.clear()
            answers, told = _READY, None
            try:
                answers = translator.answer(requests, first_number)
            except _TOLD as error:
                told = _told(error)
            connection.send((answers, warnings, told))


def _told(error: NmtkitError | MemoryError | RuntimeError) -> NmtkitError:
    """Return the error to raise in the process that asks, for whatever was raised in this one."""
    if isinstance(error, NmtkitError):
        return error
    if is_out_of_memory(error):
        return ResourceError(
            "a translating process is out of memory; give smaller --max-tokens or --batch-size, or "
            "fewer --devices"
        )
    return NmtkitError(
        f"a bug in nmtkit: {type(error).__name__}: {error}; without --devices, "
        "`nmtkit --debug ...` shows where"
    )
