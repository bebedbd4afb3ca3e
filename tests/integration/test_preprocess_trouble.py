"""`nmtkit preprocess` when it or one of its worker processes is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import as_text, nmtkit
from tests.messages import check_errors, refused
from tests.tiny import TRAIN_LINES, tiny_corpus

TIMEOUT_S = 60
ARGUMENTS = ("-s", "en", "-t", "de", "--segmentation", "words", "--workers", "2", "--out", "data")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny_corpus(tmp_path, TRAIN_LINES * 1000)  # several chunks, so that there are two workers
    return tmp_path


def preprocess(folder: Path) -> "subprocess.Popen[str]":
    corpus = ("--train", "train", "--valid", "valid")
    return subprocess.Popen(
        [sys.executable, "-m", "nmtkit_cli", "preprocess", *corpus, *ARGUMENTS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=ENVIRONMENT,
    )


def workers_of(process: int) -> list[int]:
    """Return the worker processes of a process that have started their programs."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


@contextmanager
def halfway(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Yield a command that waits for a stopped worker, and that worker."""
    with preprocess(folder) as process:
        while not (workers := workers_of(process.pid)):
            assert process.poll() is None, "it ended before a worker was seen"
            time.sleep(0.001)
        os.kill(workers[0], signal.SIGSTOP)
        try:
            yield process, workers[0]
        finally:
            process.kill()
            try:
                os.kill(workers[0], signal.SIGKILL)
            except ProcessLookupError:
                return


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Return the exit code and the last line on stderr."""
    _, errors = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, errors.splitlines()[-1]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_killed_worker_ends_it_with_exit_code_5_and_leaves_nothing(folder: Path) -> None:
    before = files_in(folder)
    with halfway(folder) as (process, worker):
        os.kill(worker, signal.SIGKILL)
        code, message = finish(process)
    assert code == 5
    check_errors(message, 5, "worker process -9; --workers")
    assert files_in(folder) == before


def test_a_second_command_for_the_same_folder_is_refused_and_the_first_continues(
    folder: Path,
) -> None:
    with halfway(folder) as (first, worker):
        code, message = finish(preprocess(folder))
        assert code == 2
        check_errors(message, 2, f"data process {first.pid}")
        os.kill(worker, signal.SIGCONT)
        assert finish(first)[0] == 0
    assert (folder / "data" / "manifest.json").exists()


def test_after_a_kill_the_same_command_makes_the_same_dataset(folder: Path) -> None:
    assert finish(preprocess(folder))[0] == 0
    (folder / "data").rename(folder / "undisturbed")
    with halfway(folder) as (process, _):
        process.kill()
        process.wait()
    assert not (folder / "data").exists()
    assert finish(preprocess(folder))[0] == 0
    compared = subprocess.run(["diff", "-r", folder / "undisturbed", folder / "data"], check=False)
    assert compared.returncode == 0
    assert sorted(path.name for path in folder.glob(".*")) == []


@pytest.mark.parametrize("option", ["--whole-tokens", "--source-vocabulary"])
def test_a_missing_file_is_named_before_any_text_is_read(option: str, tmp_path: Path) -> None:
    line = f"preprocess -s en -t de --train no --valid no --out data {option} missing"
    separate = ["--separate-vocabularies"] * (option == "--source-vocabulary")
    done = as_text(nmtkit(*line.split(), *separate, folder=tmp_path))
    refused(done, 2, f"missing; {'text' if option == '--whole-tokens' else 'SentencePiece'}")
