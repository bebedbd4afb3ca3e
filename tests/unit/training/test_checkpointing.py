"""When a run saves, how it handles failed saves, and with which settings it resumes."""

import io
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import Field, TrainRecipe, Value, fields_of, recipe_of, values_of
from nmtkit.config.training import CheckpointConfig
from nmtkit.config.validate import check_values
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError, ResourceError
from nmtkit.storage.checkpoint import Resumable, Snapshot, list_checkpoints, write_checkpoint
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training import checkpointing
from nmtkit.training.checkpointing import Saver, check_same_run
from nmtkit.training.selection import last_checkpoints
from nmtkit.training.state import Progress, TrainState
from tests.doubles import Clock
from tests.messages import refuses
from tests.snapshots import read_tensors
from tests.tiny import tiny_codec, tiny_model
from tests.training import STAMP, run_context

FIELDS = fields_of(TrainRecipe)
OLD = TrainRecipe()
# What is learnt depends on these; the rest is how long, how it is watched, and on what machine.
FIXED_SECTIONS = {"model", "seed"}
FREE_SECTIONS = {"checkpoints", "search", "logging", "runtime", "engine", "ranks"}
FREE_IN_TRAINING = {"max_updates", "max_epochs", "max_minutes"}
FIXED_IN_VALIDATION = {"best_metric"}

NEVER = 10**6
"""More updates than any run here has."""


class SavedRun:
    """A run that counts updates without changing its model."""

    def __init__(self, folder: Path, dataset: Dataset, clock: Clock) -> None:
        self.folder, self.dataset, self.clock = folder, dataset, clock
        self.stream = io.StringIO()
        model = tiny_model(tiny_codec())
        optimizer = torch.optim.Adam(model.parameters())
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        self.state = TrainState(model, optimizer, None, Progress(seconds=clock.now))

    def saver(self, config: CheckpointConfig) -> Saver:
        recipe = replace(TrainRecipe(model=self.state.model.config), checkpoints=config)
        context = run_context(recipe, self.dataset, self.folder, self.clock, self.stream)
        return Saver(context, self.state)

    @property
    def reported(self) -> str:
        """The reported lines, without their time."""
        return self.stream.getvalue().replace(STAMP, "")

    def at(self, update: int) -> None:
        self.state.progress = Progress(update=update, seconds=self.clock.now)


@pytest.fixture
def run(tmp_path: Path, dataset: Dataset, clock: Clock) -> SavedRun:
    return SavedRun(tmp_path, dataset, clock)


def saved(folder: Path) -> list[tuple[int, bool]]:
    """Return the update of each checkpoint, and whether it is scheduled."""
    return [(one.update, one.is_scheduled) for one in list_checkpoints(RunFolder(folder))]


def save_if_due(run: SavedRun, saver: Saver, update: int) -> None:
    """Save if due, and wait for the end of the save."""
    run.at(update)
    saver.save_if_due()
    saver.finish()


def fail_at(monkeypatch: pytest.MonkeyPatch, *updates: int) -> None:
    """Make the saves of some updates fail."""

    def write_or_fail(run: RunFolder, snapshot: Snapshot) -> None:
        if snapshot.update in updates:
            raise ResourceError("no room")
        write_checkpoint(run, snapshot)

    monkeypatch.setattr(checkpointing, "write_checkpoint", write_or_fail)


def test_a_save_by_time_is_made_when_none_was_for_long_and_averaging_does_not_count_it(
    run: SavedRun, tmp_path: Path, clock: Clock
) -> None:
    saver = run.saver(CheckpointConfig(save_every=4, save_minutes=2))
    for update in range(1, 9):
        clock.now += 50
        save_if_due(run, saver, update)
        if update == 3:
            assert saved(tmp_path) == [(3, False)]  # 150 s after the start
    # Of those made by time, only one that is among the two newest stays.
    assert saved(tmp_path) == [(4, True), (7, False), (8, True)]
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == ["00000004", "00000008"]
    with refuses(ConfigError, f"{tmp_path} 2 3; --last --save-every --keep"):
        last_checkpoints(tmp_path, 3)


@pytest.mark.parametrize(
    ("every", "minutes", "failing", "steps", "expected"),
    [
        pytest.param(
            *(4, 2, ()),
            ((4, 119), (5, 119), (6, 1)),
            [(4, True), (6, False)],
            id="a save on schedule starts the time again",
        ),
        pytest.param(
            *(2, 0, ()),
            ((1, 1e9), (2, 1e9), (3, 1e9)),
            [(2, True)],
            id="no time where the minutes are 0",
        ),
        pytest.param(
            *(NEVER, 1, (1,)),
            ((1, 60), (2, 59), (3, 1)),
            [(3, False)],
            id="a failed save by time waits for the next interval",
        ),
        pytest.param(
            *(1, 1, {*range(1, 120)} - {60}),
            [(update, 1) for update in range(1, 121)],
            [(60, True), (120, True)],
            id="saves that fail within the minutes do not end training, a good one resets them",
        ),
    ],
)
def test_saves_are_made_on_schedule_and_when_none_was_for_long(
    every: int,
    minutes: float,
    failing: Collection[int],
    steps: Sequence[tuple[int, float]],
    expected: list[tuple[int, bool]],
    run: SavedRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saver = run.saver(CheckpointConfig(save_every=every, save_minutes=minutes))
    fail_at(monkeypatch, *failing)
    for update, seconds in steps:
        run.clock.now += seconds
        save_if_due(run, saver, update)
    assert saved(run.folder) == expected
    assert run.reported == "".join(
        f"update={update} not saved, training continues: no room\n" for update in sorted(failing)
    )


@pytest.mark.parametrize(
    ("minutes", "steps"),
    [
        # The last one is a minute after the beginning of the first failed save.
        (1, ((1, 50), (2, 1), (3, 1), (4, 58), (6, 1))),
        (0, ((2, 0),)),
    ],
)
def test_saves_that_fail_for_save_minutes_are_an_error(
    minutes: float,
    steps: Sequence[tuple[int, float]],
    run: SavedRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saver = run.saver(CheckpointConfig(save_every=2, save_minutes=minutes))
    fail_at(monkeypatch, 2, 4, 6)
    *before, (last, wait) = steps
    for update, seconds in before:
        run.clock.now += seconds
        save_if_due(run, saver, update)
    run.clock.now += wait
    with pytest.raises(ResourceError, match="no room"):
        save_if_due(run, saver, last)


def test_the_start_and_the_end_of_a_run_are_saved_without_a_schedule(
    run: SavedRun, tmp_path: Path
) -> None:
    saver = run.saver(CheckpointConfig(save_every=1))
    saver.save_now()
    assert saved(tmp_path) == [(0, False)]
    saver = run.saver(CheckpointConfig(save_every=NEVER))
    run.at(3)
    saver.save_now()
    assert saved(tmp_path) == [(0, False), (3, False)]


def test_the_best_checkpoint_is_kept_with_the_last_two(run: SavedRun, tmp_path: Path) -> None:
    saver = run.saver(CheckpointConfig(save_every=1, keep=1))
    for update in range(1, 6):
        save_if_due(run, saver, update)
        if update == 2:
            saver.keep_best([2])
    best = RunFolder(tmp_path).best()
    assert best is not None
    assert best.name == "00000002"
    assert saved(tmp_path) == [(2, True), (4, True), (5, True)]


def test_a_failure_to_set_best_is_reported_and_training_continues(
    run: SavedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = run.saver(CheckpointConfig(save_every=1))

    def refuse(_self: RunFolder, _best_first: Sequence[int]) -> None:
        raise ResourceError("no room")

    monkeypatch.setattr(RunFolder, "point_best", refuse)
    saver.keep_best([2])
    assert run.reported == "`best` still points to the previous checkpoint: no room\n"


def test_old_checkpoints_that_cannot_be_deleted_are_reported_and_training_continues(
    run: SavedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = run.saver(CheckpointConfig(save_every=1))

    def refuse(_run: RunFolder, _keep: int, _best: object, _warn: object) -> None:
        raise ResourceError("no permission")

    monkeypatch.setattr(checkpointing, "prune", refuse)
    for update in (1, 2):
        save_if_due(run, saver, update)
    assert saved(tmp_path) == [(1, True), (2, True)]
    assert run.reported == "old checkpoints not deleted: no permission\n" * 2


@pytest.mark.parametrize("save_minutes", [CheckpointConfig().save_minutes, 0])
def test_a_save_of_the_end_makes_up_for_one_that_has_failed(
    save_minutes: float, run: SavedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = run.saver(CheckpointConfig(save_every=1, save_minutes=save_minutes))
    fail_at(monkeypatch, 1)
    run.at(1)
    saver.save_if_due()
    run.at(2)
    saver.save_now()
    assert saved(tmp_path) == [(2, True)]


def test_a_single_failed_save_at_the_end_is_an_error(
    run: SavedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = run.saver(CheckpointConfig(save_every=NEVER))
    fail_at(monkeypatch, 3)
    run.at(3)
    with pytest.raises(ResourceError, match="no room"):
        saver.save_now()


RUN = Path("exp/run")


def resumable(fingerprint: str) -> Resumable:
    """Return a checkpoint of a run with the settings of `OLD`."""
    return Resumable(
        path=RUN / "checkpoints" / "00000007",
        fingerprint="",
        update=7,
        model={},
        recipe=OLD,
        provenance={"dataset": fingerprint},
        state_tensors={},
        state_values={},
    )


def with_values(**values: Value) -> TrainRecipe:
    return recipe_of(TrainRecipe, {**values_of(OLD), **values})


TEXTS = {
    "validate_metrics": "bleu,chrf",
    "best_metric": "bleu",
    "noise": "upper=0.1",
    "annotate": "tags=0.1",
}


def another_value(field: Field) -> Value:
    """Return a permitted value that is not the default."""
    if field.kind is bool:
        return not field.default
    if field.choices:
        return next(one for one in field.choices if one != field.default)
    if field.kind is tuple:
        return ("encoder",)
    if field.kind is str:
        return TEXTS[field.name]
    assert isinstance(field.default, int | float), f"{field.name} is of a new kind"
    least = max(field.default, field.minimum)
    return least + (1 if field.kind is int else 0.001)


def is_expected_to_be_fixed(field: Field) -> bool:
    if field.section == "training":
        return field.name not in FREE_IN_TRAINING
    if field.section == "validation":
        return field.name in FIXED_IN_VALIDATION
    assert field.section in FIXED_SECTIONS | FREE_SECTIONS, f"{field.section} is new"
    return field.section in FIXED_SECTIONS


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_a_setting_of_what_is_learnt_is_refused_by_name_if_it_changes_and_no_other_is(
    field: Field, dataset: Dataset
) -> None:
    assert field.may_change_on_resume != is_expected_to_be_fixed(field)
    new = another_value(field)
    values, problems = check_values(TrainRecipe, {field.name: new})
    assert not problems
    recipe, old = with_values(**values), resumable(dataset.fingerprint)
    assert recipe != OLD
    if field.may_change_on_resume:
        check_same_run(RUN, old, recipe, dataset)
        return
    keys = f"exp/run {field.name} {field.default!r} {new!r}; --out"
    with refuses(ConfigError, keys, recorded=False):
        check_same_run(RUN, old, recipe, dataset)


def test_one_error_names_all_settings_that_changed(dataset: Dataset) -> None:
    recipe = with_values(heads=4, max_updates=7, seed=2)
    with refuses(ConfigError, "exp/run heads 8 4 seed 1 2; --out"):
        check_same_run(RUN, resumable(dataset.fingerprint), recipe, dataset)


def test_the_same_settings_with_another_dataset_are_refused(dataset: Dataset) -> None:
    check_same_run(RUN, resumable(dataset.fingerprint), OLD, dataset)
    with refuses(DamagedError, "exp/run; --out"):
        check_same_run(RUN, resumable("0123"), OLD, dataset)


def test_a_checkpoint_has_the_weights_of_its_update(run: SavedRun, tmp_path: Path) -> None:
    saver = run.saver(CheckpointConfig(save_every=1))
    (first, *_) = run.state.model.parameters()
    for update in (1, 2):
        first.data.fill_(update)
        run.at(update)
        saver.save_if_due()
        first.data.fill_(-1)
    saver.finish()
    for update in (1, 2):
        tensors = read_tensors(tmp_path / "checkpoints" / f"{update:08d}")
        name = next(name for name, _ in run.state.model.named_parameters())
        assert torch.equal(tensors[name], torch.full_like(first, update))
