"""On a GPU, the host runs ahead: within an update it waits for the device at the end alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.training import TrainingConfig
from nmtkit.data.batch import make_batch
from nmtkit.data.binary import Dataset, PairIds, Sequences
from nmtkit.model.kernels import unpadded
from nmtkit.training.objective import LOSSES, num_target_tokens
from nmtkit.training.optimizer import normalize_and_clip_gradients
from tests.tiny import tiny_dataset, tiny_train_recipe
from tests.training import run_context, trainer_of

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.mark.filterwarnings(
    "ignore:Synchronization debug mode",
    "ignore:The .grad attribute of a Tensor",
    "ignore:TensorFloat32 tensor cores",
)
@needs_gpu
@pytest.mark.parametrize(
    ("precision", "longest_padded"),
    [("bfloat16", 0), ("bfloat16", 64), ("float32", 64)],
    ids=["flash", "padded", "float32"],
)
def test_an_update_does_not_wait_for_the_device(
    precision: str,
    longest_padded: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = torch.device("cuda")
    monkeypatch.setattr(unpadded, "MAX_PADDED_LENGTH", longest_padded)
    dataset = Dataset.open(tiny_dataset(tmp_path))
    recipe = tiny_train_recipe(max_updates=1, dropout=0.1)
    recipe = replace(
        recipe,
        training=TrainingConfig(clip_norm=1.0, ema_decay=0.9),
        engine=replace(recipe.engine, precision=precision),
    )
    low_precision = None if precision == "float32" else torch.bfloat16
    context = run_context(recipe, dataset, tmp_path / "run")
    trainer = trainer_of(replace(context, device=device, low_precision=low_precision))
    mode = torch.cuda.get_sync_debug_mode()
    try:
        for number in (1, 2, 3):
            side = Sequences.pack([[5, 6, 7, 2], [8, 2], [9, 10, 2]] * number, "uint16")
            batch = make_batch(PairIds(side, side), device)
            counts = dict.fromkeys(LOSSES, num_target_tokens(batch))
            torch.cuda.synchronize()
            if number > 1:  # the first one moves tables to the device
                torch.cuda.set_sync_debug_mode("error")
            trainer._forward_backward(batch, counts, is_last=True)
            parameters = trainer.train_state.model.parameters()
            norm = normalize_and_clip_gradients(parameters, 9 * number, clip_norm=1.0)
            trainer.train_state.step(1e-3, is_skipped=~norm.isfinite())
            torch.cuda.set_sync_debug_mode(mode)
            assert norm.isfinite()
    finally:
        torch.cuda.set_sync_debug_mode(mode)
