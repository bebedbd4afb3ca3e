r"""Translation of a corpus from file to file: speed next to a pipe's, and growth of memory.

    python -m benchmarks.corpus MODEL --source FILE --lines 5000
    python -m benchmarks.corpus MODEL --source FILE --lines 1000000 --memory

Both ways translate the same lines, repeated as needed, interleaved. With --memory, one translation
runs from file to file, and its memory is read from the kernel while it grows. Further options are
given to `nmtkit translate`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from benchmarks.common import MIB, module, print_json, print_table

SECONDS_BETWEEN_SAMPLES = 0.5


def main() -> None:
    """Measure; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True, help="text to translate")
    parser.add_argument("--lines", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="measure memory instead of speed")
    options, settings = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "source"), Path(folder, "output")
        with options.source.open("rb") as lines, source.open("wb") as repeated:
            repeated.writelines(islice(cycle(lines.readlines()), options.lines))
        command = module("nmtkit_cli", ["translate", options.model, *settings])
        files = [*command, f"--input={source}", f"--output={output}"]
        if options.memory:
            print_memory(files, output, options.lines)
        else:
            print_speed(command, files, source, output, options)


def print_speed(
    pipe: list[str], files: list[str], source: Path, output: Path, options: argparse.Namespace
) -> None:
    """Run both ways in turn; print lines per second, and the ratio of each round."""
    rounds = []
    for _ in range(options.rounds):
        with source.open("rb") as stdin, output.open("wb") as stdout:
            of_pipe = seconds(pipe, stdin=stdin, stdout=stdout)
        expected = output.read_bytes()
        output.unlink()
        of_files = seconds(files)
        is_equal = output.read_bytes() == expected
        output.unlink()
        rounds.append((of_pipe, of_files, is_equal))
        print(f"{of_pipe:.1f} s, {of_files:.1f} s, equal: {is_equal}", file=sys.stderr)
    rows = [
        (name, f"{options.lines / median(one[place] for one in rounds):.1f}")
        for place, name in enumerate(("standard streams", "files"))
    ]
    ratio = median(of_pipe / of_files for of_pipe, of_files, _ in rounds)
    print_table([("way", "lines/s"), *rows])
    print(f"files / standard streams: {ratio:.3f}")
    print_json({"lines": options.lines, "seconds": [one[:2] for one in rounds], "ratio": ratio})


def print_memory(command: list[str], output: Path, num_lines: int) -> None:
    """Run from file to file; print the resident memory at tenths of the time."""
    samples: list[float] = []
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            samples.append(resident_mib(process.pid))
            time.sleep(SECONDS_BETWEEN_SAMPLES)
    if process.returncode or output.read_bytes().count(b"\n") != num_lines:
        sys.exit(f"failed with exit code {process.returncode}")
    found = [max(samples[: 1 + len(samples) * part // 10] or [0.0]) for part in range(1, 11)]
    rows = [(f"{part * 10} %", f"{peak:.0f}") for part, peak in enumerate(found, 1)]
    print_table([("of the time", "highest MiB so far"), *rows])
    print_json({"lines": num_lines, "peaks": found})


def seconds(command: list[str], **streams: object) -> float:
    """Return the seconds that a command takes."""
    start = time.perf_counter()
    subprocess.run(command, stderr=subprocess.DEVNULL, check=True, **streams)  # type: ignore[call-overload]
    return time.perf_counter() - start


def resident_mib(process: int) -> float:
    """Return the resident memory of a process; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / MIB


if __name__ == "__main__":
    main()
