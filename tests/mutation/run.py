"""Measure the strength of the tests: the share of drawn mutants that they kill.

    python -m tests.mutation.run --seed 1 --count 60

Mutants of the newest commit are drawn, each applied alone in a temporary copy of its files, and the
tests that run the changed line are run until one fails. Tests that fail without a mutant too kill
nothing. The map of tests and lines is made first, and kept in build/mutation/ for its commit.

Mutation libraries do not fit: mutmut changes functions only, and cannot draw by a seed; cosmic-ray
runs all tests for each mutant.
"""

import argparse
import importlib.util
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.common import print_json, print_table
from tests.mutation.coverage_map import FOLDERS, SECONDS, CoverageMap
from tests.mutation.mutants import Mutant, draw
from tests.shared_data import DATA

ROOT = Path(__file__).parents[2]
MAPPED = ("tests/unit", "tests/golden")
"""The tests that may kill: they run the product in their own process."""

SELECTED_S = 30
"""CPU seconds of the tests of a mutant, as the map says; later ones are left out."""
CPU_S, MAP_CPU_S = 60, 3600
"""Limits of the CPU seconds of one mutant, and of the map."""
WALL_PER_CPU = 10
"""Seconds that may pass per CPU second, on a busy machine."""
MEMORY_BYTES = 8 << 30
VERDICTS = ("killed", "timeout", "survived", "uncovered")
OPTIONS = ("--tb=no", "-rfE", "--color=no", "-p", "no:cacheprovider", "--hypothesis-seed=0")
FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+::[^\s\[]+)", re.MULTILINE)


@dataclass(frozen=True)
class Ending:
    """How tests ended: "passed", "failed" or "timeout"; and those that failed."""

    verdict: str
    failed: list[str]


@dataclass(frozen=True)
class Result:
    """What the tests made of a mutant.

    Attributes:
        verdict: one of VERDICTS; "uncovered", no test runs the line.
        killer: the test that failed; None also if no test could be collected.
        num_tests: tests selected, without their parameters.
        cpu_s: CPU seconds of running them.
    """

    file: str
    line: int
    before: str
    after: str
    verdict: str
    killer: str | None
    num_tests: int
    cpu_s: float


class Copy:
    """A copy of a commit's files, in which tests are run."""

    def __init__(self, folder: Path, commit: str) -> None:
        self.folder = folder
        archive = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        subprocess.run(["tar", "x"], cwd=folder, check=True, input=archive.stdout)
        paths = [path for one in FOLDERS for path in (folder / one).rglob("*.py")]
        self.sources = {str(one.relative_to(folder)): one.read_text("utf-8") for one in paths}

    def write(self, file: str, text: str) -> None:
        """Replace a source; its compiled code, which knows whole seconds only, is removed."""
        path = self.folder / file
        path.write_text(text, "utf-8")
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def run(self, *arguments: str, cpu_s: int, **variables: str) -> Ending:
        """Run pytest in a process group of its own, within limits."""
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)  # examples of other mutants
        path = os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])
        ours = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "NMTKIT_TEST_DATA": str(DATA)}
        command = [sys.executable, "-m", "pytest", *OPTIONS, *arguments]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | ours | variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_s, cpu_s))
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
            try:
                code = process.wait(timeout=WALL_PER_CPU * cpu_s)
            except subprocess.TimeoutExpired:
                code = -signal.SIGKILL
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            failed = FAILED.findall(output.read())
        verdict = {0: "passed", -signal.SIGKILL: "timeout"}.get(code, "failed")
        return Ending(verdict, failed)


def coverage_map(copy: Copy, commit: str) -> CoverageMap:
    """Return the map of a commit, which is made if it is not there."""
    folder = ROOT / "build" / "mutation" / commit
    if not (folder / SECONDS).exists():
        print(f"mapping the lines that {' and '.join(MAPPED)} run", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        plugin = ("-p", "tests.mutation.coverage_map")
        copy.run(*plugin, *MAPPED, cpu_s=MAP_CPU_S, COVERAGE_MAP=str(folder))
    return CoverageMap(folder)


def select(known: CoverageMap, file: str, mutant: Mutant) -> list[str]:
    """Return the tests that run a mutant: of its own unit test first, then of the fastest files."""
    own = f"tests/unit/{Path(file).parent.relative_to('nmtkit')}/test_{Path(file).stem}"
    tests = known.tests_of(file, mutant.lines)
    totals: defaultdict[str, float] = defaultdict(float)
    for test in tests:
        totals[test.partition("::")[0]] += known.seconds[test]

    def order(test: str) -> tuple[bool, float, str, float]:
        of = test.partition("::")[0]
        return not test.startswith(own), totals[of], of, known.seconds[test]

    selected: list[str] = []
    seconds = 0.0
    for test in sorted(tests, key=order):
        seconds += known.seconds[test]
        if seconds <= SELECTED_S or not selected:
            selected.append(test)
    return selected


def judge_all(copy: Copy, known: CoverageMap, drawn: list[tuple[str, Mutant]]) -> list[Result]:
    """Run the tests of all mutants; again without the killers that fail without a mutant too."""
    results: dict[tuple[str, Mutant], Result] = {}
    failing: set[str] = set()
    pending = drawn
    while pending:
        for number, (file, mutant) in enumerate(pending, start=1):
            tests = [test for test in select(known, file, mutant) if test not in failing]
            result = results[file, mutant] = judge(copy, file, mutant, tests)
            line = f"{number}/{len(pending)} {result.verdict}: {describe(result)}"
            print(f"{line} ({len(tests)} tests, {result.cpu_s:.0f} s)", file=sys.stderr)
        killers = sorted({one.killer for one in results.values() if one.killer})
        new = copy.run(*killers, cpu_s=CPU_S * len(killers)).failed if killers else []
        failing.update(new)
        pending = [one for one in pending if results[one].killer in new]
    return list(results.values())


def judge(copy: Copy, file: str, mutant: Mutant, tests: list[str]) -> Result:
    """Run tests of a mutant until one fails."""
    begin, text = _cpu_s(), copy.sources[file]
    verdict, killer = "uncovered", None
    if tests:
        copy.write(file, mutant.apply(text))
        ending = copy.run("-x", *tests, cpu_s=CPU_S)
        copy.write(file, text)
        verdict = {"failed": "killed", "passed": "survived"}.get(ending.verdict, "timeout")
        killer = ending.failed[0] if ending.failed else None
    before, after, cpu_s = mutant.before, mutant.after, _cpu_s() - begin
    return Result(file, mutant.line, before, after, verdict, killer, len(tests), cpu_s)


def _cpu_s() -> float:
    return sum(os.times()[2:4])


def report(commit: str, seed: int, results: list[Result]) -> None:
    """Print counts by folder, the mutants that were not killed, and everything as JSON."""
    rows = [["folder", "mutants", *VERDICTS]]
    for folder in (*FOLDERS, "nmtkit"):
        counts = Counter(one.verdict for one in results if one.file.startswith(f"{folder}/"))
        rows.append([folder, f"{counts.total()}", *(f"{counts[name]}" for name in VERDICTS)])
    print_table(rows)
    for one in results:
        if one.verdict != "killed":
            print(f"{one.verdict}: {describe(one)}")
    num_killed = sum(one.verdict == "killed" for one in results)
    share = num_killed / max(len(results), 1)
    print(f"commit {commit[:10]}, seed {seed}: killed {num_killed} of {len(results)}: {share:.0%}")
    print_json({"commit": commit, "seed": seed, "results": [asdict(one) for one in results]})


def describe(one: Result) -> str:
    """Return a result's place and change, in one line."""
    before, after = (" ".join(text.split()) or "nothing" for text in (one.before, one.after))
    return f"{one.file}:{one.line}: {before} -> {after}"


def main() -> None:
    """Draw mutants, run their tests, and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="number of mutants")
    arguments = parser.parse_args()
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder), commit)
        known = coverage_map(copy, commit)
        results = judge_all(copy, known, draw(copy.sources, arguments.seed, arguments.count))
    report(commit, arguments.seed, results)


if __name__ == "__main__":
    main()
