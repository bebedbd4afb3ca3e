"""Compiled training computes the same as eager training, and compiles each function once."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import EngineConfig, ModelConfig
from nmtkit.data.batch import Batch, make_batch
from nmtkit.data.binary import PairIds, Sequences
from nmtkit.model.layers import PreNorm, add_and_norm
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import compiled
from nmtkit.training import objective as objective_module
from nmtkit.training.objective import NLL, Objective
from nmtkit.training.run import make_objective, train
from nmtkit.training.state import Execution
from tests.launching import end, start
from tests.tiny import tiny_dataset, tiny_train_recipe
from tests.training import last_model

# torch's compiler makes use of what torch itself warns of.
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:The .grad attribute of a Tensor",
        "ignore:`torch.jit:DeprecationWarning",
        "ignore:TensorFloat32 tensor cores",
    ),
    pytest.mark.skipif(
        " " in torch.__file__, reason="torch's compiler cannot link where its path has a space"
    ),
]

CPU, GPU = torch.device("cpu"), torch.device("cuda")
devices = pytest.mark.parametrize(
    "device",
    [
        CPU,
        pytest.param(
            GPU,
            marks=pytest.mark.skipif(
                not torch.cuda.is_available(), reason="there is no GPU to compile for"
            ),
        ),
    ],
    ids=str,
)
SIZE = 60
MODEL = ModelConfig(
    encoder_layers=2, decoder_layers=2, model_size=32, feed_forward_size=48, heads=4, dropout=0.1
)
NUM_GRAPHS = 3
"""Compiled functions: two residual tails and the softmax of the loss."""

NUM_SENTENCES = (30, 2, 41, 1, 7, 25)
CHUNK = 50
"""Tokens whose logits exist at a time: the last chunks of batches are all smaller."""


@pytest.fixture(autouse=True)
def _forget_what_was_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def num_graphs() -> int:
    return counters["stats"]["unique_graphs"]


def batch(num_sentences: int, device: torch.device) -> Batch:
    """Return sentences of up to 9 tokens; one sentence is one token on either side."""
    draw = random.Random(num_sentences)
    longest = 1 if num_sentences == 1 else 9
    sides = (
        [[draw.randrange(3, SIZE) for _ in range(draw.randint(1, longest))] for _ in range(n)]
        for n in (num_sentences, num_sentences)
    )
    source, target = (Sequences.pack(side, "uint16") for side in sides)
    return make_batch(PairIds(source, target), device)


def objective_of(config: ModelConfig, engine: EngineConfig, device: torch.device) -> Objective:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    training = replace(recipe.training, update_tokens=256, max_tokens=256)
    recipe = replace(recipe, model=config, training=training, engine=engine)
    execution = Execution.of(recipe, device)
    torch.manual_seed(2)
    model = Transformer(
        config,
        SIZE,
        SIZE,
        is_shared=True,
        tail=execution.tail,
        activation_checkpointing=engine.activation_checkpointing,
    )
    return make_objective(recipe, model.to(device), execution)


def train_and_validate(objective: Objective) -> list[Tensor]:
    """Return losses and gradients of batches of many sizes, validation between them."""
    device, results = objective.model.output_weight.device, []
    for number in NUM_SENTENCES:
        objective.train().zero_grad()
        torch.manual_seed(number)
        losses = objective(batch(number, device))
        losses.loss.backward()
        gradients = [p.grad.flatten() for p in objective.parameters() if p.grad is not None]
        results += [losses.loss.detach(), losses.sums[NLL], torch.cat(gradients)]
        objective.eval()
        with torch.inference_mode():
            results.append(objective(batch(number + 1, device)).sums[NLL])
    return results


@pytest.mark.thorough
@devices
@pytest.mark.parametrize(
    ("norm", "precision", "checkpointing"),
    [("post", "float32", False), ("pre", "bfloat16", True)],
    ids=["post", "pre-bfloat16-recomputed"],
)
def test_losses_and_gradients_are_the_plain_ones_for_any_number_of_tokens(
    norm: str,
    precision: str,
    checkpointing: bool,
    device: torch.device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objective_module, "chunk_size", lambda *_: CHUNK)
    config = replace(MODEL, norm=norm, dropout=0.0)
    engine = EngineConfig(
        precision=precision, activation_checkpointing=checkpointing, compile="off"
    )
    eager = objective_of(config, engine, device)
    expected = train_and_validate(eager)
    assert num_graphs() == 0
    objective = objective_of(config, replace(engine, compile="on"), device)
    assert objective.softmax is not eager.softmax
    actual = train_and_validate(objective)
    assert num_graphs() == NUM_GRAPHS
    assert list(objective.model.state_dict()) == list(eager.model.state_dict())
    # Other orders of summation; in bfloat16, fused steps round less often than single ones.
    tolerance = 1e-5 if precision == "float32" else 2**-7
    for own, other in zip(actual, expected, strict=True):
        assert ((own - other).norm() / other.norm()).item() < tolerance


def test_a_compiled_tail_is_the_plain_one() -> None:
    residual = PreNorm(replace(MODEL, norm="pre", dropout=0.0))
    run = compiled(add_and_norm)
    for tokens in (30, 7):
        x, context = torch.randn(2, tokens, MODEL.model_size)
        actual, expected = (one(residual, x, context) for one in (run, add_and_norm))
        # Other orders of summation.
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


def test_dropout_follows_from_the_seed_and_drops_its_share() -> None:
    rate, tokens = 0.25, 300
    residual = PreNorm(replace(MODEL, norm="pre", dropout=rate))
    x, context = torch.zeros(tokens, MODEL.model_size), torch.ones(tokens, MODEL.model_size)
    run = compiled(add_and_norm)

    def draw(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return run(residual, x, context)

    drawn = draw(1)
    assert torch.equal(drawn, draw(1))
    assert not torch.equal(drawn, draw(2))
    kept = drawn[drawn != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - rate)))
    # 9600 draws: four standard deviations are 0.018.
    assert (drawn == 0).double().mean().item() == pytest.approx(rate, abs=0.018)


@pytest.mark.thorough
def test_activation_checkpointing_draws_the_same_dropout_again() -> None:
    kept, recomputed = (
        train_and_validate(
            objective_of(MODEL, EngineConfig(compile="on", activation_checkpointing=value), CPU)
        )
        for value in (False, True)
    )
    for own, other in zip(recomputed, kept, strict=True):
        assert torch.equal(own, other)


def compiled_recipe(max_updates: int, device: torch.device) -> TrainRecipe:
    recipe = tiny_train_recipe(max_updates, dropout=0.1)
    return replace(
        recipe,
        runtime=replace(recipe.runtime, device=device.type),
        engine=replace(recipe.engine, compile="on"),
    )


@pytest.mark.thorough
@devices
def test_a_resumed_run_is_the_uninterrupted_one_and_compiles_each_function_once(
    device: torch.device, tmp_path: Path
) -> None:
    data = tiny_dataset(tmp_path)
    train(compiled_recipe(6, device), data, tmp_path / "whole")
    assert num_graphs() == NUM_GRAPHS
    for last_update in (3, 6):  # each session compiles, as a process of its own does
        torch._dynamo.reset()
        train(compiled_recipe(last_update, device), data, tmp_path / "parts")
    assert num_graphs() == 3 * NUM_GRAPHS
    if device == GPU:  # which adds up in any order
        return
    whole, parts = last_model(tmp_path / "whole"), last_model(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name


@pytest.mark.thorough
def test_without_a_compiler_training_ends_before_its_first_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nonexistent")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    training = start(tiny_dataset(tmp_path), tmp_path / "run", "--compile=on", "--max-updates=8")
    code, talk = end(training)
    *_, error = talk.splitlines()
    assert code == 2, talk
    assert error.startswith("nmtkit: error: compile ('on') failed: "), error
    assert "No working C++ compiler" in error
    assert error.endswith("; use --compile off [engine.compile]"), error
