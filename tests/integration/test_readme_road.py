"""The commands of README's roads, from a published model and from text, on a tiny corpus."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conversions import random_model, shared_codec, write_marian, write_random_model
from tests.tiny import tiny_corpus

README = Path("README.md").read_text("utf-8")
ROAD = README[README.index("## From a published model") : README.index("## Documentation")]
SMALLER = {
    "preprocess": "--vocab-size 285 --workers 1",
    "train": "--max-updates 5 --save-every 1 --validate-every 5 --warmup-updates 5 "
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--max-length-ratio 0 --max-length-offset 3 --device cpu --threads 1",
    "translate": "--max-length-ratio 0 --max-length-offset 3",
}
"""Options that make a printed command quick; of repeated options the last counts."""

SMALLER_FROM_A_MODEL = {
    "preprocess": "--workers 1",
    "train": "--max-epochs 1 --max-length-ratio 0 --max-length-offset 3 --device cpu --threads 1",
}
"""The same for commands whose model or vocabulary is given."""

LIBRARIES = {"ctranslate2": "ctranslate2", "marian": "transformers"}


def printed_commands() -> Iterator[str]:
    """Yield the commands of the road's blocks in order."""
    for block in re.findall(r"^```sh\n(.*?)^```", ROAD, re.M | re.S):
        yield from block.replace("\\\n", " ").strip().split("\n")


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    name = line.split()[1]
    settings = SMALLER_FROM_A_MODEL if re.search("--(from|vocabulary-of) ", line) else SMALLER
    smaller = re.sub(r"(?=( [<>] .*)?$)", f" {settings.get(name, '')}", line, count=1)
    shell = f'nmtkit() {{ "{sys.executable}" -m nmtkit_cli "$@"; }}; {smaller}'
    return subprocess.run(
        ["bash", "-c", shell],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd()), "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the road begins with, and those of its side roads."""
    root = tmp_path_factory.mktemp("road")
    (root / "corpus").mkdir()
    tiny_corpus(root / "corpus")
    for language in ("en", "de"):
        for name in ("test", "mine", "mine-dev"):
            shutil.copy(root / f"corpus/valid.{language}", root / f"{name}.{language}")
    for name in ("baseline.de", "new.de"):
        shutil.copy(root / "test.de", root / name)
    write_marian(random_model(shared_codec(), {}), root / "opus-mt-en-de")
    return root


@pytest.mark.thorough
def test_the_road_as_printed_works_in_order(folder: Path) -> None:
    names = []
    for line in printed_commands():
        done = run(line, folder)
        names.append(line.split()[1])
        format = next((name for name in LIBRARIES if f" {name} " in line), "")
        if format and importlib.util.find_spec(LIBRARIES[format]) is None:
            # Refused for the library alone: the model was checked before.
            assert f"{LIBRARIES[format]} is not installed" in done.stderr, done.stderr
            if names[-1] == "import":
                write_random_model(folder / "parent", shared_codec(), {})
        else:
            assert done.returncode == 0, f"{line}: {done.stderr}"
    assert names == [
        *("import", "translate", "preprocess", "train", "translate", "export"),
        *("preprocess", "train", "translate", "score", "score", "train", "export"),
    ]
