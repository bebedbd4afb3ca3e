"""When a run saves: by updates, by time, at its end; and what follows when it cannot."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nmtkit.checkpoint import RunFolder, Snapshot
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import CheckpointConfig
from nmtkit.errors import ConfigError, ResourceError
from nmtkit.progress import PlainReporter
from nmtkit.training.learner import Learner
from nmtkit.training.saving import Saver, Trained
from nmtkit.training.selection import last_checkpoints
from nmtkit.training.state import RunState
from tests.clock import Clock
from tests.tiny import tiny_codec, tiny_model

NEVER = 10**6
"""More updates than any run here has."""


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("nmtkit.training.saving.time", SimpleNamespace(monotonic=made))
    return made


@pytest.fixture(scope="module")
def trained() -> Trained:
    """Return a model with an optimiser that has made one step."""
    model = tiny_model(tiny_codec())
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    learner = Learner(model, optimizer, None)
    return Trained(learner, TrainRecipe(model=model.config), tiny_codec(), {"dataset": ""})


def saver_in(run: Path, trained: Trained, config: CheckpointConfig) -> tuple[Saver, io.StringIO]:
    """Return a saver, and the stream that it reports to."""
    stream = io.StringIO()
    trained = replace(trained, recipe=replace(trained.recipe, checkpoints=config))
    return Saver(RunFolder.create_or_open(run), trained, PlainReporter(stream), writes=True), stream


def saved(run: Path) -> list[tuple[int, bool]]:
    """Return the update of each checkpoint, and whether it is scheduled."""
    return [(one.update, one.is_scheduled) for one in RunFolder(run).checkpoints()]


def save_if_due(saver: Saver, update: int) -> None:
    """Save if it is due, and wait until that is done."""
    saver.save_if_due(RunState(update=update))
    saver.finish()


def fail_at(monkeypatch: pytest.MonkeyPatch, *updates: int) -> None:
    """Have the checkpoints of some updates not find room."""
    save = RunFolder.save

    def save_or_fail(self: RunFolder, snapshot: Snapshot) -> None:
        if snapshot.update in updates:
            raise ResourceError("no room")
        save(self, snapshot)

    monkeypatch.setattr(RunFolder, "save", save_or_fail)


def test_a_save_by_time_is_made_when_none_was_for_long_and_averaging_does_not_count_it(
    trained: Trained, tmp_path: Path, clock: Clock
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=4, save_minutes=2))
    for update in range(1, 9):
        clock.now += 50
        save_if_due(saver, update)
        if update == 3:
            assert saved(tmp_path) == [(3, False)]  # 150 s after the start
    # Of those made by time, only one that is among the two newest stays.
    assert saved(tmp_path) == [(4, True), (7, False), (8, True)]
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == ["00000004", "00000008"]
    with pytest.raises(ConfigError, match="has 2 checkpoints made by --save-every, fewer than"):
        last_checkpoints(tmp_path, 3)


def test_a_save_on_schedule_starts_the_time_again(
    trained: Trained, tmp_path: Path, clock: Clock
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=4, save_minutes=2))
    for update, seconds in ((4, 119), (5, 119), (6, 1)):
        clock.now += seconds
        save_if_due(saver, update)
    assert saved(tmp_path) == [(4, True), (6, False)]


def test_no_save_is_made_by_time_where_the_minutes_are_0(
    trained: Trained, tmp_path: Path, clock: Clock
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=2, save_minutes=0))
    for update in range(1, 4):
        clock.now += 1e9
        save_if_due(saver, update)
    assert saved(tmp_path) == [(2, True)]


def test_the_end_of_a_run_is_saved_without_a_schedule_unless_nothing_was_done(
    trained: Trained, tmp_path: Path
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=NEVER))
    saver.save_now(RunState())
    assert saved(tmp_path) == []
    saver.save_now(RunState(update=3))
    assert saved(tmp_path) == [(3, False)]


def test_the_best_checkpoint_stays_beside_the_two_to_go_on_from(
    trained: Trained, tmp_path: Path
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=1, keep=1))
    for update in range(1, 6):
        save_if_due(saver, update)
        if update == 2:
            saver.point_best([2])
    best = RunFolder(tmp_path).best()
    assert best is not None
    assert best.name == "00000002"
    assert saved(tmp_path) == [(2, True), (4, True), (5, True)]


def test_a_best_that_cannot_be_named_is_told_and_training_goes_on(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, stream = saver_in(tmp_path, trained, CheckpointConfig(save_every=1))

    def refuse(_self: RunFolder, _best_first: Sequence[int]) -> None:
        raise ResourceError("no room")

    monkeypatch.setattr(RunFolder, "point_best", refuse)
    saver.point_best([2])
    assert stream.getvalue() == "`best` still names the one before: no room\n"


def test_what_cannot_be_tidied_up_is_told_and_training_goes_on(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, stream = saver_in(tmp_path, trained, CheckpointConfig(save_every=1))

    def refuse(_self: RunFolder, _keep: int, _best: object, _warn: object) -> None:
        raise ResourceError("no permission")

    monkeypatch.setattr(RunFolder, "prune", refuse)
    for update in (1, 2):
        save_if_due(saver, update)
    assert saved(tmp_path) == [(1, True), (2, True)]
    assert stream.getvalue() == "not tidied up: no permission\n" * 2


def test_a_failed_save_is_told_and_forgotten_with_the_next_good_one(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, stream = saver_in(tmp_path, trained, CheckpointConfig(save_every=1))
    fail_at(monkeypatch, 1, 3, 5)
    for update in range(1, 6):
        save_if_due(saver, update)
    assert saved(tmp_path) == [(2, True), (4, True)]
    assert stream.getvalue() == "".join(
        f"update={update} not saved, training goes on: no room\n" for update in (1, 3, 5)
    )


def test_two_failed_saves_in_a_row_are_an_error(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=2))
    fail_at(monkeypatch, 2, 4)
    for update in range(1, 4):
        save_if_due(saver, update)
    with pytest.raises(ResourceError, match="no room"):
        save_if_due(saver, 4)


def test_a_failed_save_by_time_is_not_tried_again_at_once(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=NEVER, save_minutes=1))
    fail_at(monkeypatch, 1)
    for update, seconds in ((1, 60), (2, 59), (3, 1)):
        clock.now += seconds
        save_if_due(saver, update)
    assert saved(tmp_path) == [(3, False)]


def test_a_failed_save_at_the_end_is_an_error_at_once(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, _ = saver_in(tmp_path, trained, CheckpointConfig(save_every=NEVER))
    fail_at(monkeypatch, 3)
    with pytest.raises(ResourceError, match="no room"):
        saver.save_now(RunState(update=3))
