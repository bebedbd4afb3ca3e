r"""The memory of an update, measured and counted; the cost of --activation-checkpointing.

    python -m benchmarks.memory --shapes small base --tokens 4096
    python -m benchmarks.memory --shapes base big --tokens 25000 --device cuda

Runs an update of --tokens tokens per side in each precision, with and without
--activation-checkpointing, interleaved. The peak is the memory of the tensors that live at the same
time: on a GPU the allocator reports it, on a CPU the benchmark counts tensor by tensor. Times are
medians of the rounds. `nmtkit info` prints the largest updates that fit, by the same count.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from benchmarks.common import print_json, print_table
from benchmarks.live_memory import LiveMemory
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import RuntimeConfig, TrainRecipe
from nmtkit.config.toml import build
from nmtkit.config.training import TrainingConfig
from nmtkit.data.batch import eos_batch
from nmtkit.model.cost import (
    BFLOAT16_BYTES,
    FLOAT32_BYTES,
    TrainingMemory,
    chunk_size,
    count_parameters,
    training_memory,
)
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import choose_precision, peak_memory, reset_peak_memory, set_up
from nmtkit.runtime.processor import keep_freed_memory
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import make_optimizer

PRECISIONS = {"float32": FLOAT32_BYTES, "bfloat16": BFLOAT16_BYTES}
LENGTHS = (20, 30)
"""Lengths of the sentences of a batch, alternating, so that attention has padding."""

MIB = 2**20


@dataclass(frozen=True)
class Measured:
    """Measured and estimated cost of an update.

    Attributes:
        counted, measured: estimated and measured peak bytes.
        seconds: median of the rounds.
    """

    shape: str
    precision: str
    activation_checkpointing: bool
    counted: int
    measured: int
    seconds: float


def main() -> None:
    """Measure; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", nargs="+", choices=PRESETS, default=["small"])
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--tokens", type=int, default=1024, help="per side of an update")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    keep_freed_memory()
    device = set_up(RuntimeConfig(device=options.device, threads=options.threads))
    found = [one for shape in options.shapes for one in measure_shape(shape, device, options)]
    rows = [
        (
            _label(one.shape, one.precision, one.activation_checkpointing),
            f"{one.counted / MIB:.0f}",
            f"{one.measured / MIB:.0f}",
            f"{one.counted / one.measured:.3f}",
            f"{one.seconds:.3f}",
        )
        for one in found
    ]
    print_table([("update", "counted MiB", "measured MiB", "ratio", "seconds"), *rows])
    print_json({"updates": [vars(one) for one in found]})


def _label(shape: str, precision: str, checkpointing: bool) -> str:
    return f"{shape} {precision}{' --activation-checkpointing' if checkpointing else ''}"


def counted(
    shape: str, precision: str, checkpointing: bool, vocab_size: int, chunk_tokens: int
) -> TrainingMemory:
    """Return the memory estimate of a preset."""
    config = build(TrainRecipe, PRESETS[shape]).model
    parameters = count_parameters(config, vocab_size, vocab_size, is_shared=True)
    return training_memory(
        config, parameters, vocab_size, PRECISIONS[precision], checkpointing, chunk_tokens
    )


class Updates:
    """Repeats the same update."""

    def __init__(self, shape: str, device: torch.device, options: argparse.Namespace) -> None:
        """Build the model of a preset, its optimiser and a batch."""
        recipe = build(TrainRecipe, PRESETS[shape])
        size = options.vocab_size
        self.device = device
        plain, recomputed = (
            Transformer(
                recipe.model, size, size, is_shared=True, activation_checkpointing=checkpointing
            )
            for checkpointing in (False, True)
        )
        plain.to(device)
        recomputed.load_state_dict(plain.state_dict(keep_vars=True), assign=True)  # shared
        self.models = {False: plain.train(), True: recomputed.train()}
        self.adam = make_optimizer(plain, recipe.training)
        lengths = np.resize(LENGTHS, options.tokens // int(np.mean(LENGTHS))).tolist()
        self.batch = eos_batch(lengths, lengths, device)

    def run(self, precision: str, checkpointing: bool) -> None:
        """Run the update."""
        low = choose_precision(precision, self.device, trained_size=None)
        objective = Objective(self.models[checkpointing], TrainingConfig(), low)
        objective(self.batch).loss.backward()
        self.adam.step()
        self.adam.zero_grad()

    def seconds(self, precision: str, checkpointing: bool) -> float:
        """Return the seconds of the update."""
        wait(self.device)
        start = time.perf_counter()
        self.run(precision, checkpointing)
        wait(self.device)
        return time.perf_counter() - start

    def peak(self, precision: str, checkpointing: bool) -> int:
        """Return the peak bytes of the update."""
        if self.device.type == "cuda":
            reset_peak_memory(self.device)
            self.run(precision, checkpointing)
            return peak_memory(self.device)
        moments = [tensor for state in self.adam.state.values() for tensor in state.values()]
        memory = LiveMemory([*self.models[checkpointing].parameters(), *moments])
        with memory:
            self.run(precision, checkpointing)
        return memory.peak


def measure_shape(
    shape: str, device: torch.device, options: argparse.Namespace
) -> Iterator[Measured]:
    """Measure the updates of a preset, in each precision."""
    updates = Updates(shape, device, options)
    for precision in PRECISIONS:
        updates.run(precision, checkpointing=False)  # creates the moments
        peaks = [updates.peak(precision, checkpointing) for checkpointing in (False, True)]
        rounds = [
            [updates.seconds(precision, checkpointing) for checkpointing in (False, True)]
            for _ in range(options.rounds)
        ]
        times = map(median, zip(*rounds, strict=True))
        for checkpointing, peak, seconds in zip((False, True), peaks, times, strict=True):
            chunk = min(chunk_size(options.vocab_size, device.type), options.tokens)
            memory = counted(shape, precision, checkpointing, options.vocab_size, chunk)
            need = memory.fixed + memory.per_token * options.tokens
            yield Measured(shape, precision, checkpointing, need, peak, seconds)


def wait(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
