"""Embeddings and position encodings: the input of the first layer of encoder and decoder.

Source: paper, sections 3.4 (scaling, tying) and 3.5 (positions).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmtkit.config.model import ModelConfig
from nmtkit.errors import DataError
from nmtkit.model.kernels.training import Dropout

WAVELENGTH_BASE = 10_000.0
"""Wavelengths grow from 2 pi to this times 2 pi (section 3.5)."""


def _sinusoidal(config: ModelConfig) -> nn.Module:
    return SinusoidalPositions(config.model_size)


POSITIONS: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "sinusoidal": _sinusoidal,
    "learned": lambda config: LearnedPositions(config.model_size, config.max_positions),
    "rotary": _sinusoidal,
}
"""Builders of position encodings: modules that map positions (...) and a limit to (..., D).

`POSITIONS` in nmtkit/config/model.py has their properties.
"""


class Embedding(nn.Module):
    """sqrt(D) times the embedding of a token, plus its position, with dropout."""

    def __init__(self, tokens: nn.Embedding, positions: nn.Module, dropout: float) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(tokens.embedding_dim)

    def forward(self, ids: Tensor, positions: Tensor, longest: int) -> Tensor:
        """Embed tokens at their positions.

        Args:
            ids: (...) int64.
            positions: int64 of the same shape, or of one that broadcasts to it.
            longest: one more than the largest position; an int, so the device need not be read.

        Returns:
            (..., D).
        """
        encoding = self.positions(positions, longest)
        output: Tensor = self.dropout(torch.add(encoding, self.tokens(ids), alpha=self.scale))
        return output


class SinusoidalPositions(nn.Module):
    """Fixed sinusoids: sin(pos / 10000^(2i/D)) in the first half, the cosines in the second.

    Source: paper, section 3.5, up to a fixed permutation of channels (the paper interleaves).
    Positions have no limit: the table grows with the longest sequence.
    """

    def __init__(self, model_size: int) -> None:
        super().__init__()
        self.model_size = model_size
        # Not a buffer: DDP would broadcast it, and ranks have tables of different sizes.
        self.table = sinusoids(0, model_size)

    def forward(self, positions: Tensor, longest: int) -> Tensor:
        """Return encodings (..., D) of positions (...) below `longest`."""
        if longest > self.table.shape[0] or self.table.device != positions.device:
            # Doubling keeps growth rare. Training may use a table that grew in inference mode.
            with torch.inference_mode(False):
                table = sinusoids(max(longest, 2 * self.table.shape[0]), self.model_size)
                self.table = table.to(positions.device)
        return nn.functional.embedding(positions, self.table)


class LearnedPositions(nn.Module):
    """One learned vector per position. Source: paper, table 3 (E)."""

    def __init__(self, model_size: int, max_positions: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_positions, model_size)
        nn.init.normal_(self.table.weight, std=model_size**-0.5)

    def forward(self, positions: Tensor, longest: int) -> Tensor:
        """Return encodings (..., D) of positions (...) below `longest`.

        Raises:
            DataError: `longest` exceeds the number of learned positions.
        """
        limit = self.table.num_embeddings
        if longest > limit:
            raise DataError(
                f"a sequence of {longest} tokens is longer than the model's {limit} learned "
                "positions; shorten or split it, or train with a larger --max-positions"
            )
        output: Tensor = self.table(positions)
        return output


def sinusoids(num_positions: int, model_size: int) -> Tensor:
    """Compute position encodings (num_positions, D) in float32. Source: paper, section 3.5."""
    exponents = torch.arange(0, model_size, 2, dtype=torch.float64) / model_size
    angles = torch.arange(num_positions, dtype=torch.float64)[:, None] / WAVELENGTH_BASE**exponents
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


def token_embedding(vocabulary_size: int, model_size: int) -> nn.Embedding:
    """Return an embedding drawn from N(0, 1/D); scaled by sqrt(D), its variance is 1."""
    embedding = nn.Embedding(vocabulary_size, model_size)
    nn.init.normal_(embedding.weight, std=model_size**-0.5)
    return embedding
