"""Beam search, by precision and batch size: tokens per second, and time of a step.

    python -m benchmarks.gpu.decoding
    python -m benchmarks.gpu.decoding --ways bfloat16 --sentences 64 --kernels 15

The weights are random, and every hypothesis has `--steps` tokens: the end symbol cannot come
earlier. A step reads one token of each row and ranks the next ones. Logits are computed in float32;
TF32 rounds the numbers that enter their products.
"""

import argparse
from collections.abc import Sequence
from functools import partial

import torch

from benchmarks.decode import decode
from benchmarks.gpu.measure import (
    MILLI,
    Table,
    kernels,
    peak,
    read_options,
    seconds,
)
from benchmarks.gpu.workload import VOCABULARY, draw_pairs, make_model, open_device
from nmtkit.runtime.devices import reset_peak_memory

WAYS = {
    "bfloat16": ("bfloat16", False),
    "bfloat16, TF32": ("bfloat16", True),
    "float32": ("float32", False),
    "float32, TF32": ("float32", True),
}
"""The precision of products, and whether those in float32 round what enters them."""

DRY_RUN = {"shape": "small", "vocabulary": 100, "sentences": [1, 3], "steps": 4, "repeats": 1}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=("small", "base", "big"), default="base")
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY, help="entries")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--sentences", nargs="+", type=int, default=[1, 64, 128, 256, 512])
    parser.add_argument("--length", type=int, default=27, help="approximate tokens per source")
    parser.add_argument("--steps", type=int, default=30, help="steps per search")
    parser.add_argument("--repeats", type=int, default=3, help="timed searches")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--kernels", type=int, default=0, help="kernels to print, of the first row")
    options = read_options(parser, arguments, DRY_RUN)
    device = open_device(options.device)
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        with torch.inference_mode(), Table("beam search", options, width=14) as table:
            measure(options, device, table)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def measure(options: argparse.Namespace, device: torch.device, table: Table) -> None:
    """Add the rows of all ways; the caller restores TF32."""
    num_kernels = options.kernels
    for name in options.ways:
        precision, torch.backends.cuda.matmul.allow_tf32 = WAYS[name]
        model = make_model(options.shape, options.vocabulary, precision, device)
        for num_sentences in options.sentences:
            tokens = num_sentences * options.length
            sources, _ = draw_pairs(options.length, tokens, options.vocabulary)
            # The end symbol also counts as a token of a hypothesis.
            search = partial(decode, model, sources, options.steps - 1, options.beam)
            reset_peak_memory(device)
            search_s = seconds(search, device, options.repeats, num_warm_up=1)
            of_search = kernels(search, device, num_kernels)
            table.add(
                {
                    "way": name,
                    "sentences": num_sentences,
                    "target_tokens_s": num_sentences * options.steps / search_s,
                    "step_ms": MILLI * search_s / options.steps,
                    **{key: value / options.steps for key, value in of_search.items()},
                    **peak(device),
                }
            )
            num_kernels = 0


if __name__ == "__main__":
    main()
