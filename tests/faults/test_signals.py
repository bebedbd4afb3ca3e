"""A request to stop, whenever it comes, ends the session in order, and the next one goes on."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.errors import NmtkitError
from nmtkit.storage.checkpoint import Snapshot, write_checkpoint
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training import checkpointing, trainer, validation
from nmtkit.training.run import train
from tests.faults.moments import in_update, preceded, send
from tests.faults.results import Result, result_of
from tests.messages import refuses
from tests.tiny import tiny_train_recipe

RECIPE = tiny_train_recipe(max_updates=6, dropout=0.1)  # validates after updates 4 and 6
EXIT_CODES = {signal.SIGTERM: 75, signal.SIGUSR1: 75, signal.SIGINT: 130}

# Before which call of which function the signal comes: the first whose arguments fit.
MOMENTS: dict[str, tuple[object, str, Callable[..., object]]] = {
    "in the first update": (trainer, "micro_batch_seed", lambda *_: True),
    "between micro-batches": (
        trainer,
        "micro_batch_seed",
        lambda _seed, update, number, _: update > 1 and number,
    ),
    "in validation": (validation, "gather", lambda *_: True),
    "after the translations": (validation, "count_corpus", lambda *_: True),
    "while the first checkpoint is written": (checkpointing, "write_checkpoint", lambda *_: True),
    "while the last one is written": (
        checkpointing,
        "write_checkpoint",
        lambda _, last: last.update == 6,
    ),
}


@pytest.fixture(scope="module")
def expected(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    train(RECIPE, data, run)
    return result_of(run)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("number", EXIT_CODES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_at_any_moment_ends_the_session_and_the_next_resumes(
    moment: str,
    number: signal.Signals,
    data: Path,
    tmp_path: Path,
    expected: Result,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, name, fits = MOMENTS[moment]
    monkeypatch.setattr(place, name, preceded(getattr(place, name), send(number), fits))
    with refuses(NmtkitError, f"{number.name} update") as ended:
        train(RECIPE, data, tmp_path / "run")
    assert ended.value.exit_code == EXIT_CODES[number]
    train(RECIPE, data, tmp_path / "run")
    assert result_of(tmp_path / "run") == expected


def test_a_second_interrupt_ends_training_after_the_write_in_progress(
    data: Path, tmp_path: Path, expected: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of the run ends with the session, and nobody writes without it."""
    interrupt = send(signal.SIGINT)
    begun: list[int] = []
    ended: list[int] = []

    def write_slowly(run: RunFolder, snapshot: Snapshot) -> None:
        begun.append(snapshot.update)
        if begun == [1, 2, 2]:  # the last one is the save of what the first interrupt ended
            interrupt()
            time.sleep(0.1)
        write_checkpoint(run, snapshot)
        ended.append(snapshot.update)

    monkeypatch.setattr(checkpointing, "write_checkpoint", write_slowly)
    with in_update(3, interrupt), pytest.raises(KeyboardInterrupt):
        train(RECIPE, data, tmp_path / "run")
    assert begun == ended == [1, 2, 2]
    train(RECIPE, data, tmp_path / "run")
    assert result_of(tmp_path / "run") == expected
