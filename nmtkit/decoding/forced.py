"""Forced decoding: the probability of given translations, and attention on request.

One pass over source and target ids, as in training. The log-probabilities equal those that a search
reports for the same ids, of a model or an ensemble.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from nmtkit.config.model import AligningAttention
from nmtkit.config.setting import InferenceConfig
from nmtkit.errors import DamagedError
from nmtkit.model.attention import recorded_weights
from nmtkit.model.cost import chunk_size
from nmtkit.model.transformer import Transformer
from nmtkit.packed import Packed, batches_by_length, pack_sequences, pack_vectors
from nmtkit.symbols import BOS_ID

Ids = Sequence[int]
OnBatch = Callable[[int, int], None]

BATCH_TOKENS = {"cpu": 4096, "cuda": 32_768}
"""Limit of a batch if --max-tokens is 0, by device type."""


TokenLogProbs = tuple[float, ...]
"""The natural log-probability of each token of a target, given those before it."""


@torch.inference_mode()
def score_pairs(
    model: Transformer,
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    on_batch: OnBatch | None = None,
) -> list[TokenLogProbs]:
    """Score given targets, in batches of pairs of similar length.

    Args:
        model: in evaluation mode.
        pairs: source and target ids, each with its end symbol.
        max_tokens: largest number of source tokens, and of target tokens, per batch, padding
            counted.
        on_batch: called after each batch with its numbers of pairs and target tokens.

    Returns:
        the scores of each pair, in order; the other pairs do not change them.

    Raises:
        DamagedError: the model's logits are not numbers.
        DataError: a sequence is longer than the model's learned positions.
    """
    assert not model.training, "scoring needs the model in evaluation mode"
    scores: dict[int, TokenLogProbs] = {}
    for batch in _batches(pairs, max_tokens):
        found = _score_batch(model, [pairs[index] for index in batch])
        scores.update(zip(batch, found, strict=True))
        if on_batch:
            on_batch(len(batch), sum(len(pairs[index][1]) for index in batch))
    return [scores[index] for index in range(len(pairs))]


def score_by_ensemble(
    models: Sequence[Transformer],
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    on_batch: OnBatch | None = None,
) -> list[TokenLogProbs]:
    """Score given targets by the mean probability of one or more models.

    Args:
        models: see `score_pairs`.
        pairs: see `score_pairs`.
        max_tokens: see `score_pairs`.
        on_batch: see `score_pairs`; called for the last model.

    Raises:
        DamagedError, DataError: see `score_pairs`.
    """
    scores_by_model = [
        score_pairs(model, pairs, max_tokens, on_batch if number == len(models) else None)
        for number, model in enumerate(models, 1)
    ]
    return [_mean(scores) for scores in zip(*scores_by_model, strict=True)]


def attention_by_ensemble(
    models: Sequence[Transformer],
    pairs: Sequence[tuple[Ids, Ids]],
    memories: Sequence[Sequence[Tensor]],
    max_tokens: int,
) -> list[Tensor]:
    """Return the mean over models of the attention from which each reads alignments.

    Args:
        models: see `score_pairs`.
        pairs: see `score_pairs`.
        memories: (S, D) of each source in each model.
        max_tokens: see `score_pairs`.

    Returns:
        (T, S) for each pair, as `attention_of_pairs`.

    Raises:
        DamagedError, DataError: see `attention_of_pairs`.
    """
    found: dict[int, Tensor] = {}
    for batch in _batches(pairs, max_tokens):
        own = [pairs[index] for index in batch]
        encoded = map(pack_vectors, zip(*(memories[index] for index in batch), strict=True))
        by_model = [
            attention_of_pairs(model, own, [model.aligning_attention], memory)[0]
            for model, memory in zip(models, encoded, strict=True)
        ]
        means = (torch.stack(one).mean(0) for one in zip(*by_model, strict=True))
        found.update(zip(batch, means, strict=True))
    return [found[index] for index in range(len(pairs))]


@torch.inference_mode()
def attention_of_pairs(
    model: Transformer,
    pairs: Sequence[tuple[Ids, Ids]],
    attentions: Sequence[AligningAttention],
    memory: Packed | None = None,
) -> list[list[Tensor]]:
    """Return cross-attention of a batch of pairs, without computing probabilities.

    Args:
        model: in evaluation mode.
        pairs: source and target ids, each with its end symbol.
        attentions: which ones, at least one.
        memory: (X, D) of the sources; None = encode them.

    Returns:
        For each attention and pair, (T, S) float32 on the CPU: a row per target token, which sums
        to 1.

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
        memory = memory or model.encode(pack_sequences(sources, device))
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


def _batches(pairs: Sequence[tuple[Ids, Ids]], max_tokens: int) -> Iterator[list[int]]:
    """Return the indices of the pairs of each batch."""
    lengths = [max(len(source), len(target)) for source, target in pairs]
    return batches_by_length(lengths, max_tokens, max_tokens)


def _mean(scores: Sequence[TokenLogProbs]) -> TokenLogProbs:
    log_probs = torch.tensor(scores, dtype=torch.float64)
    return tuple((log_probs.logsumexp(0) - math.log(len(scores))).tolist())


def _score_batch(model: Transformer, pairs: Sequence[tuple[Ids, Ids]]) -> list[TokenLogProbs]:
    """Score pairs in one batch."""
    device = model.output_weight.device
    sources, targets = zip(*pairs, strict=True)
    memory = model.encode(pack_sequences(sources, device))
    inputs = pack_sequences([(BOS_ID, *target[:-1]) for target in targets], device)
    target_ids = pack_sequences(targets, device).values
    log_probs = token_log_probs(model, model.decode(inputs, memory), target_ids).cpu()
    if not log_probs.isfinite().all():
        raise DamagedError(
            "the model gives no probabilities (its logits are not numbers), so its weights "
            "are damaged; score with another checkpoint"
        )
    return [tuple(part.tolist()) for part in log_probs.split([len(target) for target in targets])]


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
