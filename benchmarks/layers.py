"""The paper's table 1, measured: time and memory of layers by length and width.

    python -m benchmarks.layers --plots FOLDER

Each kind of layer runs forward and backward over one sequence of n positions of width d. Time is
processor time in one thread, so that other programs matter little; the best of several interleaved
rounds. Memory is what the forward pass keeps for the backward pass. Exponents are slopes of least
squares lines through the logarithms, at the largest sizes. Sequential operations, and the layers
until the first position reaches the last, are counted in autograd's graph (see layer_kinds.py).
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.common import print_json, print_table
from benchmarks.layer_kinds import (
    HEAD_SIZE,
    KINDS,
    LSTM,
    PRODUCT,
    RESTRICTED,
    SELF,
    Kind,
    chain_length,
    layers_to_cross,
    num_heads,
)
from nmtkit.reporting.svg import Curve, Plot, draw_file
from nmtkit.runtime.processor import keep_freed_memory

CHAIN_LENGTHS = (128, 256)
PATH_LENGTHS = (33, 65, 129)
NUM_FITTED = 3
"""Number of the largest sizes for the fit of an exponent."""

MIB = 2**20
SLOW_S = 2.0
"""Slower measurements run only in the first round."""

Name = str
Sizes = Sequence[int]


@dataclass(frozen=True)
class Cost:
    """Processor seconds of both passes over one sequence, and bytes kept between them."""

    forward_s: float
    backward_s: float
    saved_bytes: int

    @property
    def seconds(self) -> float:
        """Seconds of both passes."""
        return self.forward_s + self.backward_s


@dataclass(frozen=True)
class Counts:
    """Of a kind of layer: chain lengths by n, and layers from the first position to the last."""

    name: Name
    chains: list[int]
    layers: list[int]


Costs = Mapping[Name, Mapping[int, Cost]]


def main() -> None:
    """Measure; print tables, a summary compared with table 1, and JSON."""
    options = read_options(sys.argv[1:])
    keep_freed_memory()
    torch.set_num_threads(1)
    kinds = {kind.name: kind for kind in KINDS}
    over_n = measure(KINDS, options.n, lambda n: (n, options.width), options.rounds)
    over_d = measure(KINDS, options.d, lambda d: (options.length, d), options.rounds)
    pair = (kinds[SELF], kinds[RESTRICTED])
    long = measure(pair, options.long, lambda n: (n, options.width), options.rounds)
    counts = [
        Counts(
            kind.name,
            [chain_length(kind, n) for n in CHAIN_LENGTHS],
            [layers_to_cross(kind, n) for n in PATH_LENGTHS],
        )
        for kind in KINDS
    ]
    print_costs(f"processor ms forwards and backwards, d = {options.width}", "n", over_n)
    print_costs(f"processor ms forwards and backwards, n = {options.length}", "d", over_d)
    print_memory(f"MiB kept for the backward pass, d = {options.width}", over_n)
    print_summary(over_n, over_d, counts)
    print_crossover(over_n, options.width)
    print_long(long)
    if options.plots:
        draw_plots(options.plots, over_n, over_d)
    print_json(
        {
            "over_n": _plain(over_n),
            "over_d": _plain(over_d),
            "long": _plain(long),
            "counts": [asdict(one) for one in counts],
        }
    )


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exit with an error if a value is impossible."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name, sizes in (("n", options.n), ("d", options.d), ("long", options.long)):
        if len(sizes) < 2 or sizes[0] < 1 or sizes != sorted(set(sizes)):
            given = " ".join(map(str, sizes))
            parser.error(f"--{name}: give at least two ascending sizes from 1 on, not {given}")
    numbers = (("width", options.width), ("length", options.length), ("rounds", options.rounds))
    for name, number in numbers:
        if number < 1:
            parser.error(f"--{name}: give a number from 1 on, not {number}")
    for width in (*options.d, options.width):
        if width % num_heads(width):
            parser.error(
                f"width {width} cannot be divided into heads; give multiples of {HEAD_SIZE}, or "
                f"less than {2 * HEAD_SIZE}"
            )
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    lengths, widths = [256, 512, 1024, 2048, 4096], [128, 256, 512, 1024]
    long = [2**power for power in range(8, 15)]
    parser.add_argument("--n", type=int, nargs="+", default=lengths, help="lengths, ascending")
    parser.add_argument("--d", type=int, nargs="+", default=widths, help="widths, ascending")
    parser.add_argument("--width", type=int, default=256, help="d where n varies")
    parser.add_argument("--length", type=int, default=512, help="n where d varies")
    parser.add_argument(
        "--long",
        type=int,
        nargs="+",
        default=long,
        help="lengths for full and restricted attention",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plots", type=Path, help="folder for time and memory as SVG")
    return parser


# ------------------------------------------------------------------------------------- measuring


def measure(
    kinds: Sequence[Kind], sizes: Sizes, shape: Callable[[int], tuple[int, int]], rounds: int
) -> Costs:
    """Measure each kind at each size; slow ones only in the first round."""
    best: dict[Name, dict[int, Cost]] = {kind.name: {} for kind in kinds}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for kind in kinds:
            for size in sizes:
                known = best[kind.name].get(size)
                if known is None or known.seconds < SLOW_S:
                    again = run(kind, *shape(size))
                    best[kind.name][size] = again if known is None else _better(known, again)
    return best


def run(kind: Kind, n: int, d: int) -> Cost:
    """Run a new layer of a kind forward and backward over one sequence."""
    layer = kind.build(d, 0)
    x = torch.randn(n, d, requires_grad=True)
    own = {tensor.untyped_storage().data_ptr() for tensor in (x, *layer.parameters())}
    saved: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    start = time.process_time()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda kept: kept):
        output = layer(x)
    between = time.process_time()
    output.backward(torch.ones_like(output))
    end = time.process_time()
    return Cost(between - start, end - between, sum(saved.values()))


def _better(one: Cost, other: Cost) -> Cost:
    """Return the best time of each pass; the kept bytes are always equal."""
    return Cost(
        min(one.forward_s, other.forward_s),
        min(one.backward_s, other.backward_s),
        one.saved_bytes,
    )


def exponent(points: Mapping[int, float]) -> float:
    """Return the exponent of a power law, fitted to the largest sizes."""
    largest = sorted(points)[-NUM_FITTED:]
    across = [math.log(size) for size in largest]
    up = [math.log(points[size]) for size in largest]
    middle, height = sum(across) / len(across), sum(up) / len(up)
    rises = sum((x - middle) * (y - height) for x, y in zip(across, up, strict=True))
    return rises / sum((x - middle) ** 2 for x in across)


def _seconds(costs: Mapping[int, Cost]) -> dict[int, float]:
    return {size: cost.seconds for size, cost in costs.items()}


def _bytes(costs: Mapping[int, Cost]) -> dict[int, float]:
    return {size: cost.saved_bytes for size, cost in costs.items()}


# ------------------------------------------------------------------------------------- reporting


def print_costs(title: str, variable: str, costs: Costs) -> None:
    """Print the milliseconds of each kind and size, forward + backward."""
    sizes = list(next(iter(costs.values())))
    rows = [
        [name, *(f"{1e3 * c.forward_s:.1f}+{1e3 * c.backward_s:.1f}" for c in of_kind.values())]
        for name, of_kind in costs.items()
    ]
    print(f"\n{title}")
    print_table([["", *(f"{variable} = {size}" for size in sizes)], *rows])


def print_memory(title: str, costs: Costs) -> None:
    """Print the mebibytes that each kind keeps."""
    sizes = list(next(iter(costs.values())))
    rows = [
        [name, *(f"{cost.saved_bytes / MIB:.1f}" for cost in of_kind.values())]
        for name, of_kind in costs.items()
    ]
    print(f"\n{title}")
    print_table([["", *(f"n = {size}" for size in sizes)], *rows])


def print_summary(over_n: Costs, over_d: Costs, counts: Sequence[Counts]) -> None:
    """Print the measured exponents, with those of table 1 in brackets."""
    header = ["", "cost", "time, n", "time, d", "memory, n", "chain", "layers", "path"]
    rows = []
    for kind, counted in zip(KINDS, counts, strict=True):
        of_n, of_d = over_n[kind.name], over_d[kind.name]
        growth = (counted.chains[1] - counted.chains[0]) / (CHAIN_LENGTHS[1] - CHAIN_LENGTHS[0])
        rows.append(
            [
                kind.name,
                kind.cost,
                f"{exponent(_seconds(of_n)):.2f} ({kind.exponents[0]})",
                f"{exponent(_seconds(of_d)):.2f} ({kind.exponents[1]})",
                f"{exponent(_bytes(of_n)):.2f}",
                f"{counted.chains[0] - growth * CHAIN_LENGTHS[0]:g} + {growth:g} n "
                f"({kind.sequential})",
                " ".join(map(str, counted.layers)),
                kind.path,
            ]
        )
    lengths = ", ".join(map(str, PATH_LENGTHS))
    print(
        "\nexponents of n and d, the longest chain of operations (the table's in brackets), and "
        f"layers from the first to the last of {lengths} positions, next to the table's path"
    )
    print_table([header, *rows])


def print_crossover(over_n: Costs, d: int) -> None:
    """Print the ratios attention / recurrent layer: table 1, multiplications, time.

    The forward pass of an attention product has 2 n^2 d multiplications, of an LSTM 8 n d^2.
    """
    rows = [
        [
            f"{n}",
            f"{n / d:.2f}",
            f"{n / (4 * d):.2f}",
            f"{product.seconds / over_n[LSTM][n].seconds:.2f}",
            f"{over_n[SELF][n].seconds / over_n[LSTM][n].seconds:.2f}",
        ]
        for n, product in over_n[PRODUCT].items()
    ]
    print(f"\nattention / {LSTM}, d = {d}: n^2 d / n d^2, multiplications of the product, and time")
    print_table([["n", "table 1", "multiplications", PRODUCT, SELF], *rows])


def print_long(costs: Costs) -> None:
    """Print the costs of restricted and of full self-attention."""
    rows = [
        [
            f"{n}",
            f"{1e3 * full.seconds:.0f}",
            f"{1e3 * near.seconds:.0f}",
            f"{full.seconds / near.seconds:.1f}",
            f"{full.saved_bytes / MIB:.1f}",
            f"{near.saved_bytes / MIB:.1f}",
        ]
        for (n, full), near in zip(costs[SELF].items(), costs[RESTRICTED].values(), strict=True)
    ]
    print(f"\n{SELF} and {RESTRICTED}: ms forwards and backwards, MiB kept")
    print_table([["n", "full ms", "restricted ms", "ratio", "full MiB", "restricted MiB"], *rows])
    fits = ", ".join(f"{name} {exponent(_seconds(of_kind)):.2f}" for name, of_kind in costs.items())
    print(f"exponent of n in time: {fits}")


def draw_plots(folder: Path, over_n: Costs, over_d: Costs) -> None:
    """Write log-log plots, in which the exponent of a power law is the slope of a line."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, title, variable, costs, what in (
        ("time-n", "Time, doublings of a millisecond", "n", over_n, _seconds),
        ("time-d", "Time, doublings of a millisecond", "d", over_d, _seconds),
        ("memory-n", "Memory kept, doublings of a byte", "n", over_n, _bytes),
    ):
        unit = 1e3 if what is _seconds else 1
        smallest = min(next(iter(costs.values())))
        curves = [
            Curve(
                name,
                [(math.log2(x / smallest), math.log2(unit * y)) for x, y in what(of_kind).items()],
            )
            for name, of_kind in costs.items()
        ]
        x_label = f"doublings of {variable} = {smallest}"
        plot = Plot(title, curves, from_zero=False, x_label=x_label)
        (folder / f"{file}.svg").write_text(draw_file(plot), encoding="utf-8", newline="\n")


def _plain(costs: Costs) -> dict[Name, dict[int, dict[str, float]]]:
    return {
        name: {size: asdict(cost) for size, cost in of_kind.items()}
        for name, of_kind in costs.items()
    }


if __name__ == "__main__":
    main()
