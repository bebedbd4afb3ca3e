"""Forced decoding: the probability of given translations, and attention on request.

One pass over source and target ids, as in training. The log-probabilities equal those that a search
reports for the same ids, of a model or an ensemble.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.config.setting import InferenceConfig
from nmtkit.errors import DamagedError
from nmtkit.model.attention import recorded_weights
from nmtkit.model.cost import chunk_size
from nmtkit.model.transformer import Transformer
from nmtkit.packed import batches_by_length, pack_sequences
from nmtkit.symbols import BOS_ID

Ids = Sequence[int]
OnBatch = Callable[[int, int], None]

BATCH_TOKENS = {"cpu": 4096, "cuda": 32_768}
"""Limit of a batch if --max-tokens is 0, by device type."""


@dataclass(frozen=True)
class ForcedScore:
    """Log-probabilities of the tokens of a target given its source.

    Attributes:
        token_log_probs: natural log-probability of each target token, given those before it.
        attention: (T, S) float32 on the CPU: cross-attention of one layer, a row per target
            token, averaged over heads, so that rows sum to 1; None if not requested.
    """

    token_log_probs: tuple[float, ...]
    attention: Tensor | None

    @property
    def log_prob(self) -> float:
        """The natural log-probability of the target, its end symbol included."""
        return math.fsum(self.token_log_probs)


@torch.inference_mode()
def score_pairs(
    model: Transformer,
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    attention_layer: int | None,
    on_batch: OnBatch | None = None,
) -> list[ForcedScore]:
    """Score given targets, in batches of pairs of similar length.

    Args:
        model: in evaluation mode.
        pairs: source and target ids, each with its end symbol.
        max_tokens: largest number of source tokens, and of target tokens, per batch, padding
            counted.
        attention_layer: decoder layer, from 0, whose cross-attention to return (see
            `nmtkit.decoding.alignment.aligning_layer`); None = no attention.
        on_batch: called after each batch with its numbers of pairs and target tokens.

    Returns:
        one score per pair, in order; the other pairs do not change it.

    Raises:
        DamagedError: the model's logits are not numbers.
        DataError: a sequence is longer than the model's learned positions.
    """
    assert not model.training, "scoring needs the model in evaluation mode"
    scores: dict[int, ForcedScore] = {}
    lengths = [max(len(source), len(target)) for source, target in pairs]
    for batch in batches_by_length(lengths, max_tokens, max_tokens):
        found = _score_batch(model, [pairs[index] for index in batch], attention_layer)
        scores.update(zip(batch, found, strict=True))
        if on_batch:
            on_batch(len(batch), sum(len(pairs[index][1]) for index in batch))
    return [scores[index] for index in range(len(pairs))]


def score_by_ensemble(
    models: Sequence[Transformer],
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    attention_layers: Sequence[int | None],
    on_batch: OnBatch | None = None,
) -> list[ForcedScore]:
    """Score given targets by one or more models; probabilities and attention are their means.

    Args:
        models: see `score_pairs`.
        pairs: see `score_pairs`.
        max_tokens: see `score_pairs`.
        attention_layers: see `score_pairs`; one per model.
        on_batch: see `score_pairs`; called for the last model.

    Raises:
        DamagedError, DataError: see `score_pairs`.
    """
    scores_by_model = [
        score_pairs(model, pairs, max_tokens, layer, on_batch if number == len(models) else None)
        for number, (model, layer) in enumerate(zip(models, attention_layers, strict=True), 1)
    ]
    return [_mean(scores) for scores in zip(*scores_by_model, strict=True)]


def max_tokens_of(config: InferenceConfig, device: torch.device) -> int:
    """Return the largest number of tokens per batch on a device."""
    return config.max_tokens or BATCH_TOKENS[device.type]


def token_log_probs(model: Transformer, hidden: Tensor, targets: Tensor) -> Tensor:
    """Compute the log-probability of each target, a natural logarithm, from its hidden vector.

    It goes chunk by chunk: the logits of all tokens would take most of the memory.

    Args:
        model: projects hidden vectors to logits.
        hidden: (Y, D) from `Transformer.decode`.
        targets: (Y,) int64 ids.

    Returns:
        (Y,) float32, or float64 if the hidden vectors are.
    """
    wide = torch.promote_types(hidden.dtype, torch.float32)
    chunk = chunk_size(model.output_weight.shape[0], hidden.device.type)
    parts = [
        model.logits(vectors).log_softmax(-1, dtype=wide).gather(1, ids[:, None]).squeeze(1)
        for vectors, ids in zip(hidden.split(chunk), targets.split(chunk), strict=True)
    ]
    return torch.cat(parts)


def _mean(scores: Sequence[ForcedScore]) -> ForcedScore:
    log_probs = torch.tensor([score.token_log_probs for score in scores], dtype=torch.float64)
    token_log_probs = (log_probs.logsumexp(0) - math.log(len(scores))).tolist()
    matrices = [score.attention for score in scores if score.attention is not None]
    return ForcedScore(tuple(token_log_probs), torch.stack(matrices).mean(0) if matrices else None)


def _score_batch(
    model: Transformer, pairs: Sequence[tuple[Ids, Ids]], attention_layer: int | None
) -> list[ForcedScore]:
    """Score pairs in one batch."""
    device = model.output_weight.device
    sources, targets = zip(*pairs, strict=True)
    memory = model.encode(pack_sequences(sources, device))
    inputs = pack_sequences([(BOS_ID, *target[:-1]) for target in targets], device)
    target_ids = pack_sequences(targets, device).values
    attention: list[Tensor | None] = [None] * len(pairs)
    if attention_layer is None:
        hidden = model.decode(inputs, memory)
    else:
        layer = model.decoder[attention_layer].memory_attention
        with recorded_weights(layer) as recorded:
            hidden = model.decode(inputs, memory)
        block = recorded[0].mean(1, dtype=torch.float32).cpu()  # (B, H, T, S) -> (B, T, S)
        attention = [
            weights[: len(target), : len(source)].clone()
            for weights, source, target in zip(block, sources, targets, strict=True)
        ]
    log_probs = token_log_probs(model, hidden, target_ids).cpu()
    if not log_probs.isfinite().all():
        raise DamagedError(
            "the model gives no probabilities (its logits are not numbers), so its weights "
            "are damaged; score with another checkpoint"
        )
    parts = log_probs.split([len(target) for target in targets])
    return [
        ForcedScore(tuple(part.tolist()), weights)
        for part, weights in zip(parts, attention, strict=True)
    ]
