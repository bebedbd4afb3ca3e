"""When training is compiled, and what becomes of it where that fails."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nmtkit.config.training import EngineConfig, ModelConfig
from nmtkit.data.batch import Batch
from nmtkit.errors import ResourceError
from nmtkit.model.layers import PLAIN, Between, Layer
from nmtkit.model.transformer import Transformer
from nmtkit.training import compiling
from nmtkit.training.compiling import compile_if_wanted, compile_objective, is_wanted
from nmtkit.training.loss import Losses
from nmtkit.training.objective import Objective
from tests.tiny import tiny_train_recipe

MODEL = ModelConfig(
    encoder_layers=1, decoder_layers=1, model_size=8, feed_forward_size=8, heads=2, dropout=0.5
)


@pytest.fixture
def objective() -> Objective:
    torch.manual_seed(1)
    return Objective(Transformer(MODEL, 9, 9, is_shared=True), 0.1, None)


@pytest.mark.parametrize(
    ("compile", "device", "deterministic", "expected"),
    [
        ("auto", "cpu", False, False),
        ("auto", "cuda", False, True),
        ("auto", "cuda", True, False),
        ("on", "cpu", False, True),
        ("on", "cuda", False, True),
        ("off", "cpu", False, False),
        ("off", "cuda", False, False),
    ],
)
def test_it_is_wanted_on_gpus_unless_settings_say_otherwise(
    compile: str, device: str, deterministic: bool, expected: bool
) -> None:
    engine = EngineConfig(compile=compile, deterministic=deterministic)
    assert is_wanted(engine, torch.device(device)) is expected


def failing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Tensor:
        raise error

    monkeypatch.setattr(compiling, "compiled_between", lambda: Between(fail, fail))


def test_what_cannot_be_compiled_is_as_it_was(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(RuntimeError("ToolError: no tool\nfor it\n\nmore"), monkeypatch)
    random_state = torch.get_rng_state()
    assert compile_objective(objective, 64) == "ToolError: no tool for it"
    assert not objective.is_compiled
    assert all(m.between is PLAIN for m in objective.modules() if isinstance(m, Layer))
    assert all(p.grad is None for p in objective.parameters())
    assert torch.equal(torch.get_rng_state(), random_state)


def tokens_tried(room: int, objective: Objective, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return what notes the tokens of batches, of which so many fit into the memory of a GPU."""
    tried: list[int] = []

    def compute(batch: Batch) -> Losses:
        tried.append(batch.sizes[0])
        assert all(p.grad is None for p in objective.parameters())
        loss = objective.model.output_weight.sum()
        loss.backward()  # so much was done when memory ran out
        if batch.sizes[0] > room:
            raise torch.OutOfMemoryError("too little")
        return Losses(objective.model.output_weight.sum(), loss)

    monkeypatch.setattr(objective, "forward", compute)
    return tried


def test_it_is_tried_with_ever_fewer_tokens_until_they_fit(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = tokens_tried(300, objective, monkeypatch)
    assert compile_objective(objective, 2048) is None
    assert tried == [2048, 1024, 512, 256]
    assert objective.is_compiled
    assert all(p.grad is None for p in objective.parameters())


def test_memory_for_nothing_is_an_error(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = tokens_tried(0, objective, monkeypatch)
    told = "out of memory, even for a batch of 64 tokens; take a smaller model or a larger machine"
    with pytest.raises(ResourceError, match=told):
        compile_objective(objective, 192)
    assert tried == [192, 96, 64]


@pytest.mark.parametrize(("max_tokens", "expected"), [(0, 2000), (500, 500), (1, 2), (10**6, 4096)])
def test_it_is_tried_with_about_as_many_tokens_as_a_slot_has(
    max_tokens: int, expected: int, objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.1)
    training = replace(recipe.training, update_tokens=2000, max_tokens=max_tokens)
    if max_tokens > training.update_tokens:
        training = replace(training, update_tokens=max_tokens)
    recipe = replace(recipe, training=training, engine=EngineConfig(compile="on"))
    sizes: list[int] = []

    def see(batch: object) -> object:
        sizes.append(batch.sizes[0])  # type: ignore[attr-defined]
        raise RuntimeError

    monkeypatch.setattr(Objective, "forward", lambda _, batch: see(batch))
    compile_if_wanted(objective, recipe, lambda _: None)
    assert sizes[0] == pytest.approx(expected, rel=0.02)


def test_off_nothing_is_told_and_nothing_compiled(objective: Objective) -> None:
    told: list[str] = []
    compile_if_wanted(objective, tiny_train_recipe(1, 0.1), told.append)
    assert not objective.is_compiled
    assert not told
