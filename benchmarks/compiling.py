"""Speed of compiled training on a CPU; benchmarks/gpu/updates.py measures it on a GPU.

    python -m benchmarks.compiling --shape small

Times forward and backward passes of batches of random tokens, whose lengths vary as those of
sentences do. Eager and compiled passes are interleaved, so a machine that slows down does so for
both. The table has medians of tokens per second; the time of compiling is printed, too.
"""

import argparse
import time
from dataclasses import replace
from statistics import median

import numpy as np
import torch

from benchmarks.common import print_json, print_table
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import Batch, make_batch
from nmtkit.data.binary import Sequences
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import set_up
from nmtkit.training.compiling import Execution, choose_execution
from nmtkit.training.objective import Objective
from nmtkit.training.run import make_objective

VOCABULARY = {"small": 8000, "base": 37_000, "big": 37_000}
MEAN_LENGTH, SPREAD, LONGEST = 25, 0.6, 150
"""Tokens per sentence: log-normal, approximately as in news text."""


def main() -> None:
    """Measure, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=tuple(VOCABULARY), default="small")
    parser.add_argument("--precision", default="float32", help="float32 or bfloat16")
    parser.add_argument("--tokens", type=int, default=4096, help="per side of a batch")
    parser.add_argument("--batches", type=int, default=12, help="timed batches per way")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    machine = {"device": "cpu", "precision": options.precision, "threads": options.threads}
    recipe = build(TrainRecipe, PRESETS[options.shape], machine)
    device = set_up(recipe.runtime)
    size = VOCABULARY[options.shape]
    eager = choose_execution(with_compile("off", recipe, options.tokens), size, device, print)
    start = time.perf_counter()
    compiled = choose_execution(with_compile("on", recipe, options.tokens), size, device, print)
    start_s = time.perf_counter() - start
    ways = {"eager": fresh_objective(recipe, size, eager)}
    if compiled != eager:
        print(f"compiled in {start_s:.1f} s")
        ways["compiled"] = fresh_objective(recipe, size, compiled)
    random = np.random.default_rng(1)
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(options.batches + 1):
        batch = draw_batch(random, options.tokens, size)
        for way, objective in ways.items():
            seconds = seconds_of(objective, batch)
            if number > 0:  # the first batch warms up
                found[way].append(batch.sizes[1] / seconds)
    rates = {way: median(of_way) for way, of_way in found.items()}
    gains = {
        way: median(own / eager for own, eager in zip(of_way, found["eager"], strict=True))
        for way, of_way in found.items()
    }
    rows = [(way, f"{rate:.0f}", f"{gains[way]:.3f}") for way, rate in rates.items()]
    print_table([("way", "tgt tok/s", "it / eager"), *rows])
    print_json({**vars(options), "start_s": start_s, "rates": rates, "gains": gains})


def with_compile(setting: str, recipe: TrainRecipe, tokens: int) -> TrainRecipe:
    """Return a recipe with a value of --compile, and updates of this many tokens per side."""
    training = replace(recipe.training, update_tokens=tokens, max_tokens=tokens)
    return replace(recipe, training=training, engine=replace(recipe.engine, compile=setting))


def fresh_objective(recipe: TrainRecipe, size: int, execution: Execution) -> Objective:
    """Build the objective to measure, with the same weights every time."""
    torch.manual_seed(1)
    model = Transformer(recipe.model, size, size, is_shared=True, tail=execution.tail)
    return make_objective(recipe, model, execution).train()


def draw_batch(random: np.random.Generator, tokens: int, vocabulary: int) -> Batch:
    """Draw sentences with about `tokens` tokens in total on either side."""

    def side() -> Sequences:
        logarithm = np.log(MEAN_LENGTH) - SPREAD**2 / 2
        lengths = random.lognormal(logarithm, SPREAD, tokens // MEAN_LENGTH)
        sizes = lengths.round().clip(1, LONGEST).astype(int).tolist()
        ids = [random.integers(3, vocabulary, size).tolist() for size in sizes]
        return Sequences.pack(ids, "uint16")

    return make_batch(side(), side(), torch.device("cpu"))


def seconds_of(objective: Objective, batch: Batch) -> float:
    """Time a forward and backward pass."""
    objective.zero_grad()
    start = time.perf_counter()
    objective(batch).loss.backward()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
