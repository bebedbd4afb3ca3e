"""`nmtkit train --devices 2` starts and restarts the ranks.

Slower tests are in tests/system.
"""

import errno
import getpass
import os
import re
import signal
from pathlib import Path

import pytest
import torch

from tests.launching import (
    WHOLE,
    children,
    end,
    parameters,
    rank_processes,
    start,
    wait_for,
    wait_for_checkpoint,
    wait_for_restart,
)
from tests.messages import check_errors

pytestmark = pytest.mark.usefixtures("no_training_left")


@pytest.mark.thorough
def test_a_lost_rank_is_reported_and_all_restart_from_the_last_checkpoint(
    data: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = start(data, run, *WHOLE)
    wait_for_checkpoint(run, 20)
    os.kill(rank_processes(process.pid)[1], signal.SIGKILL)
    code, talk = end(process)
    assert code == 0, talk
    assert "rank 1 was killed by SIGKILL; starting all ranks again" in talk
    assert re.search(r"continuing after update [0-9]+", talk)
    assert torch.equal(parameters(run), parameters(whole))
    left = {path.name for path in temporary.iterdir()}
    assert left <= {f"torchinductor_{getpass.getuser()}"}, left  # a cache of torch


@pytest.mark.thorough
def test_a_signal_while_ranks_are_started_again_stops_them_in_order(
    data: Path, tmp_path: Path
) -> None:
    process = start(data, tmp_path, "--max-updates", "1000000", "--devices", "2")
    wait_for_checkpoint(tmp_path, 5)
    os.kill(rank_processes(process.pid)[1], signal.SIGKILL)
    wait_for_restart(process)
    wait_for(lambda: any(children(process.pid)))
    process.send_signal(signal.SIGTERM)
    code, talk = end(process)
    assert code == 75, talk
    (error,) = [line for line in talk.splitlines() if "error:" in line]
    check_errors(error, 75, "SIGTERM update; command")


def test_an_error_of_the_ranks_is_reported_once_with_its_exit_code(
    data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "$local_rank$$${local_rank}"
    run.mkdir()
    (run / "other").write_bytes(b"not a run")
    code, talk = end(start(data, run, "--max-updates", "5", "--devices", "2"))
    assert code == 2
    (error,) = [line for line in talk.splitlines() if "error:" in line]
    check_errors(error, 2, f"{run} 'other'; --out")


FULL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))"


@pytest.mark.thorough
def test_all_ranks_end_where_the_first_cannot_save(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    code, talk = end(start(data, run, *WHOLE, "--save-minutes", "0", code=FULL_DISK))
    assert code == 5
    (error,) = [line for line in talk.splitlines() if "error:" in line]
    check_errors(error, 5, f"{run}/checkpoints/00000020.state {os.strerror(errno.EFBIG)}")
    assert not list((run / "checkpoints").iterdir())


@pytest.mark.thorough
def test_all_ranks_end_where_the_folder_of_the_run_was_renamed(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(data, run, "--max-updates", "1000000", "--devices", "2")
    wait_for_checkpoint(run, 5)
    run.rename(tmp_path / "renamed")
    code, talk = end(process)
    assert code == 5
    (error,) = [line for line in talk.splitlines() if "error:" in line]
    check_errors(error, 5, f"{run} .lock; path command")
    assert not run.exists()


@pytest.mark.thorough
def test_all_ranks_and_restarts_have_the_recipe_that_came_from_a_pipe(
    data: Path, tmp_path: Path
) -> None:
    run, pipe = tmp_path / "run", tmp_path / "pipe"
    os.mkfifo(pipe)
    settings = ("--max-updates", "5", "--devices", "2", "--config", str(pipe))
    process = start(data, run, *settings)
    pipe.write_text("[seed]\nseed = 17\n", "utf-8")  # waits for the one reader
    code, talk = end(process)
    assert code == 0, talk
    assert "ranks=2" in talk
    assert "seed = 17" in (run / "config.toml").read_text("utf-8")
