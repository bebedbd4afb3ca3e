"""What an update and a step of a search ask of a GPU, compared with budgets.

    python -m benchmarks.gpu.budgets

The exit code is 1 if a count exceeds its budget. The counts are those of the CUDA runtime, if it
counts its calls, as a stand-in that computes nothing (`measure.counting_runtime`) and needs no GPU.
Elsewhere only waits are counted, and compared. Columns:

    launches    kernels that are launched
    syncs       calls for which the host waits
    mallocs     blocks of memory that the runtime allocates
    to_device, to_host, on_device
                copies; those to the device include the copies of the next batch
    casts       kernels that only convert a tensor to another type
    host_ms     processor time of all threads; it has no budget
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.gpu.measure import (
    MILLI,
    Table,
    calls,
    counting_runtime,
    host_seconds,
    read_options,
    synchronizations,
)
from benchmarks.gpu.workload import (
    LENGTH,
    add_update_options,
    draw_pairs,
    make_model,
    open_device,
    repeat,
    training,
    words_dataset,
)
from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.search import beam_search
from nmtkit.model.state import DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import EOS_ID

Counts = Mapping[str, float]

UPDATE: Counts = {"syncs": 1, "mallocs": 0, "to_device": 1, "to_host": 1, "on_device": 10}
STEP: Counts = {"syncs": 1.2, "mallocs": 0, "to_device": 0, "to_host": 1.2, "on_device": 7.5}
"""Budgets that updates have in common, and steps, whose storage grows in some of them."""

UPDATES: Mapping[str, tuple[Mapping[str, str], Counts]] = {
    "update, bfloat16": ({}, {"launches": 1200, "casts": 120, **UPDATE}),
    "update, float32": ({"precision": "float32"}, {"launches": 1100, "casts": 10, **UPDATE}),
}
STEPS: Mapping[str, tuple[str, Counts]] = {
    "step, bfloat16": ("bfloat16", {"launches": 262, **STEP}),
    "step, float32": ("float32", {"launches": 231, **STEP}),
}
"""Settings or precision, and budget, of what is counted, by name."""

NUM_WARM_UP, NUM_COUNTED = 3, 2
"""Calls before, and in, a count of updates; the first ones allocate memory and fill caches."""

DRY_RUN = {"shape": "small", "tokens": 40, "vocabulary": 100, "sentences": 2, "steps": 3}


def main(arguments: Sequence[str] | None = None) -> None:
    """Count everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_update_options(parser)
    parser.add_argument("--sentences", type=int, default=64, help="of a search")
    parser.add_argument("--steps", type=int, default=20, help="of a search")
    options = read_options(parser, arguments, DRY_RUN)
    device = open_device(options.device)
    counting_runtime()
    exceeded = []
    with tempfile.TemporaryDirectory() as folder, Table("budgets", options, width=17) as table:
        for name, counts, budget in counted(Path(folder), options, device):
            table.add({"work": name, **counts})
            exceeded += [
                f"{name}: {counts[key]:g} {key}, at most {most:g}"
                for key, most in budget.items()
                if counts.get(key, 0) > most
            ]
    if exceeded and options.shape == "base":
        sys.exit(f"benchmarks.gpu.budgets: exceeded: {'; '.join(exceeded)}")


def counted(
    folder: Path, options: argparse.Namespace, device: torch.device
) -> Iterator[tuple[str, Counts, Counts]]:
    """Yield the name of each piece of work, its counts, and its budget."""
    dataset = words_dataset(folder, options.vocabulary, options.tokens)
    for name, (settings, budget) in UPDATES.items():
        own = {**settings, "device": options.device}
        with training(options.shape, options.tokens, own, dataset) as bench:
            repeat(bench, draw_pairs(LENGTH, options.tokens, options.vocabulary))
            bench.run(NUM_WARM_UP)
            counts = count(partial(bench.run, NUM_COUNTED), device, NUM_COUNTED)
        yield name, counts, budget
    for name, (precision, budget) in STEPS.items():
        model = make_model(options.shape, options.vocabulary, precision, device)
        num_tokens = options.sentences * LENGTH
        sources, _ = draw_pairs(LENGTH, num_tokens, options.vocabulary)
        search(model, sources, options.steps)
        first, all_steps = (
            count(partial(search, model, sources, num_steps), device)
            for num_steps in (1, options.steps)
        )
        num_others = options.steps - 1
        yield name, {key: (all_steps[key] - first[key]) / num_others for key in first}, budget


@torch.inference_mode()
def search(model: Transformer, sources: Sequence[Sequence[int]], num_steps: int) -> None:
    """Begin a search with beam 4, and leave it after some steps."""
    device = model.output_weight.device
    steps = 0

    def step(tokens: Tensor, state: DecoderState) -> Tensor:
        nonlocal steps
        if steps == num_steps:
            raise StopIteration
        steps += 1
        logits = model.step(tokens, state)
        logits[:, :, EOS_ID] = -math.inf
        return logits

    state = model.start(model.encode(pack_sequences(sources, device)))
    longest = torch.full((len(sources),), num_steps + 2, device=device)
    with suppress(StopIteration):
        beam_search(step, state, longest, SearchConfig(beam=4))


def count(work: Callable[[], object], device: torch.device, parts: int = 1) -> Counts:
    """Return the counts of work, for each of its parts."""
    made = calls(work) if device.type == "cuda" else {}
    if made is None:
        made = {"syncs": synchronizations(work)}
    of_each = {name: number / parts for name, number in made.items()}
    return {**of_each, "host_ms": MILLI * host_seconds(work, device) / parts}


if __name__ == "__main__":
    main()
