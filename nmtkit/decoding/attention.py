"""Every attention weight of one sentence, or of a pair: all layers, all heads, all three kinds.

Tensors only; `nmtkit.reporting.attention` makes tables and pictures of them.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.decoding.forced import Ids
from nmtkit.errors import DamagedError
from nmtkit.model.attention import MemoryAttention, SelfAttention, recorded_weights
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID


@dataclass(frozen=True)
class AllWeights:
    """What attends to what, as float32 on the CPU; rows sum to 1.

    Attributes:
        encoder: (L, H, S, S) each source token to each source token.
        decoder: (L, H, T, T) each token that the decoder reads, the first of which is the begin
            symbol, to those before it and itself; None without a target.
        memory: (L, H, T, S) each source token's weight where each target token was predicted;
            None without a target.
    """

    encoder: Tensor
    decoder: Tensor | None
    memory: Tensor | None


@torch.inference_mode()
def all_weights(model: Transformer, source: Ids, target: Ids | None) -> AllWeights:
    """Run a model over a sentence, or a pair, and return every attention weight.

    Args:
        model: in evaluation mode.
        source, target: ids with their end symbols.

    Raises:
        DamagedError: the model computes no numbers.
        DataError: a sequence is longer than the model's learned positions.
    """
    assert not model.training, "what is looked at is what the model does after training"
    device = model.output_weight.device
    with ExitStack() as watched:

        def watch(attentions: Sequence[SelfAttention | MemoryAttention]) -> list[list[Tensor]]:
            return [watched.enter_context(recorded_weights(one)) for one in attentions]

        encoder = watch([layer.self_attention for layer in model.encoder])
        decoder = watch([layer.self_attention for layer in model.decoder])
        memory = watch([layer.memory_attention for layer in model.decoder])
        encoded = model.encode(pack_sequences([source], device))
        if target is None:
            return AllWeights(_stacked(encoder), None, None)
        model.decode(pack_sequences([(BOS_ID, *target[:-1])], device), encoded)
    return AllWeights(_stacked(encoder), _stacked(decoder), _stacked(memory))


def _stacked(recorded: Sequence[Sequence[Tensor]]) -> Tensor:
    """Stack what the layers have recorded in one pass over one sentence: (L, H, T, S)."""
    weights = torch.cat([of_layer for (of_layer,) in recorded]).float().cpu()
    if not weights.isfinite().all():
        raise DamagedError(
            "the model's attention weights are not numbers, so the model is damaged; look at "
            "another checkpoint"
        )
    return weights
