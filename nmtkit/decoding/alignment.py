"""Alignments read out of attention: which source token, or word, a target one goes back to.

All matrices are attention of a target to its source, (T, S), the end symbols last: what
`nmtkit.decoding.forced` gives. Tokens are what the model reads and writes; words are what stands
between spaces in text, and may consist of several tokens.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


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


def _membership(words: Sequence[int]) -> Tensor:
    """Return (tokens, words) int64 with 1 where a token is part of a word."""
    return torch.nn.functional.one_hot(torch.tensor(words))
