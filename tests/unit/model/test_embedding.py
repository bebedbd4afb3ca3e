import math

import pytest
import torch
from torch import Tensor

from nmtkit.config import model as model_config
from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe, fields_of
from nmtkit.errors import DataError
from nmtkit.model.embedding import (
    POSITIONS,
    Embedding,
    LearnedPositions,
    SinusoidalPositions,
    sinusoids,
    token_embedding,
)
from tests.messages import refuses

MODEL_SIZE = 16
FLOAT32 = 1e-6
"""Values between -1 and 1, rounded to float32 once, with room for a sum of two."""


def test_every_choice_of_positions_has_an_implementation() -> None:
    choices = fields_of(TrainRecipe)["positions"].choices
    assert [*POSITIONS] == [*model_config.POSITIONS] == [*choices]


@pytest.mark.parametrize("name", POSITIONS)
def test_position_encodings_have_the_declared_parameters_and_limit(name: str) -> None:
    config = ModelConfig(model_size=MODEL_SIZE, positions=name, max_positions=7)
    encoding, facts = POSITIONS[name](config), model_config.POSITIONS[name]
    assert encoding(torch.arange(7), 7).shape == (7, MODEL_SIZE)
    for stored in (encoding.state_dict().values(), encoding.parameters()):
        num_learned = sum(tensor.numel() for tensor in stored)
        assert num_learned == (7 * MODEL_SIZE if facts.is_learned else 0)
    assert (config.longest_sequence < 8) == facts.is_learned
    if facts.is_learned:
        with pytest.raises(DataError):
            encoding(torch.arange(8), 8)
    else:
        assert encoding(torch.arange(8), 8).shape == (8, MODEL_SIZE)


def frequencies(model_size: int) -> Tensor:
    """Angle that each pair of channels turns by from one position to the next."""
    exponents = torch.arange(model_size // 2, dtype=torch.float64) * 2 / model_size
    return 10_000.0**-exponents


@pytest.mark.parametrize("model_size", [2, 16, 512])
def test_sinusoids_are_the_papers_formula_up_to_a_permutation_of_channels(model_size: int) -> None:
    # Source: paper, section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(...).
    formula = torch.zeros(60, model_size)
    for pos in range(60):
        for i in range(model_size // 2):
            angle = pos / 10_000 ** (2 * i / model_size)
            formula[pos, 2 * i], formula[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    permutation = [*range(0, model_size, 2), *range(1, model_size, 2)]
    table = sinusoids(60, model_size)
    torch.testing.assert_close(table, formula[:, permutation], rtol=0.0, atol=FLOAT32)


def test_positions_have_no_limit_and_never_change() -> None:
    positions = SinusoidalPositions(MODEL_SIZE)
    early = positions(torch.arange(5), 5)
    far = positions(torch.tensor([4, 6, 70_000]), 70_001)
    assert torch.equal(far[0], early[4])
    angles = 70_000 * frequencies(MODEL_SIZE)
    expected = torch.cat([angles.sin(), angles.cos()]).float()
    torch.testing.assert_close(far[2], expected, rtol=0.0, atol=FLOAT32)
    assert torch.equal(positions(torch.arange(5), 5), early)


def test_a_table_that_grew_in_inference_mode_can_be_trained_with() -> None:
    embedding = Embedding(token_embedding(5, MODEL_SIZE), SinusoidalPositions(MODEL_SIZE), 0.0)
    with torch.inference_mode():
        embedding(torch.tensor([1, 2]), torch.tensor([0, 1]), 2)
    embedding(torch.tensor([1, 2]), torch.tensor([0, 1]), 2).sum().backward()
    assert embedding.tokens.weight.grad is not None


def test_tokens_are_scaled_by_the_root_of_the_model_size_and_positions_are_not() -> None:
    tokens = token_embedding(9, MODEL_SIZE)
    ids, places = torch.tensor([3, 8, 3]), torch.tensor([0, 1, 2])
    actual = Embedding(tokens, SinusoidalPositions(MODEL_SIZE), 0.0)(ids, places, 3)
    expected = tokens.weight[ids] * 4 + sinusoids(3, MODEL_SIZE)
    torch.testing.assert_close(actual, expected)


def test_dropout_acts_on_the_sum_of_token_and_position_in_training_only() -> None:
    p = 0.25
    embedding = Embedding(
        token_embedding(9, MODEL_SIZE), SinusoidalPositions(MODEL_SIZE), dropout=p
    )
    ids, places = torch.randint(9, (400,)), torch.arange(400)
    dropped = embedding(ids, places, 400)
    whole = embedding.eval()(ids, places, 400)
    is_dropped = dropped == 0
    torch.testing.assert_close(dropped[~is_dropped], whole[~is_dropped] / (1 - p))
    # 6400 draws: four standard deviations are 0.022.
    assert is_dropped.double().mean().item() == pytest.approx(p, abs=0.022)


def test_embeddings_begin_with_variance_one_after_scaling() -> None:
    weight = token_embedding(1000, 64).weight * math.sqrt(64)
    # 64 000 draws: four standard deviations of the variance are 0.022.
    assert weight.var().item() == pytest.approx(1.0, abs=0.03)
    assert weight.mean().item() == pytest.approx(0.0, abs=0.02)


def test_learned_positions_are_looked_up() -> None:
    positions = LearnedPositions(MODEL_SIZE, 6)
    places = torch.tensor([[5, 0], [2, 2]])
    assert torch.equal(positions(places, 6), positions.table.weight[places])


def test_a_sequence_beyond_the_learned_positions_is_an_error() -> None:
    positions = LearnedPositions(MODEL_SIZE, 6)
    with refuses(DataError, "7 6; --max-positions"):
        positions(torch.arange(7), 7)
