"""On a GPU, the host runs ahead: within an update it waits for the device at the end alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nmtkit.config.training import EngineConfig, TrainingConfig
from nmtkit.data.batch import batch_of
from nmtkit.data.binary import Sequences
from nmtkit.model.transformer import Transformer
from nmtkit.training.compiling import choose_execution
from nmtkit.training.distributed import Ranks
from nmtkit.training.learner import Learner
from nmtkit.training.run import make_objective
from nmtkit.training.slots import Slot
from nmtkit.training.stopping import StopRequest
from nmtkit.training.updating import Updater
from tests.tiny import tiny_train_recipe

SIZE = 40


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU to wait for")
@pytest.mark.parametrize("dtype", [torch.bfloat16, None], ids=["flash", "padded"])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_update_does_not_wait_for_the_device(
    is_compiled: bool, dtype: torch.dtype | None
) -> None:
    device = torch.device("cuda")
    recipe = tiny_train_recipe(max_updates=1, dropout=0.1)
    recipe = replace(recipe, training=TrainingConfig(clip_norm=1.0, average_decay=0.9))
    precision = "float32" if dtype is None else "bfloat16"
    engine = EngineConfig(precision=precision, compile="on" if is_compiled else "off")
    execution = choose_execution(replace(recipe, engine=engine), SIZE, device, pytest.fail)
    model = Transformer(recipe.model, SIZE, SIZE, is_shared=True, tail=execution.tail)
    learner = Learner.of(model.to(device), recipe.training)
    objective = make_objective(recipe, learner.model, execution)
    assert objective.is_compiled is is_compiled
    updater = Updater(objective, learner, recipe, Ranks(), StopRequest())
    slot = Slot(0, 0, np.zeros(0, np.int64), 1, is_last=True)
    mode = torch.cuda.get_sync_debug_mode()
    try:
        for number in (1, 2, 3):
            side = Sequences.pack([[5, 6, 7, 2], [8, 2], [9, 10, 2]] * number, "uint16")
            torch.cuda.synchronize()
            if number > 1:  # the first one moves tables to the device
                torch.cuda.set_sync_debug_mode("error")
            updater._accumulate(batch_of(side, side, device), slot, number)
            updater._average_gradients(9 * number)
            updater.apply(number, 1e-3)
            torch.cuda.set_sync_debug_mode(mode)
    finally:
        torch.cuda.set_sync_debug_mode(mode)
