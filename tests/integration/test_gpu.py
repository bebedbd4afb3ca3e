"""On a GPU, the host runs ahead: within an update it waits for the device at the end alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.training import TrainingConfig
from nmtkit.data.batch import make_batch
from nmtkit.data.binary import Dataset, Sequences
from nmtkit.model.kernels import flash
from nmtkit.runtime.host_copies import HostCopy, Staging
from nmtkit.training.compiling import choose_execution
from nmtkit.training.micro_batches import MicroBatch
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
@pytest.mark.parametrize("compile", ["off", "on"])
def test_an_update_does_not_wait_for_the_device(
    compile: str,
    precision: str,
    longest_padded: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = torch.device("cuda")
    monkeypatch.setattr(flash, "MAX_PADDED_LENGTH", longest_padded)
    dataset = Dataset.open(tiny_dataset(tmp_path))
    recipe = tiny_train_recipe(max_updates=1, dropout=0.1)
    recipe = replace(
        recipe,
        training=TrainingConfig(clip_norm=1.0, ema_decay=0.9),
        engine=replace(recipe.engine, compile=compile, precision=precision),
    )
    execution = choose_execution(recipe, dataset.codec.target.size, device, pytest.fail)
    context = run_context(recipe, dataset, tmp_path / "run")
    trainer = trainer_of(replace(context, device=device, execution=execution))
    mode = torch.cuda.get_sync_debug_mode()
    try:
        for number in (1, 2, 3):
            side = Sequences.pack([[5, 6, 7, 2], [8, 2], [9, 10, 2]] * number, "uint16")
            micro_batch = MicroBatch(0, 1, make_batch(side, side, device))
            torch.cuda.synchronize()
            if number > 1:  # the first one moves tables to the device
                torch.cuda.set_sync_debug_mode("error")
            trainer._forward_backward(micro_batch, number, is_last=True)
            parameters = trainer.train_state.model.parameters()
            norm = normalize_and_clip_gradients(parameters, 9 * number, clip_norm=1.0)
            trainer.train_state.step(1e-3, is_skipped=~norm.isfinite())
            result = HostCopy(norm[None])
            torch.cuda.set_sync_debug_mode(mode)
            assert len(result.tolist()) == 1
    finally:
        torch.cuda.set_sync_debug_mode(mode)


@needs_gpu
def test_copies_on_the_host_do_not_follow_changes_on_the_device() -> None:
    device = torch.device("cuda")
    first = torch.arange(1e6).to(device)
    second = torch.arange(3, dtype=torch.bfloat16).to(device)
    memory = Staging()
    for number in range(3):
        copies = memory.copy([first, second])
        first.copy_(torch.arange(1e6) + number + 1)
        memory.wait()
        assert torch.equal(copies[0], torch.arange(1e6) + number)
        assert torch.equal(copies[1], torch.arange(3, dtype=torch.bfloat16))
