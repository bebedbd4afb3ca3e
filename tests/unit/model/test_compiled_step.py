"""Steps by the function that is compiled, compared with those of the model itself."""

import random
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from nmtkit.config.training import ModelConfig
from nmtkit.model.compiled_step import CompiledStep, StepFunction
from nmtkit.model.state import ENTRY_BLOCK, DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID, EOS_ID
from tests.unit.model.test_transformer import SHAPES, VOCABULARY, make

NUM_TOKENS = 3
SOURCES = [[3, 4, 5, EOS_ID], [6, EOS_ID], [7, 8, 9, 10, 11, 12, 13, 14, EOS_ID]]
TOLERANCE = 2e-5
"""Of hidden vectors of size 1, in float32."""

shapes = pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES.keys())


class Interpreted(CompiledStep):
    """The function itself, in place of its code."""

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self._shape = (1, NUM_TOKENS)
        self._function = StepFunction(model.decoder, model.decoder_norm, dtype)
        self.num_calls = 0

    def __call__(self, x: Tensor, state: DecoderState) -> Tensor:
        self.num_calls += 1
        output: Tensor = self._function(x, state.step_tensors())
        return output


def pair(config: ModelConfig, dtype: torch.dtype) -> tuple[Transformer, Transformer]:
    """Return a model, and one with equal weights that interprets its steps."""
    plain, other = make(config, torch.float32), make(config, torch.float32)
    other.compiled_step = Interpreted(make(config, torch.float32), dtype)
    for model in (plain, other):
        model.prepare(dtype)
    return plain, other


def begun_searches(models: Sequence[Transformer]) -> Iterator[list[DecoderState]]:
    """Yield the states of all models before the first step, for each source."""
    for source in SOURCES:
        packed = pack_sequences([source], torch.device("cpu"))
        yield [model.start(model.encode(packed)) for model in models]


def assert_steps_are_equal(
    models: Sequence[Transformer], states: Sequence[DecoderState], tokens: Tensor
) -> None:
    pairs = zip(models, states, strict=True)
    expected, found = (model.advance(tokens, state) for model, state in pairs)
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@torch.inference_mode()
def assert_rows_are_equal(plain: Transformer, other: Transformer, steps: int) -> None:
    """Drive both as a beam search does."""
    draw = random.Random(1)
    for states in begun_searches((plain, other)):
        tokens = torch.tensor([[BOS_ID]])
        for _ in range(steps):
            assert_steps_are_equal((plain, other), states, tokens)
            parents = torch.tensor([draw.choices(range(NUM_TOKENS), k=NUM_TOKENS)])
            for state in states:
                state.expand(NUM_TOKENS) if state.width == 1 else state.reorder(parents)
            tokens = torch.randint(VOCABULARY, (1, NUM_TOKENS))


@shapes
def test_rows_of_a_sentence_are_those_of_the_model(config: ModelConfig) -> None:
    plain, other = pair(config, torch.float32)
    steps = ENTRY_BLOCK  # so the storage grows, and dead entries are removed
    assert_rows_are_equal(plain, other, steps)
    assert isinstance(other.compiled_step, Interpreted)
    assert other.compiled_step.num_calls == len(SOURCES) * (steps - 1)


def test_low_precision_is_that_of_the_model() -> None:
    plain, other = pair(SHAPES["post"], torch.bfloat16)
    assert_rows_are_equal(plain, other, 6)


def test_a_batch_uses_the_code_once_a_single_sentence_is_left() -> None:
    models = pair(SHAPES["post"], torch.float32)
    source = pack_sequences(SOURCES[:2], torch.device("cpu"))
    with torch.inference_mode():
        states = [model.start(model.encode(source)) for model in models]
        found: list[Tensor] = []
        for model, state in zip(models, states, strict=True):
            model.advance(torch.full((2, 1), BOS_ID), state)
            state.expand(NUM_TOKENS)
            model.advance(torch.full((2, NUM_TOKENS), 5), state)
            state.keep(torch.tensor([1]))
            found.append(model.advance(torch.full((1, NUM_TOKENS), 6), state))
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=TOLERANCE)
    assert isinstance(models[1].compiled_step, Interpreted)
    assert models[1].compiled_step.num_calls == 1
