"""Time, kernels, launches and memory of an update, by sentence length and setting.

    python -m benchmarks.gpu.updates
    python -m benchmarks.gpu.updates --ways default --lengths 30 --kernels 25

The first ways are measured with sentences of each length, the others with the middle length. Every
update computes the same pairs, loaded as in `nmtkit train`. Columns:

    opened_s          start of a run: building the model, memory check
    first_s           time of the first update of a length
    ms, host_ms       time of an update, and processor time of its threads
    gpu_ms, launches  time and number of its kernels, copies and fills
    syncs             operations for which the host waits
    loss, norm        of the last update; about equal for all ways of the same shape
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.gpu.measure import (
    MILLI,
    Table,
    host_seconds,
    kernels,
    peak,
    read_options,
    seconds,
)
from benchmarks.gpu.workload import (
    LENGTH,
    add_update_options,
    draw_pairs,
    open_device,
    padded_up_to,
    repeat,
    training,
    words_dataset,
)
from benchmarks.updates import Workbench
from nmtkit.config.schema import Values
from nmtkit.errors import NmtkitError
from nmtkit.model.kernels import unpadded
from nmtkit.runtime.devices import reset_peak_memory


@dataclass(frozen=True)
class Way:
    """A way to compute an update.

    Attributes:
        settings: settings of the recipe.
        entries: size of the vocabulary, as a function of --vocabulary.
        longest_padded: longest sequences for which attention is computed in padded blocks, and
            not by the kernels for packed tokens.
    """

    settings: Values = field(default_factory=dict)
    entries: Callable[[int], int] = int
    longest_padded: int = unpadded.MAX_PADDED_LENGTH


BY_LENGTH = {
    "default": Way(),
    "flash": Way(longest_padded=0),
    "padded": Way(longest_padded=sys.maxsize),
    "float32": Way({"precision": "float32"}),
}
"""The ways that are measured with sentences of each length."""

WAYS = BY_LENGTH | {
    "vocabulary / 64": Way(entries=lambda number: number // 64 * 64),
    "odd vocabulary": Way(entries=lambda number: number // 2 * 2 - 1),
    "output bias": Way({"output_bias": True}),
    "window 16": Way({"window": 16}),
    "attention dropout": Way({"attention_dropout": 0.1}),
    "key size 32": Way({"key_size": 32}),
    "pre-norm": Way({"norm": "pre"}),
    "EMA": Way({"ema_decay": 0.99}),
    "activation checkpointing": Way({"activation_checkpointing": True}),
    "deterministic": Way({"deterministic": True}),
}

DRY_RUN = {
    "shape": "small",
    "tokens": 40,
    "vocabulary": 100,
    "updates": 1,
    "lengths": [5, 10],
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_update_options(parser)
    parser.add_argument("--updates", type=int, default=10, help="timed updates")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--lengths", nargs="+", type=int, default=[10, 20, LENGTH, 60, 100])
    parser.add_argument(
        "--kernels", type=int, default=0, help="kernels to print, of the last length"
    )
    options = read_options(parser, arguments, DRY_RUN)
    open_device(options.device)
    failed = []
    with tempfile.TemporaryDirectory() as folder, Table("updates", options, width=21) as table:
        for name in options.ways:
            try:
                measure(name, Path(folder), options, table)
            except (RuntimeError, NmtkitError) as error:
                print(f"{name}: {' '.join(str(error).split())}", flush=True)
                failed.append(name)
    if failed:
        sys.exit(f"benchmarks.gpu.updates: not measured: {', '.join(failed)}")


def measure(name: str, folder: Path, options: argparse.Namespace, table: Table) -> None:
    """Measure a way with sentences of each length, or of the middle length."""
    way, lengths = WAYS[name], options.lengths
    if name not in BY_LENGTH:
        lengths = [lengths[len(lengths) // 2]]
    vocabulary = way.entries(options.vocabulary)
    dataset = words_dataset(folder, vocabulary, options.tokens)
    settings = {**way.settings, "device": options.device}
    start = time.perf_counter()
    run = training(options.shape, options.tokens, settings, dataset)
    with padded_up_to(way.longest_padded), run as bench:
        opened_s = time.perf_counter() - start
        for length in lengths:
            repeat(bench, draw_pairs(length, options.tokens, vocabulary))
            num_kernels = options.kernels if length == lengths[-1] else 0
            row = measure_update(bench, options.updates, num_kernels)
            about = {"way": name, "length": length, "opened_s": opened_s}
            table.add({**about, **row})


def measure_update(bench: Workbench, num_updates: int, num_kernels: int) -> dict[str, object]:
    """Return the columns of an update."""
    device = bench.context.device

    def update() -> None:
        bench.run(1)

    reset_peak_memory(device)
    first_s = seconds(update, device, num_calls=1)
    bench.run(min(num_updates, 3))  # warms up
    run_s = seconds(partial(bench.run, num_updates), device, num_calls=1)
    record = bench.record()
    return {
        "first_s": first_s,
        "ms": MILLI * run_s / num_updates,
        "host_ms": MILLI * host_seconds(update, device),
        **kernels(update, device, num_kernels),
        "target_tokens_s": record.num_target_tokens / run_s,
        **peak(device),
        "loss": record.loss,
        "norm": record.gradient_norm,
    }


if __name__ == "__main__":
    main()
