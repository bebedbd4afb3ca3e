"""What a model sees in translations that it has found: tokens, their probabilities, attention."""

import math
from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from nmtkit.decoding.alignment import aligning_layer, between_words, links
from nmtkit.decoding.forced import ForcedScore, Ids, score_pairs
from nmtkit.decoding.translation import Details
from nmtkit.model.transformer import Transformer
from nmtkit.text.codec import TextCodec


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
