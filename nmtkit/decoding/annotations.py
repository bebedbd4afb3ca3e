"""Annotations of translations: probabilities of tokens, attention, alignments."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmtkit.decoding.attention import aligning_layer, links, word_attention
from nmtkit.decoding.forced import ForcedScore, Ids, score_by_ensemble
from nmtkit.model.transformer import Transformer
from nmtkit.text.codec import TextCodec

WordOf = Callable[[int, int], int]
"""Index of a part of a line, and of a source word in it -> index of the word in the line."""


@dataclass(frozen=True)
class Annotations:
    """Annotations of a translation, computed on request.

    Attributes:
        source_tokens: tokens of the source, the end symbol last.
        token_log_probs: natural log-probability of each token of the translation.
        alignment: (source word, target word) pairs, from 0.
        num_target_words: number of words of the translation.
        attention: a row per token of the translation, a column per token of `source_tokens`;
            float32, an eighth of the memory of Python floats.
    """

    source_tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    alignment: tuple[tuple[int, int], ...] = ()
    num_target_words: int = 0
    attention: "tuple[array[float], ...]" = ()


def annotate(
    models: Sequence[Transformer],
    codec: TextCodec,
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    has_attention: bool,
) -> list[Annotations]:
    """Compute annotations by forced decoding, which is cheap compared with the search.

    Args:
        models: the model or ensemble that translated; an ensemble averages probabilities and
            attention.
        codec: the codec of the models.
        pairs: ids of source and translation, end symbols included.
        max_tokens: largest number of source tokens, and of target tokens, per batch.
        has_attention: compute attention and alignments, too.

    Returns:
        the annotations of each pair, in order.
    """
    layers = [aligning_layer(len(model.decoder)) if has_attention else None for model in models]
    scores = score_by_ensemble(models, pairs, max_tokens, layers)
    return [_annotations(codec, pair, score) for pair, score in zip(pairs, scores, strict=True)]


def join_annotations(parts: Sequence[Annotations], word_of: WordOf) -> Annotations:
    """Concatenate the annotations of a line's parts; a part has no attention to the others.

    Args:
        parts: the annotations of each part.
        word_of: index of a part, and of a source word in it -> index of the word in the line.
    """
    alignment: list[tuple[int, int]] = []
    attention: list[array[float]] = []
    target_words = columns = 0
    num_columns = sum(len(part.source_tokens) for part in parts)
    for index, part in enumerate(parts):
        alignment += [(word_of(index, s), t + target_words) for s, t in part.alignment]
        num_after = num_columns - columns - len(part.source_tokens)
        attention += [
            array("f", [0.0] * columns) + row + array("f", [0.0] * num_after)
            for row in part.attention
        ]
        target_words += part.num_target_words
        columns += len(part.source_tokens)
    return Annotations(
        source_tokens=tuple(token for part in parts for token in part.source_tokens),
        token_log_probs=tuple(value for part in parts for value in part.token_log_probs),
        alignment=tuple(alignment),
        num_target_words=target_words,
        attention=tuple(attention),
    )


def _annotations(codec: TextCodec, pair: tuple[Ids, Ids], score: ForcedScore) -> Annotations:
    source, target = pair
    words = codec.source.word_indices(source[:-1]), codec.target.word_indices(target[:-1])
    attention = score.attention
    return Annotations(
        source_tokens=tuple(map(codec.source.piece, source)),
        token_log_probs=score.token_log_probs,
        alignment=() if attention is None else tuple(links(word_attention(attention, *words))),
        num_target_words=max(words[1], default=-1) + 1,
        attention=() if attention is None else tuple(array("f", row) for row in attention.tolist()),
    )
