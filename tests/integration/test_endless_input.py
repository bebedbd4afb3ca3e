"""Input without an end: every reader stops at its limit, whatever the rest of the command is."""

import os
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmtkit.text import lines
from tests.commands import nmtkit
from tests.faults.harness import fork
from tests.messages import refused
from tests.tiny import write_lines, write_tiny_model

LINE, OBJECT, WHOLE = 2**20, 2**25, 2**22
"""Limits of a line, of a line of JSON, and of a whole file, which is lower here than in use."""

SLACK = 2**18
"""Bytes that buffers and the pipe hold."""

SCORE = "score --reference text text"
PREPROCESS = "preprocess -s en -t de --train text --valid text --out data --workers 1"
VOCABULARIES = "--source-vocabulary endless --target-vocabulary endless"

READERS: dict[str, tuple[str, int]] = {
    "translate": ("translate model", LINE),
    "stream": ("translate model --stream", LINE),
    "translate json": ("translate model --input-format json", OBJECT),
    "score": ("score --reference text", LINE),
    "score json": ("score --reference text --input-format json", OBJECT),
    "score trees": ("score --metric brackets --reference text", LINE),
    "system": ("score --reference text endless", LINE),
    "reference": ("score --reference endless text", LINE),
    "prm": (f"{SCORE} --metric brackets --prm endless", LINE),
    "frequency": (f"{SCORE} --by-frequency endless", LINE),
    "source": ("score --model model --source endless text", LINE),
    "rerank": ("rerank --features length", OBJECT),
    "candidates": ("rerank --features length endless", OBJECT),
    "tune": ("rerank --features length --tune endless objects", LINE),
    "attention": ("attention model", LINE),
    "trees": ("trees clean", LINE),
    "malformed": ("trees clean --skip-malformed", LINE),
    "restore": ("trees restore --words endless", LINE),
    "words": (f"{PREPROCESS} --segmentation words {VOCABULARIES}", LINE),
    "subwords": (f"{PREPROCESS} {VOCABULARIES}", WHOLE),
    "whole tokens": (f"{PREPROCESS} --whole-tokens endless", LINE),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("endless")
    write_tiny_model(root / "model")
    for name in ("text", "text.en", "text.de"):
        write_lines(root / name, ["(S (NN a))"] * 3)
    write_lines(root / "objects", ['{"source": "a", "translation": "b"}'])
    return root


def zeros(is_compressed: bool) -> Iterator[bytes]:
    """Yield zeros for ever, or such a gzip file."""
    compressor = zlib.compressobj(wbits=31)
    while True:
        block = bytes(2**16)
        yield compressor.compress(block) if is_compressed else block


def run_on_zeros(
    line: str, folder: Path, most: int, is_compressed: bool = False
) -> tuple["subprocess.CompletedProcess[bytes]", int]:
    """Run a command on the pipe `endless`, or on it as standard input.

    Returns:
        how the command ended, and how many bytes were written, at most `most` and a block: then
        the pipe ends.
    """
    pipe, count = folder / "endless", folder / "count"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    writer = fork()
    if writer == 0:
        written = 0
        descriptor = os.open(pipe, os.O_WRONLY)
        try:
            for block in zeros(is_compressed):
                written += os.write(descriptor, block)
                if written > most:
                    break
        except BrokenPipeError:
            pass
        count.write_text(str(written), "ascii")
        os._exit(0)
    if "endless" in line:
        done = nmtkit(*line.split(), folder=folder)
    else:
        stdin = os.open(pipe, os.O_RDONLY)
        done = nmtkit(*line.split(), stdin=stdin, folder=folder)
        os.close(stdin)
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))  # ends a writer that nobody read
    os.waitpid(writer, 0)
    return done, int(count.read_text("ascii"))


def keys_of(line: str, limit: int) -> str:
    name = "endless" if "endless" in line else "standard input"
    place, advice = (name, "file") if limit == WHOLE else (f"{name}:1", "break blank")
    return f"{place} {limit // 2**20}MiB; {advice}"


@pytest.mark.parametrize("name", READERS)
def test_a_reader_stops_at_its_limit(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_FILE_BYTES", WHOLE)
    line, limit = READERS[name]
    done, num_read = run_on_zeros(line, folder, 2 * limit)
    refused(done, 3, keys_of(line, limit))
    assert limit < num_read < limit + SLACK


@pytest.mark.parametrize("name", ["reference", "words"])
def test_a_compressed_file_stops_at_the_limit_of_its_text(name: str, folder: Path) -> None:
    line, limit = READERS[name]
    done, _ = run_on_zeros(line, folder, 2**22, is_compressed=True)
    refused(done, 3, keys_of(line, limit))


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("score --config endless --reference text text", "endless 262,144; recipe --print-config"),
        ("rerank --features model,length --weights endless objects", "endless JSON; --tune"),
    ],
)
def test_a_recipe_and_weights_stop_at_their_limit(line: str, keys: str, folder: Path) -> None:
    done, num_read = run_on_zeros(line, folder, 2**20)
    refused(done, 2, keys)
    assert num_read < 2**18 + SLACK
