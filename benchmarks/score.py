"""Speed of scoring trees: by the library, and by the whole command including its start.

python -m benchmarks.score --gold GOLD --parsed PARSED
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.common import module, print_json, print_table
from nmtkit.parsing.evalb.comparison import compare_lines
from nmtkit.parsing.evalb.parameters import COLLINS
from nmtkit.text.lines import read_lines


def main() -> None:
    """Compare the trees in both ways, interleaved, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gold", type=Path, required=True, help="gold trees, one per line")
    parser.add_argument("--parsed", type=Path, required=True, help="parses of the same sentences")
    parser.add_argument("--copies", type=int, default=10, help="copies of each file")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each way")
    arguments = parser.parse_args()
    gold, parsed = (
        list(read_lines(path)) * arguments.copies for path in (arguments.gold, arguments.parsed)
    )
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "gold", Path(folder) / "parsed"
        for path, lines in zip(files, (gold, parsed), strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        command = module("nmtkit_cli", ["score", "--metric", "brackets", "--reference", *files])
        ways: dict[str, Callable[[], object]] = {
            "compare_lines": lambda: sum(1 for _ in compare_lines(gold, parsed, COLLINS)),
            "nmtkit score --metric brackets": lambda: subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL
            ),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(arguments.rounds):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                seconds[name].append(time.perf_counter() - start)
    rates = {name: len(gold) / median(times) for name, times in seconds.items()}
    print_table([("sentences/s", ""), *((name, f"{rate:.0f}") for name, rate in rates.items())])
    print_json({"sentences": len(gold), "seconds": seconds, "sentences_per_s": rates})


if __name__ == "__main__":
    main()
