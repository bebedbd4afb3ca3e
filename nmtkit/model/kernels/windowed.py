"""Self-attention restricted to a neighbourhood, in time and memory linear in the tokens.

Source: paper, section 4: "restricted to considering only a neighborhood of size r". The packed
sequences are cut into blocks without regard to where one ends and the next begins. The queries of a
block attend to the keys of the block and to so many around it as the neighbourhood reaches; a mask
hides what is out of reach or belongs to another sequence. Nothing is padded but the last block.

On a GPU, flash attention does the same, where it can.

Shapes: X packed tokens; H heads; K, U key and value size of a head; N blocks; C queries of a block;
R keys that a block can reach.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.kernels import flash
from nmtkit.model.kernels.padded import attend
from nmtkit.packed import Layout

LEAST_BLOCK = 64
"""Queries of a block, at least; the products of smaller blocks are slower than they are small."""


@dataclass(frozen=True)
class Neighbourhood:
    """How many positions before and after its own a position attends to."""

    before: int
    after: int


def neighbourhood(window: int, is_causal: bool, longest: int) -> Neighbourhood | None:
    """Return what a position attends to, or None where that is all of its sequence.

    Args:
        window: r, the size of the neighbourhood: r // 2 positions on either side, or, causal, the
            last r positions, the own one counted; 0 = all.
        is_causal: a position sees itself and what stands before it only.
        longest: tokens of the longest sequence.
    """
    near = Neighbourhood(window - 1, 0) if is_causal else Neighbourhood(window // 2, window // 2)
    return None if window == 0 or near.before >= longest - 1 else near


def attend_near(
    query: Tensor, key: Tensor, value: Tensor, layout: Layout, near: Neighbourhood, dropout: float
) -> Tensor:
    """Attend from each token to its neighbours in the same sequence.

    Args:
        query, key: (X, H, K).
        value: (X, H, U).
        layout: where each sequence begins and ends.
        near: who the neighbours are.
        dropout: of the attention weights.

    Returns:
        (X, H, U).
    """
    if flash.takes(query.device, query.dtype, (query.shape[-1], value.shape[-1]), dropout):
        reach = (near.before, near.after)
        return flash.attend(query, key, value, (layout, layout), reach)
    # Half as many queries as neighbours: of the products, two thirds are of what is in reach.
    size = max(LEAST_BLOCK, (near.before + near.after) // 2)
    return attend_in_blocks(query, key, value, layout, near, dropout, size)


def attend_in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: Layout,
    near: Neighbourhood,
    dropout: float,
    size: int,
) -> Tensor:
    """Do what `attend_near` does by blocks of `size` queries; all sizes give the same."""
    num_tokens = query.shape[0]
    num_blocks = -(-num_tokens // size)
    padding = num_blocks * size - num_tokens
    queries = F.pad(query, (0, 0, 0, 0, 0, padding)).unflatten(0, (num_blocks, size))
    # What consecutive blocks reach overlaps, and is stored once: (N, H, K or U, R) are views.
    keys, values = (
        F.pad(side, (0, 0, 0, 0, near.before, padding + near.after)).unfold(
            0, near.before + size + near.after, size
        )
        for side in (key, value)
    )
    context = attend(
        queries.transpose(1, 2),
        keys.mT,
        values.mT,
        _block_mask(layout, near, size, padding),
        is_causal=False,
        dropout=dropout,
    )  # (N, H, C, U)
    return context.transpose(1, 2).flatten(0, 1)[:num_tokens]


def _block_mask(layout: Layout, near: Neighbourhood, size: int, padding: int) -> Tensor:
    """(N, 1, C, R) True at neighbours; padding sees padding, as a softmax over nothing is NaN."""
    reach = near.before + size + near.after
    device = layout.positions.device
    starts = torch.arange(layout.num_tokens, device=device) - layout.positions
    sequences = F.pad(starts, (near.before, padding + near.after), value=-1).unfold(0, reach, size)
    own = sequences[:, near.before : near.before + size]
    places = torch.arange(reach, device=device) - near.before
    distance = places - torch.arange(size, device=device)[:, None]
    is_near = (distance >= -near.before) & (distance <= near.after)
    return (is_near & (own[:, :, None] == sequences[:, None, :]))[:, None]
