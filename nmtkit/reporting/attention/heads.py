"""What a head does, in four numbers."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadSummary:
    """Means over the tokens that attend.

    A token's own place is where it stands itself or, in a sequence of another length, what stands
    as far along.

    Attributes:
        entropy: of the weights, in bits: 0 where all goes to one token.
        distance: in tokens, from the own place to what is attended to.
        diagonal: the share that goes to the own place.
        symbol: the share that goes to the end symbol, or to the begin symbol in the decoder.
    """

    entropy: float
    distance: float
    diagonal: float
    symbol: float


def summarise(weights: Tensor, symbol: int) -> list[list[HeadSummary]]:
    """Summarise the heads of each layer.

    Args:
        weights: (L, H, T, S).
        symbol: the column of the end symbol, or of the begin symbol.
    """
    num_rows, num_columns = weights.shape[2:]
    own = torch.arange(num_rows) * (num_columns - 1) / max(1, num_rows - 1)  # (T,)
    distances = (torch.arange(num_columns) - own[:, None]).abs()  # (T, S)
    diagonal = torch.nn.functional.one_hot(own.round().long(), num_columns)
    numbers = torch.stack(
        [
            torch.special.entr(weights).sum(-1) / math.log(2),
            (weights * distances).sum(-1),
            (weights * diagonal).sum(-1),
            weights[..., symbol],
        ],
        dim=-1,
    )  # (L, H, T, 4)
    return [[HeadSummary(*head) for head in layer] for layer in numbers.mean(2).tolist()]
