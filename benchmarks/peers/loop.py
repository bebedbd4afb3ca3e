"""A bare PyTorch loop as a peer: padded batches and torch's own attention, no toolkit around them.

python -m benchmarks.peers.loop train --corpus CORPUS
"""

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.workload import (
    DROPOUT,
    EOS,
    NUM_POSITIONS,
    PAD,
    SHAPES,
    SMOOTHING,
    Shape,
    read_options,
    run,
)

CHUNK = 512
"""Tokens whose logits exist at a time."""
IMPOSSIBLE = -1e9


class Layer(nn.Module):
    """A post-norm layer of the encoder, or of the decoder with cross-attention."""

    def __init__(self, shape: Shape, is_decoder: bool) -> None:
        super().__init__()
        size = shape.model_size
        self.heads = shape.heads
        self.own, self.own_output = nn.Linear(size, 3 * size), nn.Linear(size, size)
        if is_decoder:
            self.query, self.memory = nn.Linear(size, size), nn.Linear(size, 2 * size)
            self.cross_output = nn.Linear(size, size)
        self.wide = nn.Linear(size, shape.feed_forward)
        self.narrow = nn.Linear(shape.feed_forward, size)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3 if is_decoder else 2))

    def split(self, projected: Tensor, count: int) -> tuple[Tensor, ...]:
        """Return `count` tensors of heads (sentences, heads, tokens, size)."""
        rows, tokens, _ = projected.shape
        return projected.view(rows, tokens, count, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Tensor | None = None) -> Tensor:
        """Compute x (sentences, tokens, size); the mask is that of the source."""
        query, key, value = self.split(self.own(x), 3)
        is_causal = memory is not None
        found = F.scaled_dot_product_attention(
            query, key, value, attn_mask=None if is_causal else mask, is_causal=is_causal
        )
        x = self.norms[0](x + self.drop(self.own_output(merge(found))))
        if memory is not None:
            key, value = self.split(self.memory(memory), 2)
            x = self.cross(x, key, value, mask)
        return self.feed(x)

    def cross(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attend to the memory."""
        (query,) = self.split(self.query(x), 1)
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        output: Tensor = self.norms[1](x + self.drop(self.cross_output(merge(found))))
        return output

    def feed(self, x: Tensor) -> Tensor:
        """Compute the feed-forward part."""
        output: Tensor = self.norms[-1](x + self.drop(self.narrow(F.relu(self.wide(x)))))
        return output

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout in training."""
        return F.dropout(x, DROPOUT, self.training)


def merge(heads: Tensor) -> Tensor:
    """Return (sentences, tokens, size) of heads (sentences, heads, tokens, size)."""
    return heads.transpose(1, 2).flatten(2)


class Model(nn.Module):
    """Encoder, decoder and shared embeddings."""

    positions: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size = shape.model_size
        self.embedding = nn.Embedding(shape.vocabulary, size)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        self.encoder = nn.ModuleList(Layer(shape, False) for _ in range(shape.layers))
        self.decoder = nn.ModuleList(Layer(shape, True) for _ in range(shape.layers))
        rates = torch.exp(torch.arange(0, size, 2) * (-math.log(1e4) / size))
        angles = torch.arange(NUM_POSITIONS)[:, None] * rates
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))

    def embed(self, ids: Tensor, first: int = 0) -> Tensor:
        """Embed ids (sentences, tokens), which begin at a position."""
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        embedded = scaled + self.positions[first : first + ids.shape[1]]
        return F.dropout(embedded, DROPOUT, self.training)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory and its mask."""
        mask = (source != PAD)[:, None, None, :]
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, mask)
        return x, mask

    def loss(self, source: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return the label-smoothed cross-entropy per token."""
        memory, mask = self.encode(source)
        x = self.embed(inputs)
        for layer in self.decoder:
            x = layer(x, mask, memory)
        real = outputs != PAD
        loss: Tensor = ChunkedLoss.apply(x[real], self.embedding.weight, outputs[real])  # type: ignore[no-untyped-call]
        return loss

    def search(self, source: Tensor, length: int, beam: int) -> Tensor:
        """Search with a beam for hypotheses (rows, length) of a forced length."""
        memory, mask = self.encode(source)
        num_rows = len(source) * beam
        layers = [layer for layer in self.decoder if isinstance(layer, Layer)]
        crossed = [layer.split(layer.memory(memory), 2) for layer in layers]
        heads, size = layers[0].heads, self.embedding.embedding_dim // layers[0].heads
        caches = [
            torch.zeros(2, num_rows, heads, length + 1, size, dtype=memory.dtype) for _ in layers
        ]
        scores = torch.full((len(source), beam), IMPOSSIBLE)
        scores[:, 0] = 0
        last = torch.full((num_rows,), EOS)
        found = torch.zeros(num_rows, length, dtype=torch.long)
        firsts = torch.arange(len(source))[:, None] * beam
        for step in range(length + 1):
            x = self.embed(last[:, None], step)
            for layer, cache, (key, value) in zip(layers, caches, crossed, strict=True):
                query, *now = layer.split(layer.own(x), 3)
                cache[:, :, :, step] = torch.stack(now)[:, :, :, 0]
                attended = F.scaled_dot_product_attention(query, *cache[:, :, :, : step + 1])
                x = layer.norms[0](x + layer.own_output(merge(attended)))
                # The hypotheses of a sentence are the queries of one copy of its memory.
                x = x.view(len(source), beam, -1)
                x = layer.feed(layer.cross(x, key, value, mask)).view(num_rows, 1, -1)
            logits = x[:, 0] @ self.embedding.weight.T
            if step == length:
                break
            logits[:, EOS] = IMPOSSIBLE
            best, ids = logits.topk(beam)
            best = best.float() - logits.float().logsumexp(-1, keepdim=True)
            scores, chosen = (scores.view(-1, 1) + best).view(len(source), -1).topk(beam)
            parents = (firsts + chosen // beam).flatten()
            last = ids.view(len(source), -1).gather(1, chosen).flatten()
            found = found[parents]
            found[:, step] = last
            for cache in caches:
                cache[:, :, :, : step + 1] = cache[:, parents, :, : step + 1]
        return found


class ChunkedLoss(torch.autograd.Function):
    """Label-smoothed cross-entropy of tied logits, which exist for a chunk of tokens at a time."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss; the gradients are computed here, chunk by chunk."""
        of_hidden, of_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        total = hidden.new_zeros(())
        for first in range(0, len(hidden), CHUNK):
            part, labels = hidden[first : first + CHUNK], targets[first : first + CHUNK, None]
            logits = part @ weight.T
            sums = logits.logsumexp(1, keepdim=True)
            chosen = logits.gather(1, labels)
            smooth = SMOOTHING * logits.mean(1, keepdim=True)
            total += (sums - (1 - SMOOTHING) * chosen - smooth).sum()
            gradient = logits.sub_(sums).exp_().sub_(SMOOTHING / len(weight))
            gradient.scatter_add_(1, labels, torch.full_like(chosen, SMOOTHING - 1))
            of_hidden[first : first + CHUNK] = gradient @ weight
            of_weight.addmm_(gradient.T, part)
        ctx.save_for_backward(of_hidden.div_(len(hidden)), of_weight.div_(len(hidden)))
        return total / len(hidden)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients."""
        of_hidden, of_weight = ctx.saved_tensors
        return of_hidden * outer, of_weight * outer, None


def main() -> None:
    """Train or decode by a bare loop."""
    options = read_options()
    model = Model(SHAPES[options.shape])
    if options.precision == "bfloat16":  # weights and logits, too
        model = model.bfloat16()
    search = partial(model.search, length=options.length, beam=options.beam)
    run("bare PyTorch loop", options, model, model.loss, search)


if __name__ == "__main__":
    main()
