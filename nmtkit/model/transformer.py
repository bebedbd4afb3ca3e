"""The Transformer: encoder, decoder, output projection. Source: paper, section 3.

`encode` and `decode` run over packed batches; `start` and `step` decode one position at a time
with a `DecoderState`. Tensors only: no text, no files, no loss.
"""

from collections.abc import Sequence
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nmtkit.config.training import NORMS, ModelConfig
from nmtkit.model.embedding import POSITIONS, Embedding, token_embedding
from nmtkit.model.kernels.inference import InferenceLinear, replace_linears
from nmtkit.model.layers import (
    EAGER,
    DecoderLayer,
    EncoderLayer,
    Function,
    ResidualTail,
    layer_norm,
)
from nmtkit.model.state import DecoderState
from nmtkit.packed import Packed


class Transformer(nn.Module):
    """An encoder-decoder Transformer with one output distribution per target position."""

    def __init__(
        self,
        config: ModelConfig,
        source_size: int,
        target_size: int,
        is_shared: bool,
        *,
        tail: ResidualTail = EAGER,
        recompute: bool = False,
    ) -> None:
        """Build and initialise the parameters from torch's global generator.

        Args:
            config: the shape.
            source_size, target_size: entries of the two vocabularies.
            is_shared: both sides use one vocabulary, so their embeddings can be tied.
            tail: the functions that follow attentions in training.
            recompute: training keeps the inputs of layers and computes the layers again in the
                backward pass (activation checkpointing).
        """
        super().__init__()
        self.config = config
        self._recompute = recompute
        # The output projection in another form: neither a parameter nor saved.
        self.prepared_output: InferenceLinear | None = None
        target_tokens = token_embedding(target_size, config.model_size)
        source_tokens = (
            target_tokens
            if config.tie_embeddings and is_shared
            else token_embedding(source_size, config.model_size)
        )
        positions = POSITIONS[config.positions]
        self.source_embedding = Embedding(source_tokens, positions(config), config.dropout)
        self.target_embedding = Embedding(target_tokens, positions(config), config.dropout)
        encoder = nn.ModuleList(EncoderLayer(config, tail) for _ in range(config.encoder_layers))
        decoder = nn.ModuleList(DecoderLayer(config, tail) for _ in range(config.decoder_layers))
        # A ModuleList hides its types from type checkers.
        self.encoder = cast(Sequence[EncoderLayer], encoder)
        self.decoder = cast(Sequence[DecoderLayer], decoder)
        has_final_norm = NORMS[config.norm].has_final_norm
        self.encoder_norm = layer_norm(config) if has_final_norm else nn.Identity()
        self.decoder_norm = layer_norm(config) if has_final_norm else nn.Identity()
        self.projection = (
            target_tokens
            if config.tie_embeddings
            else token_embedding(target_size, config.model_size)
        )
        self.output_bias = nn.Parameter(torch.zeros(target_size)) if config.output_bias else None

    def encode(self, source: Packed) -> Packed:
        """Encode source sentences.

        Args:
            source: ids (X,), each sentence ending with the end symbol.

        Returns:
            the memory (X, D) with the same layout.
        """
        layout = source.layout
        x = self.source_embedding(source.values, layout.positions, layout.longest)
        for layer in self.encoder:
            x = self._run(layer, x, partial(layer.self_attention, layout=layout, is_causal=False))
        return Packed(self.encoder_norm(x), layout)

    def decode(self, target: Packed, memory: Packed) -> Tensor:
        """Compute the hidden vectors (Y, D) from which each next token is predicted.

        Args:
            target: ids (Y,), each sentence beginning with the begin symbol.
            memory: (X, D) of the same sentences, from `encode`.
        """
        layout = target.layout
        x = self.target_embedding(target.values, layout.positions, layout.longest)
        for layer in self.decoder:
            x = self._run(
                layer,
                x,
                partial(layer.self_attention, layout=layout, is_causal=True),
                partial(layer.memory_attention, layout=layout, memory=memory),
            )
        output: Tensor = self.decoder_norm(x)
        return output

    def start(self, memory: Packed) -> DecoderState:
        """Prepare decoding of the sentences of a memory (X, D), one row each."""
        pairs = [layer.memory_attention.start(memory) for layer in self.decoder]
        keys, values = (torch.stack(side) for side in zip(*pairs, strict=True))
        sizes = (keys.shape[3], values.shape[4])
        return DecoderState((keys, values), memory.layout.mask, sizes, self.config.window)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Read one more token of each row and predict the next.

        Args:
            tokens: (B, W) int64, the begin symbol at first.
            state: of the tokens read so far; the step advances it.

        Returns:
            logits (B, W, V).
        """
        return self.logits(self.advance(tokens, state))

    def advance(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Take a step up to the hidden vectors (B, W, D) for `logits`."""
        state.begin_step()
        position = torch.full((), state.position, device=tokens.device)
        x = self.target_embedding(tokens, position, state.position + 1)
        for index, layer in enumerate(self.decoder):
            x = layer(
                x,
                partial(layer.self_attention.step, state=state, layer=index),
                partial(layer.memory_attention.step, state=state, layer=index),
            )
        return cast(Tensor, self.decoder_norm(x))

    def logits(self, hidden: Tensor) -> Tensor:
        """Project hidden vectors (..., D) to unnormalised log-probabilities (..., V).

        Source: paper, section 3.4.
        """
        if self.prepared_output is not None:
            return cast(Tensor, self.prepared_output(hidden))
        return nn.functional.linear(hidden, self.output_weight, self.output_bias)

    @property
    def output_weight(self) -> Tensor:
        """The matrix (V, D) that turns a hidden vector into logits."""
        return self.projection.weight

    def narrowed(self, entries: Tensor) -> Function:
        """Return a projection of hidden vectors (..., D) to the logits of some entries (V',).

        Source: Jean et al. 2015 (arXiv 1412.2007), section 3.
        """
        weight = self.output_weight[entries]
        bias = None if self.output_bias is None else self.output_bias[entries]
        # Not prepared: it serves one batch only, and oneDNN would compile code for its shape.
        return partial(nn.functional.linear, weight=weight, bias=bias)

    def prepare(self, dtype: torch.dtype) -> None:
        """Bring the weights into the fastest form for inference; it cannot be undone.

        The model computes the same, up to rounding, but can no longer be trained or saved. The
        output projection keeps the precision of the model: rounded to eight bits, logits of good
        candidates are equal too often.

        Args:
            dtype: of the other matrix products; bfloat16 takes about half the time on processors
                with instructions for it, and half the memory. Other operations stay unchanged.
        """
        self.eval().requires_grad_(requires_grad=False)
        weight = self.output_weight
        self.prepared_output = InferenceLinear(weight, self.output_bias, weight.dtype)
        replace_linears(self, dtype)

    def _run(self, layer: nn.Module, x: Tensor, *functions: Function) -> Tensor:
        if self._recompute and torch.is_grad_enabled():
            return cast(Tensor, checkpoint(layer, x, *functions, use_reentrant=False))
        return cast(Tensor, layer(x, *functions))
