"""Gradients and speed of one rank with and without gradient exchange.

    python -m benchmarks.gpu.ranks

DistributedDataParallel exchanges the gradients over NCCL, on a CPU over gloo. `difference` compares
the gradients with and without exchange, relative to their norm; dropout is off. The exit code is 1
if it is more than rounding.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.gpu.measure import MILLI, Table, read_options, seconds
from benchmarks.gpu.workload import (
    LENGTH,
    add_update_options,
    draw_pairs,
    exchanged_gradients,
    gradients,
    open_device,
    repeat,
    training,
    words_dataset,
)
from benchmarks.updates import Workbench
from nmtkit.config.schema import Values
from nmtkit.training.distributed import join_ranks

TIMEOUT_MINUTES = 1.0
LARGEST_DIFFERENCE = 0.02
"""In bfloat16, where flash attention adds gradients up in any order."""

DRY_RUN = {"shape": "small", "tokens": 40, "vocabulary": 100, "updates": 1}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure an update."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_update_options(parser)
    parser.add_argument("--updates", type=int, default=10, help="timed updates")
    options = read_options(parser, arguments, DRY_RUN)
    device = open_device(options.device)
    with tempfile.TemporaryDirectory() as folder, Table("one rank", options, width=7) as table:
        dataset = words_dataset(Path(folder), options.vocabulary, options.tokens)
        with launched(), join_ranks(device, TIMEOUT_MINUTES, time.monotonic) as ranks:
            own: Values = {"device": options.device, "dropout": 0.0}
            with training(options.shape, options.tokens, own, dataset, ranks) as bench:
                repeat(bench, draw_pairs(LENGTH, options.tokens, options.vocabulary))
                row = measure(bench, options.updates)
            table.add({"backend": dist.get_backend(), **row})
    if not row["difference"] <= LARGEST_DIFFERENCE:
        sys.exit(f"benchmarks.gpu.ranks: gradients differ by {row['difference']:.3f} of their norm")


def measure(bench: Workbench, num_updates: int) -> dict[str, float]:
    """Return the columns of a run, without and with gradient exchange."""
    device = bench.context.device

    def update_s() -> float:
        return seconds(lambda: bench.run(1), device, num_updates, num_warm_up=2)

    alone = gradients(bench)
    with exchanged_gradients(bench):
        gradients(bench)  # the first exchange determines the buckets
        exchanged = gradients(bench)
        exchanged_s = update_s()
    differences = [b - a for a, b in zip(alone, exchanged, strict=True)]
    return {
        "difference": norm(differences) / norm(alone),
        "ms": MILLI * exchanged_s,
        "ms_alone": MILLI * update_s(),
    }


def norm(tensors: Sequence[Tensor]) -> float:
    """Return the joint norm of several tensors."""
    return float(torch.stack([tensor.norm() for tensor in tensors]).norm())


@contextmanager
def launched() -> Iterator[None]:
    """Make this process the only rank of a run in the block."""
    before = dict(os.environ)
    os.environ |= {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",  # the store of rank 0 takes a free one
        "GLOO_SOCKET_IFNAME": "lo",
    }
    try:
        yield
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        os.environ.clear()
        os.environ |= before


if __name__ == "__main__":
    main()
