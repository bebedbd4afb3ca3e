"""Attention weights of a model for sentences and pairs, and alignments computed from them.

This module returns tensors; `nmtkit.reporting.attention` makes tables and pictures of them. An
alignment links each target token, or word, to a source one. It is computed from the attention
(T, S) of a target to its source, the end symbols last, which `nmtkit.decoding.forced` returns.
A word (nmtkit/text/words.py) may consist of several tokens, and a token of several words.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.decoding.forced import Ids, attention_of_pairs, not_numbers
from nmtkit.model.attention import CrossAttention, SelfAttention, recorded_weights
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of all layers and heads, float32 on the CPU; rows sum to 1.

    Attributes:
        encoder: (L, H, S, S) self-attention of the source.
        decoder: (L, H, T, T) self-attention of the decoder's input, which begins with the begin
            symbol; None without a target.
        memory: (L, H, T, S) cross-attention, a row per predicted target token; None without a
            target. A head that aligns given the whole target has its weights of that pass.
    """

    encoder: Tensor
    decoder: Tensor | None
    memory: Tensor | None


@torch.inference_mode()
def all_attention_weights(model: Transformer, source: Ids, target: Ids | None) -> AttentionWeights:
    """Run a model on a sentence or a pair, and return all attention weights.

    Args:
        model: in evaluation mode.
        source, target: ids with their end symbols.

    Raises:
        DamagedError: a weight is not a finite number.
        DataError: a sequence is longer than the model's learned positions.
    """
    assert not model.training, "attention weights need the model in evaluation mode"
    device = model.output_weight.device
    with ExitStack() as stack:

        def record(attentions: Sequence[SelfAttention | CrossAttention]) -> list[list[Tensor]]:
            return [stack.enter_context(recorded_weights(one)) for one in attentions]

        encoder = record([layer.self_attention for layer in model.encoder])
        decoder = record([layer.self_attention for layer in model.decoder])
        memory = record([layer.memory_attention for layer in model.decoder])
        encoded = model.encode(pack_sequences([source], device))
        if target is None:
            return AttentionWeights(_stacked(encoder), None, None)
        model.decode(pack_sequences([(BOS_ID, *target[:-1])], device), encoded)
    of_memory, read = _stacked(memory), model.aligning_attention
    if read.sees_target:
        ((of_memory[read.layer, read.head],),) = attention_of_pairs(
            model, [(source, target)], [read]
        )
    return AttentionWeights(_stacked(encoder), _stacked(decoder), of_memory)


def links(attention: Tensor, min_weight: float) -> list[tuple[int, int]]:
    """Align each target to the source to which it attends most, end symbols excluded.

    Args:
        attention: (T, S) between tokens or words, the end symbols last.
        min_weight: smallest attention of a link; a target without as much has none.

    Returns:
        (source, target) indices from 0, at most one pair per target, in order; none if the source
        is only the end symbol.
    """
    inner = attention[:-1, :-1]
    if inner.shape[1] == 0:
        return []
    weights, sources = inner.max(1)
    found = enumerate(zip(weights.tolist(), sources.tolist(), strict=True))
    return [(source, target) for target, (weight, source) in found if weight >= min_weight]


def word_attention(
    attention: Tensor, source_words: Sequence[range], target_words: Sequence[range]
) -> Tensor:
    """Pool attention between tokens into attention between words; the end symbol is a word.

    Args:
        attention: (T, S) between tokens.
        source_words, target_words: the words, from 0, of each token except the end symbol, as
            `Vocabulary.word_ranges` returns them.

    Returns:
        (target words + 1, source words + 1).
    """
    return pool_words(attention, with_end(target_words), with_end(source_words))


def pool_words(
    weights: Tensor, row_words: Sequence[range], column_words: Sequence[range]
) -> Tensor:
    """Pool attention between tokens into attention between words; rows still sum to 1.

    The columns of a word's tokens are summed, their rows averaged. A token of several words counts
    in equal parts for each. The row of a word without tokens is 0.

    Args:
        weights: (..., T, S) between tokens.
        row_words, column_words: the words, from 0, of each token.

    Returns:
        (..., words of the rows, words of the columns).
    """
    rows, columns = (_membership(words).to(weights) for words in (row_words, column_words))
    sizes = rows.sum(0).where(rows.any(0), 1)
    return (rows.T @ weights @ columns) / sizes[:, None]


def with_end(words: Sequence[range]) -> list[range]:
    """Append the end symbol, as one more word, to the words of tokens."""
    end = _num_words(words)
    return [*words, range(end, end + 1)]


def _stacked(recorded: Sequence[Sequence[Tensor]]) -> Tensor:
    """Stack the weights that each layer recorded for one sentence: (L, H, T, S)."""
    weights = torch.cat([of_layer for (of_layer,) in recorded]).float().cpu()
    if not weights.isfinite().all():
        raise not_numbers()
    return weights


def _membership(words: Sequence[range]) -> Tensor:
    """Return the matrix (tokens, words) of the part of each token in each of its words."""
    parts = torch.zeros(len(words), _num_words(words))
    tokens = [token for token, own in enumerate(words) for _ in own]
    columns = [word for own in words for word in own]
    parts[tokens, columns] = torch.tensor([1 / len(own) for own in words for _ in own])
    return parts


def _num_words(words: Sequence[range]) -> int:
    """Return the number of words of tokens, given in order."""
    return words[-1].stop if words else 0
