"""Self-attention restricted to a neighbourhood, in time and memory linear in the tokens.

Source: paper, section 4: "restricted to considering only a neighborhood of size r". The packed
sequences are split into blocks without regard to where one ends and the next begins. The queries of
a block attend to its keys and to those around it that are within reach. A mask hides keys that are
out of a query's reach or belong to another sequence. Only the last block is padded.

Shapes: X packed tokens; H heads; K, U key and value size of a head; N blocks; C queries of a block;
R keys that a block can reach.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.kernels import padded
from nmtkit.model.kernels.reach import Reach
from nmtkit.packed import Layout

LEAST_BLOCK = 64
"""Queries of a block, at least; smaller products take hardly less time."""


def attend(
    query: Tensor, key: Tensor, value: Tensor, layout: Layout, reach: Reach, dropout: float
) -> Tensor:
    """Attend from each token to its neighbours in the same sequence.

    Args:
        query, key: (X, H, K).
        value: (X, H, U).
        layout: where each sequence begins and ends.
        reach: the neighbours, on both sides limited.
        dropout: of the attention weights.

    Returns:
        (X, H, U).
    """
    # Half as many queries as neighbours: two thirds of the products are within reach.
    size = max(LEAST_BLOCK, (reach.before + reach.after) // 2)
    return attend_in_blocks(query, key, value, layout, reach, dropout, size)


def attend_in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: Layout,
    reach: Reach,
    dropout: float,
    size: int,
) -> Tensor:
    """Do what `attend` does by blocks of `size` queries; all sizes give the same."""
    num_tokens = query.shape[0]
    num_blocks = -(-num_tokens // size)
    padding = num_blocks * size - num_tokens
    queries = F.pad(query, (0, 0, 0, 0, 0, padding)).unflatten(0, (num_blocks, size))
    # What consecutive blocks reach overlaps, and is stored once: (N, H, K or U, R) are views.
    keys, values = (
        F.pad(side, (0, 0, 0, 0, reach.before, padding + reach.after)).unfold(
            0, reach.before + size + reach.after, size
        )
        for side in (key, value)
    )
    context = padded.attend(
        queries.transpose(1, 2),
        keys.mT,
        values.mT,
        _block_mask(layout, reach, size, padding),
        is_causal=False,
        dropout=dropout,
    )  # (N, H, C, U)
    return context.transpose(1, 2).flatten(0, 1)[:num_tokens]


def _block_mask(layout: Layout, reach: Reach, size: int, padding: int) -> Tensor:
    """(N, 1, C, R) True at neighbours; padding sees padding, as a softmax over nothing is NaN."""
    span = reach.before + size + reach.after
    device = layout.positions.device
    starts = torch.arange(layout.num_tokens, device=device) - layout.positions
    sequences = F.pad(starts, (reach.before, padding + reach.after), value=-1).unfold(0, span, size)
    own = sequences[:, reach.before : reach.before + size]
    places = torch.arange(span, device=device) - reach.before
    distance = places - torch.arange(size, device=device)[:, None]
    is_near = (distance >= -reach.before) & (distance <= reach.after)
    return (is_near & (own[:, :, None] == sequences[:, None, :]))[:, None]
