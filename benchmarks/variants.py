r"""Memory and time of an update with frozen parts, and with guided alignment.

    python -m benchmarks.variants --shape small --tokens 1024

Runs the same update of each variant, interleaved, on a CPU. The peak is the memory of
the tensors that live at the same time: weights, moments, gradients and activations. Ratios are
medians of the rounds' ratios to the plain update of the whole model. With guidance, every target
token but the end symbols has a link.
"""

import argparse
import time
from statistics import median

import numpy as np
import torch

from benchmarks.common import print_json, print_table
from benchmarks.live_memory import LiveMemory
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import RuntimeConfig, TrainRecipe, Values
from nmtkit.config.toml import build
from nmtkit.config.training_rules import with_alignment_head
from nmtkit.data.batch import make_batch
from nmtkit.data.binary import LINK_TYPE, PairIds, Sequences
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import set_up
from nmtkit.symbols import EOS_ID
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import freeze, make_optimizer

VARIANTS: dict[str, Values] = {
    "everything trained": {},
    "encoder frozen": {"freeze": ("encoder",)},
    "encoder, source embeddings frozen": {"freeze": ("encoder", "source-embeddings")},
    "guided alignment": {"guided_alignment_weight": 0.05},
    "guided alignment, full context": {
        "guided_alignment_weight": 0.05,
        "full_context_alignment": True,
    },
}
LENGTHS = (20, 30)
"""Lengths of the sentences of a batch, alternating, so that attention has padding."""

MIB = 2**20


class Updates:
    """Repeats the same update of a variant."""

    def __init__(self, values: Values, options: argparse.Namespace) -> None:
        """Build the model of a preset, its optimiser and a batch; run the first update."""
        recipe = with_alignment_head(build(TrainRecipe, PRESETS[options.shape], values))
        size = options.vocab_size
        self.model = Transformer(recipe.model, size, size, is_shared=False)
        freeze(self.model, recipe.training.freeze)
        self.objective = Objective(self.model, recipe.training, None).train()
        self.adam = make_optimizer(self.model, recipe.training)
        lengths = np.resize(LENGTHS, options.tokens // int(np.mean(LENGTHS))).tolist()
        sides = Sequences.pack([[EOS_ID] * length for length in lengths], "uint16")
        links = [[place // 2 for place in range(2 * (length - 1))] for length in lengths]
        pairs = PairIds(sides, sides, Sequences.pack(links, LINK_TYPE))
        self.batch = make_batch(pairs, torch.device("cpu"))
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
    updates = [Updates(values, options) for values in VARIANTS.values()]
    peaks = [one.peak() for one in updates]
    rounds = [[one.seconds() for one in updates] for _ in range(options.rounds)]
    rates = [median(1 / seconds for seconds in times) for times in zip(*rounds, strict=True)]
    ratios = [median(times[0] / times[kind] for times in rounds) for kind in range(len(VARIANTS))]
    rows = [
        (name, f"{peak / MIB:.0f}", f"{peak / peaks[0]:.2f}", f"{rate:.2f}", f"{ratio:.2f}")
        for name, peak, rate, ratio in zip(VARIANTS, peaks, rates, ratios, strict=True)
    ]
    print_table([("update", "peak MiB", "ratio", "updates/s", "ratio"), *rows])
    keys = ("update", "peak", "rate", "ratio")
    found = zip(VARIANTS, peaks, rates, ratios, strict=True)
    print_json([dict(zip(keys, values, strict=True)) for values in found])


if __name__ == "__main__":
    main()
