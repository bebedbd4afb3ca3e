"""Values of models in float64, and what it means that two ways to compute them agree."""

import torch
from torch import Tensor

MODEL_SIZE = 12
TOLERANCE = 1e-12
"""In float64 another order of summation changes less than this."""


def random_values(sizes: list[int]) -> Tensor:
    """Draw the values of the tokens of sequences, (tokens, MODEL_SIZE)."""
    return torch.randn(sum(sizes), MODEL_SIZE, dtype=torch.float64, requires_grad=True)


def assert_same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=TOLERANCE)
