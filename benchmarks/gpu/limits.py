"""Checks of training on a GPU: equal bits, too little memory.

    python -m benchmarks.gpu.limits

The exit code is 1 if a check fails. On a CPU memory is not limited.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.gpu.measure import GIB, Table, read_options
from benchmarks.gpu.workload import (
    add_update_options,
    num_micro_batches,
    open_device,
    training,
    weights,
    words_dataset,
)
from benchmarks.updates import Workbench
from nmtkit.config.schema import Values

NUM_UPDATES = 3
"""Updates of the runs whose weights are compared."""

MIB = 2**20
MOST_HELD_MIB = 64
"""GPU memory that may stay in use when a run has ended, such as a workspace of cuBLAS."""

DRY_RUN = {"shape": "small", "tokens": 200, "vocabulary": 100}

Begin = Callable[[Values], AbstractContextManager[Workbench]]
"""Begins a run with settings of the recipe."""


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Attributes:
        check: name of the check.
        result: the finding.
        holds: whether the check passed.
    """

    check: str
    result: int | bool
    holds: bool


def main(arguments: Sequence[str] | None = None) -> None:
    """Check everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_update_options(parser)
    parser.add_argument("--memory", type=float, default=6, help="limit of the GPU's memory in GiB")
    options = read_options(parser, arguments, DRY_RUN)
    device = open_device(options.device)
    failed = []
    with tempfile.TemporaryDirectory() as folder, Table("limits", options, width=50) as table:
        dataset = words_dataset(Path(folder), options.vocabulary, options.tokens)

        def begin(settings: Values) -> AbstractContextManager[Workbench]:
            own = {"device": options.device, **settings}
            return training(options.shape, options.tokens, own, dataset)

        for found in chain(equal_bits(begin), memory(begin, options, device)):
            table.add(asdict(found))
            failed += [] if found.holds else [found.check]
    if failed:
        sys.exit(f"benchmarks.gpu.limits: does not hold: {'; '.join(failed)}")


def equal_bits(begin: Begin) -> Iterator[Check]:
    """Compare the weights of equal runs; with --deterministic all bits must be equal."""
    for is_deterministic in (False, True):
        first, second = (trained(begin, is_deterministic) for _ in range(2))
        is_equal = all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
        what = "with --deterministic" if is_deterministic else "by default"
        yield Check(
            f"equal runs have equal bits {what}", is_equal, is_equal or not is_deterministic
        )


def trained(begin: Begin, is_deterministic: bool) -> list[Tensor]:
    """Return the weights after some updates."""
    with begin({"deterministic": is_deterministic}) as bench:
        bench.run(NUM_UPDATES)
        return [weight.detach().clone() for weight in weights(bench)]


def memory(begin: Begin, options: argparse.Namespace, device: torch.device) -> Iterator[Check]:
    """Limit the memory of runs; updates must be split into micro-batches that fit."""
    is_gpu = device.type == "cuda"
    held = allocated(device)

    def split(what: str, number: int) -> Check:
        return Check(f"micro-batches {what}", number, (number > 1) == is_gpu)

    with limited(options.memory, device), begin({"max_tokens": 0}) as bench:
        bench.run(1)
        yield split("that a new run decides for", num_micro_batches(bench))
    with limited(options.memory, device), begin({}) as bench:
        bench.run(1)
        yield split("if --max-tokens does not fit", num_micro_batches(bench))
    with begin({}) as bench, limited(options.memory, device):
        bench.run(1)
        yield split("if memory runs out in an update", num_micro_batches(bench))
    del bench
    left = (allocated(device) - held) // MIB
    yield Check("MiB in use after these runs", left, left <= MOST_HELD_MIB)


def allocated(device: torch.device) -> int:
    """Return the bytes of a GPU's tensors; 0 on a CPU."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


@contextmanager
def limited(gibibytes: float, device: torch.device) -> Iterator[None]:
    """Limit the memory of a GPU in the block."""
    if device.type != "cuda":
        yield
        return
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(gibibytes * GIB / total, device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)


if __name__ == "__main__":
    main()
