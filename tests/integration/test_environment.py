"""Commands that start processes, in a working directory with modules of a stranger.

libgomp prints its settings when a process loads it.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nmtkit.runtime.environment import SPIN_COUNT
from tests.launching import SETTINGS
from tests.tiny import TRAIN_LINES, tiny_dataset, write_tiny_model

ROOT = Path(__file__).parents[2]
STRANGE_MODULES = ("nmtkit_cli", "nmtkit", "multiprocessing", "runpy", "ctypes", "torch")
CORPUS = "--train train --valid valid -s en -t de --segmentation words"
TRAIN = f"train data --out run --max-updates 1 {SETTINGS}"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with text, a dataset, a model, the console script, and strange modules."""
    tiny_dataset(tmp_path)
    write_tiny_model(tmp_path / "model")
    (tmp_path / "bin").mkdir()
    script = "from nmtkit_cli.main import main\nif __name__ == '__main__':\n    main()\n"
    (tmp_path / "bin/nmtkit").write_text(script, encoding="ascii")
    for name in STRANGE_MODULES:
        (tmp_path / name).mkdir()
        mark = f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} '); raise SystemExit(9)"
        (tmp_path / name / "__init__.py").write_text(mark, encoding="utf-8")
    return tmp_path


def nmtkit(files: Path, line: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the console script in the folder of the files, without variables of the user."""
    ours = {"GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY", "PYTHONSAFEPATH"}
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, files / "bin/nmtkit", *shlex.split(line)],
        cwd=files,
        env={**inherited, "PYTHONPATH": str(ROOT), **variables},
        input="".join(f"{line}\n" for line in TRAIN_LINES),
        capture_output=True,
        encoding="utf-8",
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def spin_counts(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return the setting of each libgomp that a process has loaded."""
    return re.findall(r"GOMP_SPINCOUNT = '(.*)'", done.stderr)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("line", "num_processes"),
    [
        (f"{TRAIN} --devices 2 --read-workers 1", 3),
        (f"preprocess {CORPUS} --out made --workers 2", 2),
        ("translate model --device cpu --devices 2", 3),
        ("score --model model --source train.en --device cpu", 1),
    ],
    ids=lambda value: str(value).split()[0],
)
def test_processes_import_no_strangers_and_wait_without_spinning(
    line: str, num_processes: int, files: Path
) -> None:
    done = nmtkit(files, line, OMP_DISPLAY_ENV="verbose")
    assert not (files / "imported").exists(), (files / "imported").read_text()
    counts = spin_counts(done)
    assert len(counts) >= num_processes  # torch and SentencePiece have a libgomp each
    assert set(counts) == {str(SPIN_COUNT)}


def test_a_model_in_python_waits_without_spinning() -> None:
    code = "import os, nmtkit\ntry: nmtkit.load('missing')\nexcept nmtkit.DamagedError: pass"
    code += "\nassert 'GOMP_SPINCOUNT' not in os.environ"
    variables = {"PYTHONPATH": str(ROOT), "OMP_DISPLAY_ENV": "verbose"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert str(SPIN_COUNT) in spin_counts(done)


def test_a_program_as_a_metric_imports_its_neighbours(files: Path) -> None:
    (files / "metric").mkdir()
    (files / "metric/neighbour.py").write_text("SCORE = 2.5", encoding="ascii")
    program = "import sys, neighbour\nfor _ in sys.stdin: print(neighbour.SCORE)"
    (files / "metric/program.py").write_text(program, encoding="ascii")
    command = shlex.quote(f"own={shlex.quote(sys.executable)} metric/program.py")
    done = nmtkit(files, f"score train.de --reference train.de --metric-command {command}")
    assert "2.5" in done.stdout
