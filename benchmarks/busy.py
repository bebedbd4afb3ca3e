"""Training and decoding on a CPU while other processes compute, by how OpenMP's threads wait.

    python -m benchmarks.busy --shape small

Each measurement is a new process, as libgomp reads its settings when it is loaded. Settings are
interleaved. The table has medians of tokens per second, source and target in training, target in
decoding, and their ratio to the default setting without busy processes. --dry-run takes tiny sizes.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from statistics import median

import torch

from benchmarks.common import module, print_json, print_table
from benchmarks.decode import decode, make_prepared_model
from benchmarks.variants import Updates
from nmtkit.config.schema import RuntimeConfig
from nmtkit.runtime.devices import set_up
from nmtkit.runtime.environment import SPIN_COUNT, WAITING_VARIABLES
from nmtkit.symbols import EOS_ID

SETTINGS = ("default", f"GOMP_SPINCOUNT={SPIN_COUNT}", "OMP_WAIT_POLICY=passive")
WORK = ("train", "decode")
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
SENTENCES, SOURCE_LENGTH, TARGET_LENGTH, BEAM = 32, 25, 30, 4


def main() -> None:
    """Measure, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=("small", "base"), default="small")
    parser.add_argument("--tokens", type=int, default=2048, help="per side of an update")
    parser.add_argument("--repeats", type=int, default=8, help="updates or searches of a process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2], help="0 comes first")
    parser.add_argument("--settings", nargs="+", default=SETTINGS, help="default comes first")
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    parser.set_defaults(vocab_size=8000, device="cpu", precision="float32", compile=False)
    options = parser.parse_args()
    if (options.busy[0], options.settings[0]) != (0, "default"):
        parser.error("--busy begins with 0, and --settings with default: ratios are to these")
    if options.dry_run:
        options.tokens = options.vocab_size = 100
        options.repeats, options.rounds = 1, 1
        options.busy, options.settings = options.busy[:2], options.settings[:2]
    if options.work:
        print(rate(options))
        return
    cases = list(itertools.product(WORK, options.busy, options.settings))
    rates: dict[tuple[str, int, str], list[float]] = {case: [] for case in cases}
    for _, (work, busy, setting) in itertools.product(range(options.rounds), cases):
        rates[work, busy, setting].append(measure(work, busy, setting))
        print(work, f"{busy} busy", setting, f"{rates[work, busy, setting][-1]:.0f}", flush=True)
    rows = [("tokens/s (ratio)", *(f"{busy} busy" for busy in options.busy))]
    for work, setting in itertools.product(WORK, options.settings):
        quiet = median(rates[work, 0, "default"])
        found = [median(rates[work, busy, setting]) for busy in options.busy]
        rows.append((f"{work}, {setting}", *(f"{one:.0f} ({one / quiet:.2f})" for one in found)))
    print_table(rows)
    print_json([{"case": case, "rates": found} for case, found in rates.items()])


def measure(work: str, num_busy: int, setting: str) -> float:
    """Return the tokens per second of a new process next to busy ones."""
    environment = {name: os.environ[name] for name in os.environ if name not in WAITING_VARIABLES}
    name, _, value = setting.partition("=")
    environment |= {name: value} if value else {}
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(num_busy)]
    try:
        command = module("benchmarks.busy", [*sys.argv[1:], "--work", work])
        return float(subprocess.check_output(command, env=environment))
    finally:
        for process in busy:
            process.kill()
            process.wait()


def rate(options: argparse.Namespace) -> float:
    """Return the tokens per second of this process."""
    repeats: int = options.repeats
    if options.work == "train":
        set_up(RuntimeConfig(device=options.device, threads=options.threads))
        updates = Updates({}, options)
        num_tokens = sum(updates.batch.sizes)
        return repeats * num_tokens / sum(updates.seconds() for _ in range(repeats))
    model = make_prepared_model(options)
    batch = [[*range(EOS_ID + 1, EOS_ID + SOURCE_LENGTH), EOS_ID]] * SENTENCES
    with torch.inference_mode():
        decode(model, batch, TARGET_LENGTH, BEAM)
        start = time.perf_counter()
        for _ in range(repeats):
            decode(model, batch, TARGET_LENGTH, BEAM)
    return repeats * SENTENCES * TARGET_LENGTH / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
