"""All GPU benchmarks, one after another, each with a time limit.

    python -m benchmarks.gpu
    python -m benchmarks.gpu --dry-run

Each part is a separate process; `python -m benchmarks.gpu.PART --help` lists its options. A part
that fails or exceeds its time is named at the end, and the exit code is 1. The others still run.
"""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.common import module
from benchmarks.gpu.measure import Table, read_options
from benchmarks.gpu.workload import open_device

PARTS = {
    "budgets": 2.0,
    "updates": 11.0,
    "decoding": 7.0,
    "limits": 4.0,
}
"""The parts, with their limits in minutes."""

SECONDS_PER_MINUTE = 60
TO_END_S = 20.0
"""The time that an interrupted part has to print its results."""

OK = "ok"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options = read_options(parser, arguments, {})
    open_device(options.device)
    passed_on: list[object] = [
        "--device",
        options.device,
        *(["--dry-run"] if options.dry_run else []),
    ]
    rows: list[dict[str, object]] = []
    for name, minutes in PARTS.items():
        print(f"\n== {name}, at most {minutes:g} minutes", flush=True)
        start = time.monotonic()
        outcome = run(module(f"benchmarks.gpu.{name}", passed_on), minutes)
        took = (time.monotonic() - start) / SECONDS_PER_MINUTE
        rows.append({"part": name, "minutes": took, "outcome": outcome})
    with Table("parts", options, width=9) as table:
        for row in rows:
            table.add(row)
    failed = [str(row["part"]) for row in rows if row["outcome"] != OK]
    if failed:
        sys.exit(f"benchmarks.gpu: not complete: {', '.join(failed)}")


def run(command: Sequence[str], minutes: float) -> str:
    """Run a part, interrupt it at its time limit, and return its outcome."""
    process = subprocess.Popen(command)
    try:
        code = process.wait(minutes * SECONDS_PER_MINUTE)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(TO_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return "too slow"
    return OK if code == 0 else f"exit code {code}"


if __name__ == "__main__":
    main()
