"""Forced decoding: the probability of given translations, and attention on request.

One pass over source and target ids, as in training. The log-probabilities equal those that a search
reports for the same ids, of a model or an ensemble.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.config.setting import InferenceConfig
from nmtkit.config.training import AligningAttention
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
        attention: (T, S) float32 on the CPU: the cross-attention that was requested, a row per
            target token, which sums to 1; None if not requested.
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
    attention: AligningAttention | None,
    on_batch: OnBatch | None = None,
) -> list[ForcedScore]:
    """Score given targets, in batches of pairs of similar length.

    Args:
        model: in evaluation mode.
        pairs: source and target ids, each with its end symbol.
        max_tokens: largest number of source tokens, and of target tokens, per batch, padding
            counted.
        attention: which cross-attention to return; None = none.
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
        found = _score_batch(model, [pairs[index] for index in batch], attention)
        scores.update(zip(batch, found, strict=True))
        if on_batch:
            on_batch(len(batch), sum(len(pairs[index][1]) for index in batch))
    return [scores[index] for index in range(len(pairs))]


def score_by_ensemble(
    models: Sequence[Transformer],
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    attentions: Sequence[AligningAttention | None],
    on_batch: OnBatch | None = None,
) -> list[ForcedScore]:
    """Score given targets by one or more models; probabilities and attention are their means.

    Args:
        models: see `score_pairs`.
        pairs: see `score_pairs`.
        max_tokens: see `score_pairs`.
        attentions: see `score_pairs`; one per model.
        on_batch: see `score_pairs`; called for the last model.

    Raises:
        DamagedError, DataError: see `score_pairs`.
    """
    scores_by_model = [
        score_pairs(model, pairs, max_tokens, one, on_batch if number == len(models) else None)
        for number, (model, one) in enumerate(zip(models, attentions, strict=True), 1)
    ]
    return [_mean(scores) for scores in zip(*scores_by_model, strict=True)]


@torch.inference_mode()
def attention_of_pairs(
    model: Transformer, pairs: Sequence[tuple[Ids, Ids]], attentions: Sequence[AligningAttention]
) -> list[list[Tensor]]:
    """Return cross-attention of a batch of pairs, without computing probabilities.

    Args:
        model: in evaluation mode.
        pairs: source and target ids, each with its end symbol.
        attentions: which ones, at least one.

    Returns:
        For each attention and pair, (T, S) as in `ForcedScore`.

    Raises:
        DamagedError: a weight is not a finite number.
        DataError: a sequence is longer than the model's learned positions.
    """
    assert not model.training, "attention weights need the model in evaluation mode"
    device = model.output_weight.device
    sources, targets = zip(*pairs, strict=True)
    layers = {one.layer: model.decoder[one.layer].memory_attention for one in attentions}
    with ExitStack() as stack:
        recorded = {
            number: stack.enter_context(recorded_weights(one)) for number, one in layers.items()
        }
        memory = model.encode(pack_sequences(sources, device))
        inputs = pack_sequences([(BOS_ID, *target[:-1]) for target in targets], device)
        is_causal = not any(one.sees_target for one in attentions)
        model.decode(inputs, memory, max(layers) + 1, is_causal=is_causal)
    found = [_of_pairs(recorded[one.layer][0], one, pairs) for one in attentions]
    if not all(weights.isfinite().all() for of_pairs in found for weights in of_pairs):
        raise not_numbers()
    return found


def not_numbers() -> DamagedError:
    """Return the error for attention weights that are not finite."""
    return DamagedError(
        "the model's attention weights are not numbers, so the model is damaged; use another "
        "checkpoint"
    )


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
    model: Transformer, pairs: Sequence[tuple[Ids, Ids]], attention: AligningAttention | None
) -> list[ForcedScore]:
    """Score pairs in one batch."""
    device = model.output_weight.device
    sources, targets = zip(*pairs, strict=True)
    memory = model.encode(pack_sequences(sources, device))
    inputs = pack_sequences([(BOS_ID, *target[:-1]) for target in targets], device)
    target_ids = pack_sequences(targets, device).values
    matrices: list[Tensor | None] = [None] * len(pairs)
    if attention is None:
        hidden = model.decode(inputs, memory)
    else:
        with recorded_weights(model.decoder[attention.layer].memory_attention) as recorded:
            hidden = model.decode(inputs, memory)
        matrices = [*_of_pairs(recorded[0], attention, pairs)]
    log_probs = token_log_probs(model, hidden, target_ids).cpu()
    if not log_probs.isfinite().all():
        raise DamagedError(
            "the model gives no probabilities (its logits are not numbers), so its weights "
            "are damaged; score with another checkpoint"
        )
    parts = log_probs.split([len(target) for target in targets])
    return [
        ForcedScore(tuple(part.tolist()), weights)
        for part, weights in zip(parts, matrices, strict=True)
    ]


def _of_pairs(
    weights: Tensor, attention: AligningAttention, pairs: Sequence[tuple[Ids, Ids]]
) -> list[Tensor]:
    """Return the weights (T, S) of each pair of a batch, whose layer has weights (B, H, T, S).

    The end symbol, which no step reads, has the row of the step that predicts it.
    """
    head = attention.head
    block = weights.mean(1, dtype=torch.float32) if head is None else weights[:, head].float()
    found = []
    for padded, (source, target) in zip(block.cpu(), pairs, strict=True):
        rows = padded[: len(target), : len(source)]
        found.append(torch.cat([rows[1:], rows[-1:]]) if attention.is_shifted else rows.clone())
    return found
