"""When training is compiled, and that it stays eager if compilation fails."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmtkit.config.engine import EngineConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch
from nmtkit.errors import ResourceError
from nmtkit.model.layers import ResidualTail, add_and_norm, add_norm_feed_forward
from nmtkit.runtime.host_copies import HostCopy
from nmtkit.training import compiling
from nmtkit.training.compiling import (
    Execution,
    choose_common_execution,
    choose_execution,
    should_compile,
)
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Losses, Objective
from nmtkit.training.state import Progress
from tests.messages import refuses
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


def test_without_a_cache_of_the_user_training_is_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiling, "compiled", pytest.fail)
    reported: list[str] = []
    assert choose_execution(recipe_of(64), SIZE, CPU, reported.append) == EAGER
    assert reported == [
        f"not compiled: {tmp_path}: compiled code is kept where only you can write, and others can "
        "write here; change its mode or owner, or set XDG_CACHE_HOME to a folder of your own; "
        "training continues without --compile"
    ]


def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> TrainRecipe:
    """Return a recipe whose `auto` compiles, as on a GPU, without a compiler."""
    monkeypatch.setattr(compiling, "should_compile", lambda *_: True)
    monkeypatch.setattr(compiling, "compiled", lambda function: lambda *of: function(*of))
    return replace(recipe_of(128), engine=EngineConfig(compile="auto"))


@pytest.mark.parametrize(("ratio", "is_compiled"), [(0.96, True), (0.98, False), (1.3, False)])
def test_auto_compiles_what_is_clearly_faster(
    ratio: float, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = on_a_gpu(monkeypatch)
    monkeypatch.setattr(compiling, "compiled_time", lambda *_: ratio)
    reported: list[str] = []
    execution = choose_execution(recipe, SIZE, CPU, reported.append)
    assert execution.is_compiled == is_compiled
    slower = (
        f"not compiled: a compiled pass takes {ratio:.2f} times as long as an eager one; "
        "--compile on compiles it"
    )
    assert reported == ([] if is_compiled else [slower])


def test_auto_times_models_of_the_full_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = on_a_gpu(monkeypatch)
    recipe = replace(recipe, model=replace(recipe.model, encoder_layers=3, decoder_layers=2))
    timed: list[tuple[bool, int, int]] = []

    def time_one(objective: Objective, batch: Batch) -> float:
        layers = len([*objective.model.encoder, *objective.model.decoder])
        is_compiled = objective.model.encoder[0].tail is not EAGER.tail
        timed.append((is_compiled, layers, batch.sizes[0]))
        return 2.0 if is_compiled else 4.0 + len(timed)

    monkeypatch.setattr(compiling, "_pass_seconds", time_one)
    assert choose_execution(recipe, SIZE, CPU, pytest.fail).is_compiled
    assert timed == [(True, 5, 128), (False, 5, 128)] * compiling.NUM_TIMED


def test_both_passes_are_timed_on_a_batch_that_fits_both(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = on_a_gpu(monkeypatch)
    recipe = replace(recipe, model=replace(recipe.model, encoder_layers=2))
    forward, timed = Objective.forward, list[int]()

    def run_out(self: Objective, batch: Batch) -> Losses:
        is_deep_and_eager = len([*self.model.encoder]) == 2 and not is_compiled(self)
        if is_deep_and_eager and batch.sizes[0] > 64:
            raise torch.OutOfMemoryError("too little")
        return forward(self, batch)

    def is_compiled(objective: Objective) -> bool:
        return objective.model.encoder[0].tail is not EAGER.tail

    monkeypatch.setattr(Objective, "forward", run_out)

    def time_one(_: Objective, batch: Batch) -> float:
        timed.append(batch.sizes[0])
        return 1.0

    monkeypatch.setattr(compiling, "_pass_seconds", time_one)
    choose_execution(recipe, SIZE, CPU, list[str]().append)
    assert set(timed) == {64}


@pytest.mark.parametrize("is_faster", [False, True])
def test_auto_keeps_what_an_earlier_session_has_measured(
    is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = on_a_gpu(monkeypatch)
    monkeypatch.setattr(compiling, "compiled_time", pytest.fail)
    execution = choose_execution(recipe, SIZE, CPU, pytest.fail, is_faster=is_faster)
    assert execution.is_compiled == is_faster


def test_a_pass_is_timed_until_its_end_and_leaves_no_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = on_a_gpu(monkeypatch)
    objective = compiling._trial_objective(recipe, recipe.model, SIZE, CPU, EAGER)
    events: list[str] = []
    objective.model.encoder[0].feed_forward.inner.weight.register_hook(
        lambda _: events.append("backward")
    )

    class Watched(HostCopy):
        def tolist(self) -> list[float]:
            events.append("wait")
            return super().tolist()

    monkeypatch.setattr(compiling, "HostCopy", Watched)
    assert compiling._pass_seconds(objective, compiling.eos_batch(64, 100, CPU)) > 0
    assert events == ["backward", "wait"]
    assert all(p.grad is None for p in objective.parameters())


class _Ranks(Ranks):
    """Two ranks; the other one compiles, or has a reason against it."""

    def __init__(self, reason: str) -> None:
        super().__init__(rank=0, size=2)
        self._reason = reason

    def gather(self, value: Any) -> list[Any]:
        return [value, self._reason if isinstance(value, str) else not self._reason]


@pytest.mark.parametrize("own", ["", "not compiled: no tool"])
@pytest.mark.parametrize("other", ["", "not compiled: too slow"])
@pytest.mark.parametrize("compile", ["auto", "on"])
def test_all_ranks_compile_or_none_and_the_run_keeps_what_auto_measured(
    compile: str, own: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "should_compile", lambda *_: True)
    recipe, progress = replace(recipe_of(64), engine=EngineConfig(compile=compile)), Progress()
    tail = ResidualTail(add_and_norm, add_norm_feed_forward)
    micro_batches: list[int] = []

    def choose(*of: Any, **__: Any) -> Execution:
        micro_batches.append(of[4])
        if own:
            of[3](own)
        return EAGER if own else Execution(None, tail=tail)

    monkeypatch.setattr(compiling, "choose_execution", choose)
    reported: list[str] = []
    execution = choose_common_execution(recipe, SIZE, CPU, _Ranks(other), progress, reported.append)
    assert execution.is_compiled == (not own and not other)
    reasons = [f"rank {rank}: {reason}" for rank, reason in enumerate([own, other]) if reason]
    assert reported == ["compiling the loss and the residual tails of layers", *reasons]
    assert micro_batches == [2]
    assert progress.is_compiled == (execution.is_compiled if compile == "auto" else None)


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


def test_the_trial_batch_has_the_size_of_a_micro_batch_of_several_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = tokens_tried(10**6, monkeypatch)
    choose_execution(recipe_of(0), SIZE, CPU, pytest.fail, 8)
    assert tried == [pytest.approx(250, rel=0.1), 64]


def test_too_little_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = tokens_tried(0, monkeypatch)
    reported = "memory 64"
    with refuses(ResourceError, reported):
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
