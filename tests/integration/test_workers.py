"""Encoding in worker processes: tests that start some."""

import errno
import gzip
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.encode import Encoder, encode_in_order
from nmtkit.data.prepare import Sizes, prepare
from nmtkit.progress.counting import SILENT
from nmtkit.text.corpus import Chunk
from tests.folders import contents
from tests.processes import workers_as_forks
from tests.tiny import TRAIN_LINES, tiny_corpus, tiny_encoder, tiny_recipe, write_lines


@pytest.fixture(autouse=True, scope="module")
def _workers_are_forks() -> Iterator[None]:
    with workers_as_forks():
        yield


def encoder() -> Encoder:
    return tiny_encoder(FilterConfig(), num_shards=2)


def endless() -> Iterator[Chunk]:
    number = 0
    while True:
        yield Chunk(0, number, number + 1, [("a b", "A B")] * (number + 1))
        number += 1


def eventful_recipe(folder: Path) -> PreprocessRecipe:
    """Write text from which each filter drops a pair; return the recipe with all filters."""
    kept = [(line, line.upper()) for line in TRAIN_LINES]
    dropped = [
        ("", "A"),
        ("a b c d e f", "A B C D E F"),
        ("a", "A B C"),
        ("\u0436", "A"),
        ("1 2", "1 2"),
        ("f f", "D"),
        kept[0],
    ]
    train, valid = tiny_corpus(folder)
    for number, lang in enumerate(("en", "de")):
        write_lines(Path(f"{train}.{lang}"), [pair[number] for pair in (*kept, *dropped)])
        write_lines(folder / f"test.{lang}", ["f f"])
    filters = FilterConfig(
        max_length=6,
        max_ratio=2.0,
        source_script="latin",
        drop_copies=True,
        held_out=(str(folder / "test"),),
        drop_duplicates=True,
    )
    return replace(tiny_recipe(train, valid), filters=filters)


def compress(path: Path) -> None:
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("workers", [2, 3])
def test_the_dataset_does_not_depend_on_the_number_of_workers_or_on_compression(
    workers: int, tmp_path: Path
) -> None:
    recipe, sizes = eventful_recipe(tmp_path), Sizes(shard=4, chunk=2)
    alone, shared = tmp_path / "alone", tmp_path / "shared"

    def run(out: Path, workers: int) -> None:
        counts = prepare(recipe, out, workers, False, SILENT, sizes)
        assert all(counts["train"]["dropped"].values()), counts

    run(alone, 1)
    compress(tmp_path / "train.de")
    run(shared, workers)
    assert contents(shared) == contents(alone)


def test_chunks_come_back_in_order_and_few_are_taken_ahead() -> None:
    taken = []

    def chunks() -> Iterator[Chunk]:
        for chunk in endless():
            taken.append(chunk.first)
            yield chunk

    with closing(encode_in_order(encoder(), chunks(), workers=2)) as encoded:
        for number in range(20):
            assert next(encoded).counts.read == number + 1
            assert len(taken) <= number + 3


class UnreadableCodec:
    """A codec that raises an error of the system."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def encode_source(self, _line: str) -> list[int]:
        raise self.error


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error", "a file"), MemoryError("much")]
)
def test_an_error_of_a_worker_is_raised_and_ends_the_others(
    error: Exception,
) -> None:
    broken = replace(encoder(), codec=UnreadableCodec(error))  # type: ignore[arg-type]
    for workers in (1, 2):
        with pytest.raises(type(error)) as raised:
            list(encode_in_order(broken, endless(), workers))
        assert str(raised.value) == str(error)
    assert not multiprocessing.active_children()


def test_workers_end_when_the_consumer_does() -> None:
    with closing(encode_in_order(encoder(), endless(), workers=2)) as encoded:
        next(encoded)
        workers = multiprocessing.active_children()
        assert all(worker.is_alive() for worker in workers)
    assert not any(worker.is_alive() for worker in workers)


@pytest.mark.thorough
def test_a_signal_does_not_wait_for_subwords_to_be_learnt(tmp_path: Path) -> None:
    letters = random.Random(1)
    lines = [
        " ".join("".join(letters.choices("abcdefghij", k=9)) for _ in range(9))
        for _ in range(100_000)
    ]
    for name, text in (("train", lines), ("valid", lines[:9])):
        for lang in ("en", "de"):
            write_lines(tmp_path / f"{name}.{lang}", text)
    line = "preprocess -s en -t de --train train --valid valid --segmentation unigram --out data"
    process = subprocess.Popen(
        [sys.executable, "-m", "nmtkit_cli", *line.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert any(message.startswith("learning") for message in process.stderr)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143  # learning takes more than a minute
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
