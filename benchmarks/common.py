"""Shared code of the benchmarks: interleaved runs of contenders, ratios, tables, peak memory.

A contender is a command that prints its rate and its peak memory, as
"... 2767 tgt tok/s ... peak RSS 1446 MiB". Each round runs every contender once, so a machine that
slows down or warms up does so for all. A ratio is the median of the ratios of the rounds.
"""

import argparse
import json
import multiprocessing
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from nmtkit.config.presets import BASE, BIG, SMALL
from nmtkit.config.schema import Values

SHAPES: Mapping[str, Values] = {"small": SMALL, "base": BASE, "big": BIG}
"""Models with the blocks that all programs have; the preset `small` has others."""

OWN_NAME = "nmtkit"
PEERS = {
    "marian": "Hugging Face Marian",
    "loop": "bare PyTorch loop",
    "fairseq": "fairseq",
    "ctranslate2": "CTranslate2",
}
"""Scripts of benchmarks/peers, and what they measure."""
TRAINERS = ("marian", "loop", "fairseq")
"""Peers that need no exported model."""

MIB = 1024
"""KiB per MiB; getrusage counts in KiB."""


@dataclass(frozen=True)
class Contender:
    """A command to measure."""

    name: str
    command: list[str]


@dataclass(frozen=True)
class Measurement:
    """The output of one run of a contender.

    Attributes:
        rate: in the benchmark's unit.
        peak_mib: its peak memory.
    """

    rate: float
    peak_mib: float


@dataclass(frozen=True)
class Summary:
    """All rounds of one contender.

    Attributes:
        name: the contender.
        rates: the rate of each round.
        rate: their median.
        peak_mib: the largest peak of all rounds.
        ratios: speed of each nmtkit contender divided by this one's, medians of the rounds.
    """

    name: str
    rates: list[float]
    rate: float
    peak_mib: float
    ratios: dict[str, float]


def add_peer_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all comparisons."""
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each contender")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--peers", nargs="*", choices=TRAINERS, default=[], help="programs to compare"
    )
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter of the peers")


def peer(script: str, arguments: Sequence[object], options: argparse.Namespace) -> Contender:
    """Return a peer as a contender."""
    command = [options.peer_python, "-m", f"benchmarks.peers.{script}", *map(str, arguments)]
    return Contender(PEERS[script], command)


def module(name: str, arguments: Sequence[object]) -> list[str]:
    """Return the command that runs a module with this interpreter."""
    return [sys.executable, "-m", name, *map(str, arguments)]


def compare(contenders: Sequence[Contender], options: argparse.Namespace, unit: str) -> None:
    """Run contenders round by round; print a table, then all numbers as JSON.

    Args:
        contenders: the contenders; all are compared with those whose name begins with "nmtkit".
        options: from `add_peer_options`.
        unit: the text after the rate in the contenders' output.
    """
    rounds = []
    for number in range(1, options.rounds + 1):
        print(f"round {number} of {options.rounds}", file=sys.stderr)
        rounds.append([measure(contender, options.threads, unit) for contender in contenders])
    names = [contender.name for contender in contenders]
    measured = dict(zip(names, zip(*rounds, strict=True), strict=True))
    own = {name: found for name, found in measured.items() if name.startswith(OWN_NAME)}
    summaries = [summarize(name, found, own) for name, found in measured.items()]
    header = ("contender", unit, "lowest", "highest", "peak MiB", *(f"{one} / it" for one in own))
    rows = [
        (
            one.name,
            f"{one.rate:.1f}",
            f"{min(one.rates):.1f}",
            f"{max(one.rates):.1f}",
            f"{one.peak_mib:.0f}",
            *(f"{ratio:.3f}" for ratio in one.ratios.values()),
        )
        for one in summaries
    ]
    print_table([header, *rows])
    print_json({"shape": options.shape, "unit": unit, "contenders": [asdict(s) for s in summaries]})


def measure(contender: Contender, threads: int, unit: str) -> Measurement:
    """Run a contender once; read its rate and memory from its output."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(contender.command, capture_output=True, text=True, env=environment)
    rate = re.search(rf"([\d.]+) {re.escape(unit)}", done.stdout)
    peak = re.search(r"peak RSS (\d+) MiB", done.stdout)
    if done.returncode != 0 or rate is None or peak is None:
        sys.exit(f"{contender.name} failed:\n{done.stdout}{done.stderr}")
    print(done.stdout.splitlines()[-1], file=sys.stderr)
    return Measurement(float(rate[1]), float(peak[1]))


def summarize(
    name: str, found: Sequence[Measurement], own: Mapping[str, Sequence[Measurement]]
) -> Summary:
    """Summarise the rounds of a contender and compare them with nmtkit's."""
    ratios = {
        ours: median(
            ours_once.rate / once.rate for ours_once, once in zip(all_, found, strict=True)
        )
        for ours, all_ in own.items()
    }
    rates = [once.rate for once in found]
    return Summary(name, rates, median(rates), max(once.peak_mib for once in found), ratios)


def print_measurement(what: str, rate: float, unit: str, peak: float | None = None) -> None:
    """Print a line for `measure` to read; the default peak in MiB is this process's."""
    if peak is None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    print(f"{OWN_NAME} {what}: {rate:.2f} {unit} peak RSS {peak:.0f} MiB")


def peaks(function: Callable[..., None], *arguments: object) -> tuple[float, float]:
    """Run a function in a new process; return its peak memory and its largest child's, in MiB."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=send_peaks, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    own, largest_child = ours.recv()
    process.join()
    return own, largest_child


def send_peaks(
    connection: "Connection[tuple[float, float], None]",
    function: Callable[..., None],
    arguments: tuple[object, ...],
) -> None:
    """Run a function; send the peak memory of this process and its largest child, in MiB."""
    function(*arguments)
    own, largest_child = (
        resource.getrusage(who).ru_maxrss / MIB
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    connection.send((own, largest_child))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, the first left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join(cells))


def print_json(values: object) -> None:
    """Print one line of JSON."""
    print(json.dumps(values))


def read_words(path: Path, count: int) -> Iterable[list[int]]:
    """Yield the word numbers of the first lines of a corpus of words w00000, w00001, ..."""
    with path.open() as stream:
        for _, line in zip(range(count), stream, strict=False):
            yield [int(word[1:]) for word in line.split()]
