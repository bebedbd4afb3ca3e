"""When training is compiled, and that it stays eager if compilation fails."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nmtkit.config.engine import EngineConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch
from nmtkit.errors import ResourceError
from nmtkit.training import compiling
from nmtkit.training.compiling import Execution, choose_execution, should_compile
from nmtkit.training.objective import Losses, Objective
from tests.tiny import tiny_train_recipe

CPU = torch.device("cpu")
SIZE = 9
EAGER = Execution(precision=None)


def recipe_of(num_tokens: int) -> TrainRecipe:
    """Return a recipe with compilation on and micro-batches of `tokens` tokens."""
    recipe = tiny_train_recipe(max_updates=1, dropout=0.5)
    training = replace(recipe.training, update_tokens=max(num_tokens, 2000), max_tokens=num_tokens)
    return replace(recipe, training=training, engine=EngineConfig(compile="on"))


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
def test_auto_compiles_on_gpus_only(
    compile: str, device: str, deterministic: bool, expected: bool
) -> None:
    engine = EngineConfig(compile=compile, deterministic=deterministic)
    assert should_compile(engine, torch.device(device)) is expected


def test_a_failed_compilation_is_reported_and_training_stays_eager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> Tensor:
        raise RuntimeError("ToolError: no tool\nfor it\n\nmore")

    monkeypatch.setattr(compiling, "compiled", lambda _: fail)
    random_state = torch.get_rng_state()
    reported: list[str] = []
    assert choose_execution(recipe_of(64), SIZE, CPU, reported.append) == EAGER
    assert reported == [
        "not compiled: ToolError: no tool for it; training continues without --compile",
    ]
    assert torch.equal(torch.get_rng_state(), random_state)


def tokens_tried(room: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects batch sizes; batches above `room` tokens run out of memory."""
    tried: list[int] = []

    def compute(objective: Objective, batch: Batch) -> Losses:
        tried.append(batch.sizes[0])
        assert all(p.grad is None for p in objective.parameters())
        loss = objective.model.output_weight.sum()
        loss.backward()  # so much was done when memory ran out
        if batch.sizes[0] > room:
            raise torch.OutOfMemoryError("too little")
        return Losses(objective.model.output_weight.sum(), loss)

    monkeypatch.setattr(Objective, "forward", compute)
    return tried


def test_the_trial_batch_is_halved_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = tokens_tried(300, monkeypatch)
    random_state = torch.get_rng_state()
    execution = choose_execution(recipe_of(2048), SIZE, CPU, pytest.fail)
    assert tried == [2048, 1024, 512, 256, 64]
    assert execution.tail != EAGER.tail
    assert execution.softmax != EAGER.softmax
    assert torch.equal(torch.get_rng_state(), random_state)


def test_too_little_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = tokens_tried(0, monkeypatch)
    reported = (
        "out of memory, even for a batch of 64 tokens; use a smaller model or a larger machine"
    )
    with pytest.raises(ResourceError, match=reported):
        choose_execution(recipe_of(192), SIZE, CPU, pytest.fail)
    assert tried == [192, 96, 64]


@pytest.mark.parametrize(
    ("max_tokens", "expected"), [(0, [2000, 64]), (500, [500, 64]), (1, [2]), (10**5, [4096, 64])]
)
def test_the_trial_batches_have_the_size_of_a_micro_batch_and_a_small_one(
    max_tokens: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = tokens_tried(10**6, monkeypatch)
    choose_execution(recipe_of(max_tokens), SIZE, CPU, pytest.fail)
    assert tried == [pytest.approx(size, rel=0.02) for size in expected]


def test_the_trial_model_has_one_layer_per_stack_with_the_recipes_widths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Objective] = []

    def see(objective: Objective, _: object) -> bool:
        seen.append(objective)
        return True

    monkeypatch.setattr(compiling, "fits", see)
    recipe = recipe_of(64)
    deep = replace(recipe.model, encoder_layers=3, decoder_layers=2)
    choose_execution(replace(recipe, model=deep), SIZE, CPU, pytest.fail)
    (objective,) = seen
    assert objective.model.config == replace(deep, encoder_layers=1, decoder_layers=1)
    assert len(objective.model.output_weight) == SIZE
    assert objective.training


@pytest.mark.parametrize("max_positions", [1, 5, 31])
def test_trial_sentences_fit_the_learned_positions(
    max_positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "compiled", lambda function: function)
    recipe = recipe_of(64)
    short = replace(recipe.model, positions="learned", max_positions=max_positions)
    choose_execution(replace(recipe, model=short), SIZE, CPU, pytest.fail)


def test_off_compiles_and_reports_nothing() -> None:
    assert choose_execution(tiny_train_recipe(1, 0.1), SIZE, CPU, pytest.fail) == EAGER
