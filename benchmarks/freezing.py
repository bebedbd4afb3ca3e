r"""Memory and time of an update with frozen parts.

    python -m benchmarks.freezing --shape small --tokens 1024

Runs the same update with and without frozen parts, interleaved, on a CPU. The peak is the memory of
the tensors that live at the same time: weights, moments, gradients and activations. Ratios are
medians of the rounds' ratios to the update of the whole model.
"""

import argparse
import time
from statistics import median

import numpy as np
import torch

from benchmarks.common import print_json, print_table
from benchmarks.live_memory import LiveMemory
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import RuntimeConfig, TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import eos_batch
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import set_up
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import freeze, make_optimizer

KINDS: dict[str, tuple[str, ...]] = {
    "everything trained": (),
    "encoder frozen": ("encoder",),
    "encoder, source embeddings frozen": ("encoder", "source-embeddings"),
}
LENGTHS = (20, 30)
"""Lengths of the sentences of a batch, alternating, so that attention has padding."""

MIB = 2**20


class Updates:
    """Repeats the same update of a model with frozen parts."""

    def __init__(self, parts: tuple[str, ...], options: argparse.Namespace) -> None:
        """Build the model of a preset, its optimiser and a batch; run the first update."""
        recipe = build(TrainRecipe, PRESETS[options.shape])
        size = options.vocab_size
        self.model = Transformer(recipe.model, size, size, is_shared=False)
        freeze(self.model, parts)
        self.objective = Objective(self.model, recipe.training, None).train()
        self.adam = make_optimizer(self.model, recipe.training)
        lengths = np.resize(LENGTHS, options.tokens // int(np.mean(LENGTHS))).tolist()
        self.batch = eos_batch(lengths, lengths, torch.device("cpu"))
        self.run()  # creates the moments

    def run(self) -> None:
        """Run the update."""
        self.objective(self.batch).loss.backward()
        self.adam.step()
        self.adam.zero_grad()

    def seconds(self) -> float:
        """Return the seconds of the update."""
        start = time.perf_counter()
        self.run()
        return time.perf_counter() - start

    def peak(self) -> int:
        """Return the peak bytes of the update."""
        moments = [tensor for state in self.adam.state.values() for tensor in state.values()]
        memory = LiveMemory([*self.model.parameters(), *moments])
        with memory:
            self.run()
        return memory.peak


def main() -> None:
    """Measure; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=PRESETS, default="small")
    parser.add_argument("--vocab-size", type=int, default=8_000, help="entries per side")
    parser.add_argument("--tokens", type=int, default=1024, help="per side of an update")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    set_up(RuntimeConfig(device="cpu", threads=options.threads))
    updates = [Updates(parts, options) for parts in KINDS.values()]
    peaks = [one.peak() for one in updates]
    rounds = [[one.seconds() for one in updates] for _ in range(options.rounds)]
    rates = [median(1 / seconds for seconds in times) for times in zip(*rounds, strict=True)]
    ratios = [median(times[0] / times[kind] for times in rounds) for kind in range(len(KINDS))]
    rows = [
        (name, f"{peak / MIB:.0f}", f"{peak / peaks[0]:.2f}", f"{rate:.2f}", f"{ratio:.2f}")
        for name, peak, rate, ratio in zip(KINDS, peaks, rates, ratios, strict=True)
    ]
    print_table([("update", "peak MiB", "ratio", "updates/s", "ratio"), *rows])
    keys = ("update", "peak", "rate", "ratio")
    found = zip(KINDS, peaks, rates, ratios, strict=True)
    print_json([dict(zip(keys, values, strict=True)) for values in found])


if __name__ == "__main__":
    main()
