r"""Time of an update on 1 to 64 devices: predicted, and checked on this machine.

    python -m benchmarks.scaling --shape base --vocab-size 37000
    python -m benchmarks.scaling --check

The first assumes a GPU that sustains --device-rate floating-point operations per second. It prints,
for several links, the speed-up of an update of 25 000 tokens per side that W devices share, and the
efficiency of W devices whose updates grow with W. See benchmarks/ring.py for the model.

The second checks that model. It measures the time that a core needs to compute, alone and with
other cores busy, and the time that ranks with gloo need to sum tensors. It predicts the time of an
update on 1, 2 and 4 ranks of one thread each, and measures it.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from benchmarks.common import module, print_json, print_table
from benchmarks.ring import Bucket, Compute, Exchange, Link, fill_buckets, update_seconds
from benchmarks.update_parts import Clock, timed_parts
from benchmarks.updates import Workbench, make_dataset, settings_of
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.config.training import ModelConfig
from nmtkit.model.cost import (
    BACKWARD_AND_FORWARD,
    FLOAT32_BYTES,
    Workload,
    count_parameters,
    training_operations,
)
from nmtkit.model.transformer import Transformer
from nmtkit.progress.records import TrainingRecord
from nmtkit.runtime.environment import is_launched
from nmtkit.training.distributed import Ranks, join_ranks

DEVICES = (1, 2, 4, 8, 16, 32, 64)
IN_A_MACHINE = 8
"""Devices per machine."""

LENGTH = 25
"""Tokens per sentence on either side."""

PEAK_RATE = 989e12
"""Peak operations per second of an H200 in bfloat16, without sparsity (NVIDIA's data sheet)."""

SHARE_OF_PEAK = 0.4
"""Share of the peak that passes reach. Source: NVIDIA's log of MLPerf training 0.7, the big model
on 8 A100: 41 %."""

LEAST_MS = 8.0
"""Time that a host needs to launch an update: about 1 500 kernels of 5 us."""

MEMORY_RATE = 4.8e12
"""Bytes per second of the device's memory. Source: NVIDIA's data sheet of the H200 (2024)."""

BYTES_TO_APPLY = 40
"""Bytes read and written per parameter: norm 4, scaling of the gradient 8, Adam 28."""

OF_DATA_SHEET = 0.8
"""Assumed share of the data sheets' rates of links."""

LINKS = {
    "NVLink 4": Link(450e9 * OF_DATA_SHEET, 3e-6),
    "PCIe 4": Link(32e9 * OF_DATA_SHEET, 10e-6),
    "InfiniBand 400 Gbit/s": Link(50e9 * OF_DATA_SHEET, 5e-6),
    "Ethernet 100 Gbit/s": Link(12.5e9 * OF_DATA_SHEET, 30e-6),
    "Ethernet 10 Gbit/s": Link(1.25e9 * OF_DATA_SHEET, 30e-6),
}
"""By data sheet, in one direction: NVIDIA's of the H100 (900 GB/s both ways), PCI-SIG's of 16 lanes
of generation 4, and the networks' own names. Latencies of NCCL and TCP are assumed."""

PAIRS = (
    ("NVLink 4", "InfiniBand 400 Gbit/s"),
    ("PCIe 4", "Ethernet 100 Gbit/s"),
    ("PCIe 4", "Ethernet 10 Gbit/s"),
)
"""Links between the devices of a machine, and between machines."""

RANKS = (1, 2, 4)
CHECK_TOKENS = (1024, 4096)
"""Tokens of the predicted updates; in small ones the exchange takes a larger part."""

FIT_TOKENS = (256, 1024, 4096)
"""Tokens of the updates for the fit of the time of passes."""

SIZES = (1 << 12, 1 << 20, 1 << 24)
"""Bytes of the tensors for the fit of the time of an exchange."""

REPEATS = 4
EXCHANGES = 15
MILLI = 1e3


def main() -> None:
    """Predict or check; with --worker, run as one of the measured processes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=PRESETS, help="base; with --check, small")
    parser.add_argument("--vocab-size", type=int, default=37_000)
    parser.add_argument("--update-tokens", type=int, default=25_000)
    parser.add_argument("--device-rate", type=float, default=SHARE_OF_PEAK * PEAK_RATE)
    parser.add_argument(
        "--least-ms", type=float, default=LEAST_MS, help="shortest time of an update's passes"
    )
    parser.add_argument("--check", action="store_true", help="predict and measure, on this CPU")
    parser.add_argument("--corpus", type=Path, help="for --check, as in benchmarks.train")
    parser.add_argument("--worker", type=Path, metavar="DATASET", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.shape = options.shape or ("small" if options.check else "base")
    if options.worker:
        work(options)
    elif options.check:
        check(options)
    else:
        predict(options)


def predict(options: argparse.Namespace) -> None:
    """Print the predicted tables of a shape on GPUs."""
    config = build(TrainRecipe, PRESETS[options.shape]).model
    size = options.vocab_size
    operations = training_operations(config, size, Workload(1, 1, LENGTH, LENGTH))
    # Gradients of the projection to the vocabulary are computed with the loss, before the others.
    in_loss = BACKWARD_AND_FORWARD * 2 * config.model_size * size
    compute = Compute(
        least_s=options.least_ms / MILLI,
        fixed_s=0.0,
        token_s=operations / options.device_rate,
        backward=(operations - in_loss) / operations * (1 - 1 / BACKWARD_AND_FORWARD),
        apply_s=BYTES_TO_APPLY
        * count_parameters(config, size, size, is_shared=True).total
        / MEMORY_RATE,
    )
    buckets = buckets_of(config, size)
    found = {}
    for near, far in PAIRS:
        links = LINKS[near], LINKS[far]
        found[f"{near}, {far}"] = scale(options.update_tokens, compute, links, buckets)
        print(f"\n{options.shape}: {near} in machines of {IN_A_MACHINE}, {far} between them")
        print_scale(found[f"{near}, {far}"])
    print_json({"compute": asdict(compute), "links": found})


def buckets_of(config: ModelConfig, vocab_size: int) -> list[Bucket]:
    """Return the buckets of a model's gradients."""
    with torch.device("meta"):
        model = Transformer(config, vocab_size, vocab_size, is_shared=True)
    embeddings, *layers = (FLOAT32_BYTES * one.numel() for one in model.parameters())
    return fill_buckets(layers[::-1], embeddings)


def scale(
    tokens: int, compute: Compute, links: tuple[Link, Link], buckets: Sequence[Bucket]
) -> list[dict[str, float]]:
    """Return the times of shared and of growing updates, for each number of devices.

    Args:
        tokens: tokens per side of an update.
        compute: the times of one device.
        links: links within a machine, and between machines.
        buckets: the exchanged gradients.
    """
    alone = update_seconds(tokens, compute, None, buckets)
    found = []
    for devices in DEVICES:
        link = links[devices > IN_A_MACHINE]
        exchange = Exchange.by_ring(link, devices) if devices > 1 else None
        shared = update_seconds(tokens / devices, compute, exchange, buckets)
        grown = update_seconds(tokens, compute, exchange, buckets)
        found.append(
            {
                "devices": devices,
                "shared_s": shared,
                "times_as_fast": alone / shared,
                "tokens_s": tokens / shared,
                "grown_s": grown,
                "grown_efficiency": alone / grown,
                "grown_tokens_s": devices * tokens / grown,
            }
        )
    return found


def print_scale(found: Sequence[dict[str, float]]) -> None:
    """Print the results of `scale`, and up to which number devices are useful."""
    header = ("W", "shared ms", "times", "tgt tok/s", "grown ms", "efficiency", "tgt tok/s")
    rows = [
        (
            f"{one['devices']}",
            f"{MILLI * one['shared_s']:.1f}",
            f"{one['times_as_fast']:.2f}",
            f"{one['tokens_s']:.0f}",
            f"{MILLI * one['grown_s']:.1f}",
            f"{one['grown_efficiency']:.0%}",
            f"{one['grown_tokens_s']:.0f}",
        )
        for one in found
    ]
    print_table([header, *rows])
    fastest = min(found, key=lambda one: one["shared_s"])
    worth = [one["devices"] for one in found if one["times_as_fast"] >= one["devices"] / 2]
    print(
        f"a shared update is fastest on {fastest['devices']}, and half of each device's work is of "
        f"use up to {max(worth)}"
    )


def check(options: argparse.Namespace) -> None:
    """Predict and measure the time of updates on ranks of this machine; print both."""
    num_cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "dataset"
        make_dataset(options.corpus, dataset)
        arguments = ["--worker", dataset, "--shape", options.shape]
        # A core is slower while others compute, because they share caches and memory.
        cores = sorted({min(number, num_cores) for number in RANKS})
        computes = {number: fit_passes(run(arguments, number, False)) for number in cores}
        measured = {number: run(arguments, number, True)[0] for number in RANKS}
    found = []
    for number, one in measured.items():
        compute = in_turns(computes[min(number, num_cores)], max(1.0, number / num_cores))
        exchange = fit_exchange(one["exchanges"]) if number > 1 else None
        buckets = fill_buckets(one["layers"], one["embeddings"])
        for tokens, measured_s in one["updates"]:
            seconds = update_seconds(tokens / number, compute, exchange, buckets)
            found.append((number, round(tokens), seconds, measured_s))
    rows = [
        (f"{number}", f"{tokens}", f"{predicted:.3f}", f"{real:.3f}", f"{predicted / real:.2f}")
        for number, tokens, predicted, real in found
    ]
    print(f"{options.shape}, {num_cores} cores, a thread each")
    print_table([("ranks", "tokens per side", "predicted s", "measured s", "ratio"), *rows])
    exchanges = {number: one["exchanges"] for number, one in measured.items()}
    print_json({"cores": num_cores, "check": found, "exchanges": exchanges})


def fit_passes(workers: Sequence[dict[str, Any]]) -> Compute:
    """Return the times of a core, from the measurements of workers that ran together."""
    points = [point for worker in workers for point in worker["passes"]]
    tokens, seconds, backward, apply = map(np.array, zip(*points, strict=True))
    token_s, fixed_s = np.polyfit(tokens, seconds, 1)
    share = float(backward.sum() / seconds.sum())
    return Compute(0.0, max(0.0, float(fixed_s)), float(token_s), share, float(np.mean(apply)))


def in_turns(compute: Compute, factor: float) -> Compute:
    """Return the times of a rank that shares a core."""
    return replace(
        compute,
        fixed_s=factor * compute.fixed_s,
        token_s=factor * compute.token_s,
        apply_s=factor * compute.apply_s,
    )


def fit_exchange(points: Sequence[tuple[float, float]]) -> Exchange:
    """Fit the time of an exchange to pairs (bytes, seconds).

    The exchange uses the cores of the computation, so the two do not overlap.
    """
    num_bytes, seconds = map(np.array, zip(*points, strict=True))
    # Relative errors, so that small sizes determine the fixed time.
    byte_s, fixed_s = np.polyfit(num_bytes, seconds, 1, w=1 / seconds)
    return Exchange(max(0.0, float(fixed_s)), float(byte_s), overlaps=False)


def run(arguments: Sequence[object], number: int, together: bool) -> list[dict[str, Any]]:
    """Run workers at the same time, as ranks of one run or independently.

    Returns:
        The results of each worker; with ranks, of the first.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    workers = []
    for rank in range(number):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if together:
            environment |= {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(number),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": "lo",
            }
        command = module("benchmarks.scaling", arguments)
        workers.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
    outputs = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        sys.exit("a worker failed")
    return [json.loads(output) for output in outputs if output]


def work(options: argparse.Namespace) -> None:
    """Measure as one of several workers; print the results as JSON."""
    torch.set_num_threads(1)
    if not is_launched():
        print_json({"passes": [passes(options, tokens) for tokens in FIT_TOKENS]})
        return
    with join_ranks(torch.device("cpu"), timeout_minutes=2, clock=time.monotonic) as ranks:
        exchanges = [(size, exchange_seconds(size)) for size in SIZES]
        updates = []
        for tokens in CHECK_TOKENS:
            with opened(options, tokens, ranks) as bench:
                bench.run(1)
                start = time.perf_counter()
                bench.run(REPEATS)
                seconds = (time.perf_counter() - start) / REPEATS
                updates.append((mean_tokens(bench.record()), seconds))
                parameters = bench.trainer.train_state.model.parameters()
                embeddings, *layers = (FLOAT32_BYTES * one.numel() for one in parameters)
        if ranks.is_first:
            found = {"updates": updates, "exchanges": exchanges}
            print_json({**found, "embeddings": embeddings, "layers": layers[::-1]})


def opened(
    options: argparse.Namespace, tokens: int, ranks: Ranks
) -> AbstractContextManager[Workbench]:
    """Return a workbench of a new model, with updates of a number of tokens per side."""
    settings = settings_of(options.shape, tokens, {"threads": 1, "device": "cpu"})
    return Workbench.opened(settings, options.worker, ranks)


def passes(options: argparse.Namespace, tokens: int) -> tuple[float, float, float, float]:
    """Return the tokens of an update, and the seconds of passes, backward pass and optimiser."""
    with opened(options, tokens, Ranks()) as bench:
        clock = Clock(bench.context.device)
        bench.run(1)
        with timed_parts(clock):
            begin = clock.mark()
            bench.run(REPEATS)
            seconds = clock.read(begin)
    apply = clock.seconds["optimiser"]
    parts = (seconds - apply, clock.seconds["backward"], apply)
    in_passes, backward, apply = (part / REPEATS for part in parts)
    return mean_tokens(bench.record()), in_passes, backward, apply


def mean_tokens(updates: TrainingRecord) -> float:
    """Return the tokens per side of an update, the mean of REPEATS updates."""
    return (updates.num_source_tokens + updates.num_target_tokens) / 2 / REPEATS


def exchange_seconds(size: int) -> float:
    """Return the seconds in which all ranks sum a tensor of `size` bytes."""
    tensor = torch.zeros(size // FLOAT32_BYTES)
    times = []
    for _ in range(EXCHANGES):
        start = time.perf_counter()
        dist.all_reduce(tensor)
        times.append(time.perf_counter() - start)
    return median(times)


if __name__ == "__main__":
    main()
