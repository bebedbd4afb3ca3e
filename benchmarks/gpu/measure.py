"""Clocks and counters of a GPU, tables printed row by row, and the parts' common options.

Launches, kernel times and synchronisations exist only on a GPU; tables of a CPU omit the columns.
"""

import argparse
import ctypes
import math
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import TracebackType

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.common import print_json
from benchmarks.memory import wait
from nmtkit.runtime.devices import device_name, peak_memory

Work = Callable[[], object]

MILLI, GIB = 1e3, 2**30
SYNCHRONIZATION = "called a synchronizing CUDA operation"
"""Words of torch's warning of an operation for which the host waits."""

COUNTING_RUNTIME = "libcudart.so.13"
CALLS = ("launches", "syncs", "mallocs", "to_device", "to_host", "on_device")
"""The runtime that may count its calls, and what it counts, in its order."""

CAST = re.compile("bfloat16_copy_kernel|unrolled_elementwise_kernel.*direct_copy_kernel")
"""Names of kernels that convert a tensor to another type, and do nothing else."""

NAME_LENGTH = 90
"""Characters of a kernel's name that are printed."""

LEAST_WIDTH = 7


def read_options(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    dry_run: Mapping[str, object],
) -> argparse.Namespace:
    """Read the command line of a part, including the common options.

    Args:
        parser: parser with the part's options.
        arguments: the command line; None = of this process.
        dry_run: default values in a dry run.
    """
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument(
        "--dry-run", action="store_true", help="run once on the CPU with a few tokens, as a test"
    )
    if parser.parse_args(arguments).dry_run:
        parser.set_defaults(device="cpu", **dry_run)
    return parser.parse_args(arguments)


def seconds(work: Work, device: torch.device, num_calls: int, num_warm_up: int = 0) -> float:
    """Return the mean seconds of a call.

    Args:
        work: the function to call.
        device: the device of its computation.
        num_calls: calls that are timed together.
        num_warm_up: calls before them.
    """
    for _ in range(num_warm_up):
        work()
    wait(device)
    start = time.perf_counter()
    for _ in range(num_calls):
        work()
    wait(device)
    return (time.perf_counter() - start) / num_calls


def host_seconds(work: Work, device: torch.device) -> float:
    """Return the processor seconds of a call, all threads included."""
    wait(device)
    start = time.process_time()
    work()
    return time.process_time() - start


def kernels(work: Work, device: torch.device, num_printed: int = 0) -> dict[str, float]:
    """Return the GPU columns of a call; none on a CPU.

    Args:
        work: what is called; the second call is profiled, as the first call with a profiler
            loads it.
        device: where it computes.
        num_printed: kernels to print, the longest first.

    Returns:
        Milliseconds of its kernels, copies and fills, and their number: nan, or a count of kernels
        by the runtime, where the profiler (CUPTI) is missing. And the operations for which the host
        waits.
    """
    if device.type != "cuda":
        return {}
    profiled(work)
    spent = profiled(work)
    if spent is None:
        gpu_ms, launches = math.nan, (calls(work) or {}).get("launches", math.nan)
    else:
        gpu_ms = sum(ms for times in spent.values() for ms in times)
        launches = sum(map(len, spent.values()))
        totals = Counter({name: sum(times) for name, times in spent.items()})
        for name, ms in totals.most_common(num_printed):
            print(f"    {ms:7.3f} ms {len(spent[name]):5d} x {name}")
    return {"gpu_ms": gpu_ms, "launches": launches, "syncs": synchronizations(work)}


@cache
def counting_runtime() -> ctypes.CDLL | None:
    """Return the CUDA runtime if it is a stand-in that counts its calls; None = it is not.

    It computes nothing. From now on the host reads zeros from it, and not what memory held.
    """
    try:
        runtime = ctypes.CDLL(COUNTING_RUNTIME)
        runtime.fake_total.restype = ctypes.c_long
    except (OSError, AttributeError):
        return None
    runtime.fake_read_zeros(1)
    return runtime


def calls(work: Work) -> dict[str, int] | None:
    """Return the calls of the CUDA runtime by kind; None if it does not count them."""
    runtime = counting_runtime()
    if runtime is None:
        return None
    runtime.fake_reset(1)
    work()
    with tempfile.NamedTemporaryFile() as file:
        runtime.fake_write(file.name.encode())
        names = file.read().decode()
    casts = sum(int(line.split()[0]) for line in names.splitlines() if CAST.search(line))
    return {**{name: runtime.fake_total(index) for index, name in enumerate(CALLS)}, "casts": casts}


def profiled(work: Work) -> dict[str, list[float]] | None:
    """Return the milliseconds of each kernel of a call, by name; None without a profiler."""
    profiler = profile(activities=[ProfilerActivity.CUDA], acc_events=True)
    try:
        profiler.start()
    except RuntimeError:
        return None
    try:
        work()
        torch.cuda.synchronize()
    finally:
        profiler.stop()
    spent: dict[str, list[float]] = {}
    for event in profiler.events() or ():
        if event.device_type.name == "CUDA":
            spent.setdefault(event.name[:NAME_LENGTH], []).append(event.device_time / MILLI)
    return spent or None


def synchronizations(work: Work) -> int:
    """Count the operations of a call for which the host waits, except torch.cuda.synchronize."""
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode(mode)
    return sum(SYNCHRONIZATION in str(one.message) for one in caught)


def peak(device: torch.device) -> dict[str, float]:
    """Return the column of peak GPU memory since `reset_peak_memory`; none on a CPU."""
    return {"peak_GiB": peak_memory(device) / GIB} if device.type == "cuda" else {}


class Table:
    """A table that prints each row when it is added, and all rows as JSON at the end."""

    def __init__(self, title: str, options: argparse.Namespace, width: int) -> None:
        """Begin a table.

        Args:
            title: what is measured; "table" in the JSON.
            options: how; they are in the JSON too.
            width: of the first column.
        """
        name = device_name(torch.device(options.device))
        about = {**vars(options), "device": name, "torch": torch.__version__}
        self._title, self._about, self._width = title, about, width
        self._rows: list[Mapping[str, object]] = []
        self._widths: list[int] = []

    def __enter__(self) -> "Table":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Print the JSON, also of an incomplete table."""
        rows = [{name: _plain(value) for name, value in row.items()} for row in self._rows]
        print_json({"table": self._title, **self._about, "rows": rows})

    def add(self, row: Mapping[str, object]) -> None:
        """Add and print a row; the names of the first row are the header."""
        cells = [_cell(value) for value in row.values()]
        if not self._rows:
            names = [name.replace("_", " ") for name in row]
            pairs = zip(names[1:], cells[1:], strict=True)
            self._widths = [max(len(a), len(b), LEAST_WIDTH) for a, b in pairs]
            print(f"\n{self._title}")
            self._print(names)
        self._rows.append(row)
        self._print(cells)

    def _print(self, cells: Sequence[str]) -> None:
        first, *others = cells
        pairs = zip(others, self._widths, strict=True)
        columns = [first.ljust(self._width), *(cell.rjust(width) for cell, width in pairs)]
        print("  ".join(columns), flush=True)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _plain(value: object) -> object:
    """Return a JSON value: floats rounded to five digits, None for nan."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.5g}") if math.isfinite(value) else None
