"""Annotations of translations: tokens, their probabilities, attention, alignments."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.decoding.attention import aligning_layer, between_words, links
from nmtkit.decoding.forced import ForcedScore, Ids, score_pairs
from nmtkit.model.transformer import Transformer
from nmtkit.text.codec import TextCodec


@dataclass(frozen=True)
class Details:
    """Annotations of a translation, computed on request.

    Attributes:
        source_tokens, tokens: of source and translation as the model sees them, end symbols last.
        token_log_probs: of each of `tokens`.
        alignment: (source word, target word) pairs, from 0.
        num_words: how many of both there are.
        attention: a row a token of `tokens`, a column one of `source_tokens`; float32, which takes
            an eighth of what Python's numbers do.
    """

    source_tokens: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    alignment: tuple[tuple[int, int], ...] = ()
    num_words: tuple[int, int] = (0, 0)
    attention: "tuple[array[float], ...]" = ()


def look_at(
    models: Sequence[Transformer],
    codec: TextCodec,
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    has_attention: bool,
) -> list[Details]:
    """Read translations once more, each all at once, which costs little beside the search.

    Args:
        models: what translated; of an ensemble, probabilities and attention are averaged.
        codec: whose tokens these are.
        pairs: ids of source and translation, end symbols included.
        max_tokens: source tokens, and target tokens, that are read together.
        has_attention: attention and alignments are wanted as well.
    """
    of_models = [
        score_pairs(
            model, pairs, max_tokens, aligning_layer(len(model.decoder)) if has_attention else None
        )
        for model in models
    ]
    return [
        _details(codec, pair, scores)
        for pair, scores in zip(pairs, zip(*of_models, strict=True), strict=True)
    ]


def join_details(parts: Sequence[Details]) -> Details:
    """Lay details end to end; a piece attends to its own source alone."""
    alignment: list[tuple[int, int]] = []
    attention: list[array[float]] = []
    source_words = target_words = columns = 0
    num_columns = sum(len(part.source_tokens) for part in parts)
    for part in parts:
        alignment += [(s + source_words, t + target_words) for s, t in part.alignment]
        behind = num_columns - columns - len(part.source_tokens)
        attention += [
            array("f", [0.0] * columns) + row + array("f", [0.0] * behind) for row in part.attention
        ]
        source_words, target_words = (
            source_words + part.num_words[0],
            target_words + part.num_words[1],
        )
        columns += len(part.source_tokens)
    return Details(
        source_tokens=tuple(token for part in parts for token in part.source_tokens),
        tokens=tuple(token for part in parts for token in part.tokens),
        token_log_probs=tuple(value for part in parts for value in part.token_log_probs),
        alignment=tuple(alignment),
        num_words=(source_words, target_words),
        attention=tuple(attention),
    )


def _details(codec: TextCodec, pair: tuple[Ids, Ids], scores: Sequence[ForcedScore]) -> Details:
    source, target = pair
    log_probs = torch.tensor([score.token_log_probs for score in scores], dtype=torch.float64)
    token_log_probs = (log_probs.logsumexp(0) - math.log(len(scores))).tolist()
    words = codec.source.words(source[:-1]), codec.target.words(target[:-1])
    attention = _mean_attention(scores)
    return Details(
        source_tokens=tuple(map(codec.source.piece, source)),
        tokens=tuple(map(codec.target.piece, target)),
        token_log_probs=tuple(token_log_probs),
        alignment=() if attention is None else tuple(links(between_words(attention, *words))),
        num_words=(max(words[0], default=-1) + 1, max(words[1], default=-1) + 1),
        attention=() if attention is None else tuple(array("f", row) for row in attention.tolist()),
    )


def _mean_attention(scores: Sequence[ForcedScore]) -> Tensor | None:
    matrices = [score.attention for score in scores if score.attention is not None]
    return torch.stack(matrices).mean(0) if matrices else None
