"""Attention of a model: every weight of a sentence or a pair; alignments read out of such weights.

Tensors only; `nmtkit.reporting.attention` makes tables and pictures of them. An alignment links
each target token, or word, to a source one. It is read out of attention of a target to its source,
(T, S), the end symbols last, as `nmtkit.decoding.forced` returns it. Tokens are what the model
reads and writes; words stand between spaces in text, and may consist of several tokens.
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


def aligning_layer(num_decoder_layers: int) -> int:
    """Return the decoder layer, from 0, whose attention aligns best: the last but one.

    Source: Garg et al. 2019 (arXiv 1909.02074), who find the fifth of six layers to align best.
    """
    return max(0, num_decoder_layers - 2)


def links(attention: Tensor) -> list[tuple[int, int]]:
    """Align each target to the source to which it attends most; end symbols take no part.

    Args:
        attention: (T, S) between tokens or words, the end symbols last.

    Returns:
        pairs of source and target place, from 0, one for each target in order; none where there
        is no source but the end symbol.
    """
    inner = attention[:-1, :-1]
    if inner.shape[1] == 0:
        return []
    return [(source, target) for target, source in enumerate(inner.argmax(1).tolist())]


def between_words(
    attention: Tensor, source_words: Sequence[int], target_words: Sequence[int]
) -> Tensor:
    """Turn attention between tokens into attention between words, the end symbols as one each.

    Args:
        attention: (T, S) between tokens.
        source_words, target_words: the word, from 0, that each token but the end symbol is part
            of, as `Vocabulary.words` tells.

    Returns:
        (words of the target and 1, words of the source and 1).
    """
    return joined(attention, with_end(target_words), with_end(source_words))


def joined(weights: Tensor, row_words: Sequence[int], column_words: Sequence[int]) -> Tensor:
    """Turn attention between tokens into attention between words.

    A word gets the sum of what its tokens get, and gives the mean of what its tokens give, so rows
    still sum to 1.

    Args:
        weights: (..., T, S) between tokens.
        row_words, column_words: the word, from 0, that each token is part of.

    Returns:
        (..., words of the rows, words of the columns).
    """
    rows, columns = (_membership(words).to(weights) for words in (row_words, column_words))
    return (rows.T @ weights @ columns) / rows.sum(0)[:, None]


def with_end(words: Sequence[int]) -> list[int]:
    """Return the words of tokens and of the end symbol behind them."""
    return [*words, max(words, default=-1) + 1]


def pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """Write links as `0-0 1-2`: source-target, from 0, in the order of the target."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def _stacked(recorded: Sequence[Sequence[Tensor]]) -> Tensor:
    """Stack what the layers have recorded in one pass over one sentence: (L, H, T, S)."""
    weights = torch.cat([of_layer for (of_layer,) in recorded]).float().cpu()
    if not weights.isfinite().all():
        raise DamagedError(
            "the model's attention weights are not numbers, so the model is damaged; look at "
            "another checkpoint"
        )
    return weights


def _membership(words: Sequence[int]) -> Tensor:
    """Return (tokens, words) int64 with 1 where a token is part of a word."""
    return torch.nn.functional.one_hot(torch.tensor(words))
