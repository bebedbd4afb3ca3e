"""The Transformer: encoder, decoder, output projection. Source: paper, section 3.

`encode` and `decode` run over packed batches; `start` and `step` decode one position at a time
with a `DecoderState`. Tensors only: no text, no files, no loss.
"""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nmtkit.config.model import NORMS, AligningAttention, ModelConfig
from nmtkit.model.attention import aligning_attention
from nmtkit.model.embedding import POSITIONS, Embedding, token_embedding
from nmtkit.model.kernels.inference import InferenceLinear, replace_linears
from nmtkit.model.kernels.training import call_with_rounded_weights
from nmtkit.model.layers import DecoderLayer, EncoderLayer, Function, layer_norm
from nmtkit.model.state import DecoderState
from nmtkit.packed import Packed


class Transformer(nn.Module):
    """An encoder-decoder Transformer."""

    def __init__(
        self,
        config: ModelConfig,
        source_size: int,
        target_size: int,
        is_shared: bool,
        *,
        activation_checkpointing: bool = False,
    ) -> None:
        """Build and initialise the parameters from torch's global generator.

        Args:
            config: the shape.
            source_size, target_size: entries of the two vocabularies.
            is_shared: both sides use one vocabulary, so their embeddings can be tied.
            activation_checkpointing: training keeps the inputs of layers, and computes the layers
                again in the backward pass.
        """
        super().__init__()
        self.config = config
        self._activation_checkpointing = activation_checkpointing
        # The output projection as `prepare` makes it; neither a parameter nor saved.
        self.prepared_output: InferenceLinear | None = None
        # What `nmtkit align --choose-layer` stored.
        self.stored_aligning_attention: AligningAttention | None = None
        target_tokens = token_embedding(target_size, config.model_size)
        source_tokens = (
            target_tokens
            if config.tie_embeddings and is_shared
            else token_embedding(source_size, config.model_size)
        )
        positions = POSITIONS[config.positions]
        self.source_embedding = Embedding(source_tokens, positions(config), config.dropout)
        self.target_embedding = Embedding(target_tokens, positions(config), config.dropout)
        encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
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
            source: ids (X,); each sentence ends with the end symbol.

        Returns:
            the memory (X, D), with the layout of the source.
        """
        layout = source.layout
        x = self.source_embedding(source.values, layout.positions, layout.longest)
        for layer in self.encoder:
            x = self._run(layer, x, partial(layer.self_attention, layout=layout, is_causal=False))
        return Packed(self.encoder_norm(x), layout)

    def decode(
        self,
        target: Packed,
        memory: Packed,
        num_layers: int | None = None,
        *,
        is_causal: bool = True,
    ) -> Tensor:
        """Compute the hidden vectors for `logits` of each next token.

        Args:
            target: ids (Y,); each sentence begins with the begin symbol.
            memory: (X, D) of the same sentences, from `encode`.
            num_layers: only the first ones, for their attention; None = all.
            is_causal: a position does not see those after it, which it must not to predict them.

        Returns:
            (Y, D).
        """
        layout = target.layout
        x = self.target_embedding(target.values, layout.positions, layout.longest)
        for layer in self.decoder[:num_layers]:
            x = self._run(
                layer,
                x,
                partial(layer.self_attention, layout=layout, is_causal=is_causal),
                partial(layer.memory_attention, layout=layout, memory=memory),
            )
        output: Tensor = self.decoder_norm(x)
        return output

    def start(self, memory: Packed) -> DecoderState:
        """Return the state before the first step: one row per sentence of a memory (X, D)."""
        pairs = [layer.memory_attention.start(memory) for layer in self.decoder]
        keys, values = (torch.stack(tensors) for tensors in zip(*pairs, strict=True))
        sizes = (keys.shape[3], values.shape[4])
        return DecoderState((keys, values), memory.layout.mask, sizes, self.config.window)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Read one more token of each row, and predict the next.

        Args:
            tokens: (B, W) int64; the first token is the begin symbol.
            state: of the tokens read so far; the step changes it.

        Returns:
            logits (B, W, V) of the token after each.
        """
        return self.logits(self.advance(tokens, state))

    def advance(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Run a step without the output projection; return hidden vectors (B, W, D)."""
        state.begin_step()
        x = self.target_embedding(tokens, state.position, state.length)
        for index, layer in enumerate(self.decoder):
            attentions = (layer.self_attention.step, layer.memory_attention.step)
            x = layer(x, *(partial(attend, state=state, layer=index) for attend in attentions))
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
        """The output projection (V, D), from hidden vectors to logits."""
        return self.projection.weight

    @property
    def aligning_attention(self) -> AligningAttention:
        """Where the model's alignments are read; see `nmtkit.model.attention`."""
        return aligning_attention(self.config, self.stored_aligning_attention)

    def partial_projection(self, entries: Tensor) -> Function:
        """Return a projection of hidden vectors (..., D) to the logits of some entries (V',).

        Source: Jean et al. 2015 (arXiv 1412.2007), section 3.
        """
        weight = self.output_weight[entries]
        bias = None if self.output_bias is None else self.output_bias[entries]
        if self.prepared_output is not None and weight.is_cuda:
            return InferenceLinear(weight, bias, self.prepared_output.dtype, weight.dtype)
        # Not prepared: it serves one batch only, and oneDNN would compile code for its shape.
        return partial(nn.functional.linear, weight=weight, bias=bias)

    def prepare(self, dtype: torch.dtype) -> None:
        """Convert the weights to the fastest form for inference; this cannot be undone.

        Results stay the same up to rounding, but the model can no longer be trained or saved. The
        logits keep the precision of the model: rounded to eight bits, those of good candidates
        would often be equal. GPUs, and integers, compute them from rounded factors.

        Args:
            dtype: of the other matrix products. bfloat16 takes half the memory, and about half the
                time on processors with instructions for it. int8 takes a quarter of the memory, and
                less time on x86 processors. Other operations are not affected.
        """
        self.eval().requires_grad_(requires_grad=False)
        weight = self.output_weight
        product = dtype if weight.is_cuda or dtype == torch.int8 else weight.dtype
        self.prepared_output = InferenceLinear(weight, self.output_bias, product, weight.dtype)
        replace_linears(self, dtype)

    def prepared_copy(self, dtype: torch.dtype) -> "Transformer":
        """Return a prepared model (see `prepare`) with the present weights, and keep this one.

        Both share the tensors that `prepare` does not convert.
        """
        shared = {id(p): nn.Parameter(p.detach(), requires_grad=False) for p in self.parameters()}
        prepared = copy.deepcopy(self, dict[int, Any](shared))
        prepared.prepare(dtype)
        return prepared

    def _run(self, layer: nn.Module, x: Tensor, *functions: Function) -> Tensor:
        call = partial(call_with_rounded_weights, layer)
        if self._activation_checkpointing and torch.is_grad_enabled():
            return cast(Tensor, checkpoint(call, x, *functions, use_reentrant=False))
        return call(x, *functions)
