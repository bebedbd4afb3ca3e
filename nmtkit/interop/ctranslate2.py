"""Export to CTranslate2: model.bin, config.json, vocabularies, and the SentencePiece models.

The library itself writes the model: its specification knows the layout of its version, and checks
that no weight is missing. The comparison of scores needs the library, too.
Source: CTranslate2, python/ctranslate2/specs/transformer_spec.py.
"""

import copy
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmtkit.config.model import ModelConfig, aligning_layer
from nmtkit.config.problems import Problem
from nmtkit.interop.parity import (
    NUM_POSITIONS,
    Pair,
    Peer,
    import_extra,
    name_of,
    num_positions,
    unsupported_attention,
    unsupported_choice,
    write_sentencepiece,
)
from nmtkit.model.attention import CrossAttention
from nmtkit.model.embedding import Embedding
from nmtkit.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from nmtkit.model.transformer import Transformer
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.vocabulary import Vocabulary

_LIBRARY = _EXTRA = "ctranslate2"
_BATCH_SENTENCES = 8
"""Sentences scored per batch; CTranslate2 keeps the logits of all their tokens in memory."""

_ACTIVATIONS = {
    "relu": ("RELU", False),
    "silu": ("SWISH", False),
    "squared-relu": ("RELU", True),
    "swiglu": ("SWISH", True),
}
"""Names of activations, and whether they are gates of products: x * max(0, x) is a square."""
_POSITIONS = ("sinusoidal", "learned")
_PRE_NORM = {"post": False, "pre": True}


def unsupported(config: ModelConfig, codec: TextCodec) -> Iterator[Problem]:
    """Yield the properties of a model that CTranslate2 does not support."""
    yield from unsupported_attention(config)
    yield from unsupported_choice(config, "activation", _ACTIVATIONS)
    yield from unsupported_choice(config, "norm", _PRE_NORM)
    yield from unsupported_choice(config, "positions", _POSITIONS)
    target = codec.target
    if target.no_export:
        yield Problem(
            ("kind",),
            f"the target vocabulary (of {target.target_type}) must be of text: {target.no_export}",
        )


def write(loaded: LoadedModel, folder: Path, quantization: str | None = None) -> None:
    """Write a model that CTranslate2 supports into a folder, over one that was written before.

    Args:
        loaded: the model, on the CPU.
        folder: the folder.
        quantization: the type of its weights, such as int8; None for float32.

    Raises:
        ConfigError: the library is not installed.
    """
    specs = import_extra("ctranslate2.specs", _EXTRA)
    config, read = loaded.model.config, loaded.model.aligning_attention
    activation, is_gate = _ACTIVATIONS[config.activation]
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=_PRE_NORM[config.norm],
        activation=specs.Activation[activation],
        ffn_glu=is_gate,
        # From its first how many heads, 0 = all, CTranslate2 reads alignments.
        alignment_layer=aligning_layer(config.decoder_layers) if read.sees_target else read.layer,
        alignment_heads=0 if read.sees_target or read.head is None else 1,
    )
    _set_weights(spec, loaded.model)
    _set_vocabularies(spec, loaded.codec)
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))
    write_sentencepiece(loaded.codec, folder)


def open_peer(folder: Path, codec: TextCodec) -> Peer:
    """Load a folder that `write` wrote; the codec turns ids into the tokens that it reads.

    It computes in the type of its weights, or in float32 where the processor lacks that.

    Raises:
        ConfigError: the library is not installed.
    """
    library = import_extra(_LIBRARY, _EXTRA)
    library.set_log_level(logging.ERROR)  # it warns of float16, which processors lack
    translator = library.Translator(str(folder), device="cpu")

    def score(pairs: Sequence[Pair]) -> list[float]:
        sources = [_tokens(codec.source, pair.source_ids) for pair in pairs]
        targets = [_tokens(codec.target, pair.target_ids) for pair in pairs]
        results = translator.score_batch(
            sources, targets, max_input_length=0, max_batch_size=_BATCH_SENTENCES
        )
        return [sum(result.log_probs) for result in results]

    return Peer(name_of(_LIBRARY), NUM_POSITIONS, score)


def _set_weights(spec: Any, model: Transformer) -> None:
    (source_embeddings,) = spec.encoder.embeddings
    _set_stack(spec.encoder, model.encoder, model.encoder_norm, model.config)
    _set_stack(spec.decoder, model.decoder, model.decoder_norm, model.config)
    longest = num_positions(model.config)
    _set_embedding(source_embeddings, spec.encoder, model.source_embedding, longest)
    _set_embedding(spec.decoder.embeddings, spec.decoder, model.target_embedding, longest)
    spec.decoder.projection.weight = _array(model.output_weight)
    if model.output_bias is not None:
        spec.decoder.projection.bias = _array(model.output_bias)
    if trained := model.config.trained_head:
        layer, head = trained
        attention = with_first_head(model.decoder[layer].memory_attention, head)
        _set_cross_attention(spec.decoder.layer[layer].attention, attention)


def with_first_head(attention: CrossAttention, head: int) -> CrossAttention:
    """Return a copy of an attention, which computes the same, with a head as its first."""
    order = [head, *(other for other in range(attention.heads) if other != head)]
    copied = copy.deepcopy(attention).requires_grad_(requires_grad=False)
    for linear, sizes in ((copied.query, copied.sizes[:1]), (copied.key_value, copied.sizes)):
        for tensor in (linear.weight, linear.bias):
            for part in tensor.split(sizes):  # (HK, ...) or (HU, ...)
                by_head = part.unflatten(0, (attention.heads, -1))
                part.copy_(by_head[order].flatten(0, 1))
    by_head = copied.output.weight.unflatten(1, (attention.heads, -1))  # (D, H, U)
    copied.output.weight.copy_(by_head[:, order].flatten(1))
    return copied


def _set_embedding(tokens_spec: Any, stack_spec: Any, embedding: Embedding, longest: int) -> None:
    """Set token embeddings, which CTranslate2 scales as nmtkit does, and the position table.

    Without a table, CTranslate2 uses other sinusoids, which begin at position 1.
    """
    tokens_spec.weight = _array(embedding.tokens.weight)
    table = embedding.positions(torch.arange(longest), longest)
    stack_spec.position_encodings.encodings = _array(table)


def _set_stack(
    spec: Any,
    layers: Sequence[EncoderLayer | DecoderLayer],
    last_norm: nn.Module,
    config: ModelConfig,
) -> None:
    for layer_spec, layer in zip(spec.layer, layers, strict=True):
        _set_layer(layer_spec, layer)
        _set_feed_forward(layer_spec.ffn, layer.feed_forward, config)
    if isinstance(last_norm, nn.LayerNorm):
        _set_norm(spec.layer_norm, last_norm)


def _set_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    """Set the weights of a layer; CTranslate2 fuses projections as nmtkit does."""
    first, *middle, last = layer.residuals
    _set_residual(spec.self_attention, first)
    _set_linear(spec.self_attention.linear[0], layer.self_attention.query_key_value)
    _set_linear(spec.self_attention.linear[1], layer.self_attention.output)
    if isinstance(layer, DecoderLayer):
        _set_residual(spec.attention, middle[0])
        _set_cross_attention(spec.attention, layer.memory_attention)
    _set_residual(spec.ffn, last)


def _set_feed_forward(spec: Any, feed_forward: FeedForward, config: ModelConfig) -> None:
    """Set its two or three matrices; the gate of a square has the matrix of what it multiplies."""
    inner = feed_forward.inner
    weights, biases = (tensor.split(config.inner_sizes) for tensor in (inner.weight, inner.bias))
    _set_product(spec.linear_0, weights[0], biases[0])
    _, is_gate = _ACTIVATIONS[config.activation]
    if is_gate:
        _set_product(spec.linear_0_noact, weights[-1], biases[-1])
    _set_linear(spec.linear_1, feed_forward.outer)


def _set_cross_attention(spec: Any, attention: CrossAttention) -> None:
    _set_linear(spec.linear[0], attention.query)
    _set_linear(spec.linear[1], attention.key_value)
    _set_linear(spec.linear[2], attention.output)


def _set_residual(spec: Any, residual: nn.Module) -> None:
    assert isinstance(residual, Residual)
    _set_norm(spec.layer_norm, residual.norm)


def _set_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _set_linear(spec: Any, linear: nn.Linear) -> None:
    _set_product(spec, linear.weight, linear.bias)


def _set_product(spec: Any, weight: Tensor, bias: Tensor) -> None:
    spec.weight, spec.bias = _array(weight), _array(bias)


def _set_vocabularies(spec: Any, codec: TextCodec) -> None:
    """Set the entries of both vocabularies, and the special symbols."""
    spec.register_source_vocabulary(_entries(codec.source))
    spec.register_target_vocabulary(_entries(codec.target))
    spec.config.unk_token = codec.target.piece(UNK_ID)
    spec.config.bos_token = spec.config.decoder_start_token = codec.target.piece(BOS_ID)
    spec.config.eos_token = codec.target.piece(EOS_ID)
    spec.config.add_source_eos = True


def _entries(vocabulary: Vocabulary) -> list[str]:
    return [vocabulary.piece(index) for index in range(vocabulary.size)]


def _tokens(vocabulary: Vocabulary, ids: Sequence[int]) -> list[str]:
    """Return the tokens of ids without the end symbol, which CTranslate2 adds itself."""
    return [vocabulary.piece(index) for index in ids if index != EOS_ID]


def _array(tensor: Tensor) -> NDArray[np.float32]:
    """Return a copy, because the library quantises weights in place."""
    return tensor.detach().numpy().copy()
