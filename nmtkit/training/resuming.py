"""Going on with a run: its newest checkpoint, whether it is the same run, how updates are cut."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from nmtkit.checkpoint import Resumable, RunFolder
from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model_folder import restore_parameters
from nmtkit.records import MetricsLog, ValidationRecord
from nmtkit.training.learner import Learner
from nmtkit.training.slots import num_slots
from nmtkit.training.state import RunState


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    Attributes:
        state: after its newest whole checkpoint, or at the beginning.
        validations: its validations so far.
        tensors: of the learner's state, without their values.
    """

    state: RunState = field(default_factory=RunState)
    validations: Sequence[ValidationRecord] = ()
    tensors: dict[str, Tensor] = field(default_factory=dict)


def resume(
    folder: RunFolder,
    learner: Learner,
    recipe: TrainRecipe,
    dataset: Dataset,
    warn: Callable[[str], None],
) -> Progress:
    """Put the newest whole checkpoint, if there is one, into a learner.

    Raises:
        ConfigError: it was made with other settings.
        DamagedError: it was made of other data; or there are checkpoints, and none is whole.
    """
    log = MetricsLog(folder.metrics_path)
    folder.clear_leftovers(warn)
    resumable = folder.newest_resumable(warn)
    if resumable is None:
        log.cut(0)
        return Progress()
    check_same_run(resumable, recipe, dataset)
    restore_parameters(learner.published, resumable.model, resumable.path)
    learner.restore(resumable.state_tensors)
    state = RunState.from_json(resumable.state_values)
    log.cut(state.update)
    tensors = {name: t.to("meta") for name, t in resumable.state_tensors.items()}
    return Progress(state, log.validations(), tensors)


def check_same_run(resumable: Resumable, recipe: TrainRecipe, dataset: Dataset) -> None:
    """Refuse to continue a run with settings or data that would make it another one."""
    fields, old, new = fields_of(TrainRecipe), values_of(resumable.recipe), values_of(recipe)
    changed = [
        f"{name} was {old[name]!r} and is now {new[name]!r}"
        for name, field in fields.items()
        if field.setting.on_resume == "fixed" and old[name] != new[name]
    ]
    if changed:
        raise ConfigError(
            f"{resumable.path.parent.parent}: cannot continue this run with other settings: "
            f"{'; '.join(changed)}; run the same command again, or choose another --out"
        )
    if resumable.provenance["dataset"] != dataset.fingerprint:
        raise DamagedError(
            f"{resumable.path.parent.parent}: this run was begun with other data or another "
            "vocabulary; give it its own dataset, or choose another --out"
        )


def decide_slots(state: RunState, recipe: TrainRecipe, num_ranks: int) -> int:
    """Return into how many slots the updates of a run are cut, from its first to its last.

    At the start it is the smallest multiple of the number of ranks whose slots hold no more than
    max_tokens.

    Returns:
        The number; 0 where it is to be found out by trying.

    Raises:
        ConfigError: the run was begun with fewer slots than there are ranks now.
    """
    training = recipe.training
    if 0 < state.num_slots < num_ranks:
        raise ConfigError(
            f"the updates of this run are cut into {state.num_slots} slots, too few for "
            f"{num_ranks} ranks; continue it with at most {state.num_slots}"
        )
    if state.num_slots or not training.max_tokens:
        return state.num_slots
    needed = num_slots(training.update_tokens, training.max_tokens)
    # A checkpoint that says nothing was made on one device.
    return needed if state.update else num_ranks * math.ceil(needed / num_ranks)
