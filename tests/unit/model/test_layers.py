import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from nmtkit.config import training
from nmtkit.config.schema import TrainRecipe, fields_of
from nmtkit.config.training import ModelConfig
from nmtkit.model.attention import SelfAttention
from nmtkit.model.layers import (
    ACTIVATIONS,
    NORMS,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Residual,
)
from nmtkit.packed import Layout, Packed
from tests.tiny import randomize
from tests.unit.model.tensors import MODEL_SIZE, random_values

CPU = torch.device("cpu")
HEADS, FEED_FORWARD_SIZE = 3, 20
TARGET, SOURCE = [3, 1, 5, 2], [2, 4, 1, 4]
TOLERANCE = 1e-11
"""In float64 another order of summation changes less than this."""

norms = pytest.mark.parametrize("norm", NORMS)


def config(norm: str, dropout: float, activation_dropout: float) -> ModelConfig:
    return ModelConfig(
        model_size=MODEL_SIZE,
        heads=HEADS,
        feed_forward_size=FEED_FORWARD_SIZE,
        norm=norm,
        dropout=dropout,
        activation_dropout=activation_dropout,
        norm_epsilon=1e-3,  # large, so that ignoring it shows
    )


def copy_attention(ours: SelfAttention, oracle: nn.MultiheadAttention) -> None:
    oracle.in_proj_weight.copy_(ours.query_key_value.weight)
    oracle.in_proj_bias.copy_(ours.query_key_value.bias)
    oracle.out_proj.load_state_dict(ours.output.state_dict())


def torch_encoder_layer(layer: EncoderLayer, norm: str) -> nn.TransformerEncoderLayer:
    oracle = nn.TransformerEncoderLayer(
        MODEL_SIZE,
        HEADS,
        FEED_FORWARD_SIZE,
        dropout=0.0,
        layer_norm_eps=1e-3,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )
    with torch.no_grad():
        copy_attention(layer.self_attention, oracle.self_attn)
    copy_rest(layer, oracle, [oracle.norm1, oracle.norm2])
    return oracle


def torch_decoder_layer(layer: DecoderLayer, norm: str) -> nn.TransformerDecoderLayer:
    oracle = nn.TransformerDecoderLayer(
        MODEL_SIZE,
        HEADS,
        FEED_FORWARD_SIZE,
        dropout=0.0,
        layer_norm_eps=1e-3,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )
    ours, theirs = layer.memory_attention, oracle.multihead_attn
    with torch.no_grad():
        copy_attention(layer.self_attention, oracle.self_attn)
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    copy_rest(layer, oracle, [oracle.norm1, oracle.norm2, oracle.norm3])
    return oracle


def copy_rest(
    layer: EncoderLayer | DecoderLayer,
    oracle: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer,
    layer_norms: Sequence[nn.Module],
) -> None:
    oracle.linear1.load_state_dict(layer.feed_forward.inner.state_dict())
    oracle.linear2.load_state_dict(layer.feed_forward.outer.state_dict())
    for residual, layer_norm in zip(layer.residuals, layer_norms, strict=True):
        assert isinstance(residual, Residual)
        layer_norm.load_state_dict(residual.norm.state_dict())


def causal_mask(size: int) -> Tensor:
    """Mask with True at positions that must not be attended to: torch's convention here."""
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def assert_same_with_gradients(
    pairs: tuple[Tensor, Tensor], layers: tuple[nn.Module, nn.Module], leaves: list[Tensor]
) -> None:
    """Compare our output and torch's, the gradients of leaves, and the norm of the parameters'."""
    torch.testing.assert_close(*pairs, rtol=0.0, atol=TOLERANCE)
    weights = torch.randn_like(pairs[0])
    of_leaves, norms = [], []
    for output, layer in zip(pairs, layers, strict=True):
        found = torch.autograd.grad((output * weights).sum(), [*leaves, *layer.parameters()])
        of_leaves.append(found[: len(leaves)])
        norms.append(math.hypot(*(float(one.norm()) for one in found[len(leaves) :])))
    torch.testing.assert_close(*of_leaves, rtol=0.0, atol=TOLERANCE)
    assert norms[0] == pytest.approx(norms[1], rel=1e-10)


@norms
@pytest.mark.parametrize("sizes", [TARGET, [4, 4]], ids=["ragged", "rectangular"])
def test_the_encoder_layer_equals_torchs(sizes: list[int], norm: str) -> None:
    layer = EncoderLayer(config(norm, 0.0, 0.0))
    randomize(layer)
    oracle = torch_encoder_layer(layer, norm)
    x, layout = random_values(sizes), Layout(sizes, CPU)
    actual = layer(x, partial(layer.self_attention, layout=layout, is_causal=False))
    expected = torch.cat([oracle(sentence[None])[0] for sentence in x.split(sizes)])
    assert_same_with_gradients((actual, expected), (layer, oracle), [x])


@norms
def test_the_decoder_layer_equals_torchs(norm: str) -> None:
    layer = DecoderLayer(config(norm, 0.0, 0.0))
    randomize(layer)
    oracle = torch_decoder_layer(layer, norm)
    x, memory = random_values(TARGET), random_values(SOURCE)
    layout, packed = Layout(TARGET, CPU), Packed(memory, Layout(SOURCE, CPU))
    actual = layer(
        x,
        partial(layer.self_attention, layout=layout, is_causal=True),
        partial(layer.memory_attention, layout=layout, memory=packed),
    )
    sentences = zip(x.split(TARGET), memory.split(SOURCE), strict=True)
    expected = torch.cat(
        [oracle(t[None], s[None], tgt_mask=causal_mask(len(t)))[0] for t, s in sentences]
    )
    assert_same_with_gradients((actual, expected), (layer, oracle), [x, memory])


@norms
def test_dropout_of_a_sub_layer_does_not_drop_the_residual(norm: str) -> None:
    p = 0.25
    residual = NORMS[norm](config(norm, p, 0.0)).double()
    x = torch.randn(500, MODEL_SIZE, dtype=torch.float64)
    residual.norm = nn.Identity()  # type: ignore[assignment] # to observe the term that is added to x
    added = residual.leave(x, torch.ones_like(x)) - x
    is_dropped = added.abs() < TOLERANCE
    kept = added[~is_dropped]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)))
    # 6000 draws: four standard deviations are 0.022.
    assert is_dropped.double().mean().item() == pytest.approx(p, abs=0.022)
    residual.eval()
    torch.testing.assert_close(residual.leave(x, torch.ones_like(x)), x + 1)


def test_every_choice_of_norm_and_activation_has_an_implementation() -> None:
    fields = fields_of(TrainRecipe)
    assert [*NORMS] == [*training.NORMS] == [*fields["norm"].choices]
    assert [*ACTIVATIONS] == [*training.ACTIVATIONS] == [*fields["activation"].choices]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_keeps_input_says_whether_the_gradient_needs_the_input(name: str) -> None:
    kept: list[Tensor] = []
    x = random_values([5])

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        ACTIVATIONS[name](x)
    keeps_input = any(torch.equal(tensor, x) for tensor in kept)
    assert keeps_input is training.ACTIVATIONS[name].keeps_input


@pytest.mark.parametrize(
    ("activation", "formula"),
    [("relu", lambda x: x.clamp(min=0)), ("silu", lambda x: x / (1 + (-x).exp()))],
)
def test_the_named_activation_is_applied(
    activation: str, formula: Callable[[Tensor], Tensor]
) -> None:
    own = FeedForward(replace(config("post", 0.0, 0.0), activation=activation)).double()
    x = random_values([5])
    inner = x @ own.inner.weight.T + own.inner.bias
    expected = formula(inner) @ own.outer.weight.T + own.outer.bias
    torch.testing.assert_close(own(x), expected, rtol=0.0, atol=TOLERANCE)


def test_activation_dropout_acts_between_the_two_projections() -> None:
    feed_forward = FeedForward(config("post", 0.0, 0.5)).double()
    inner = torch.ones(FEED_FORWARD_SIZE, MODEL_SIZE, dtype=torch.float64)
    outer = torch.zeros(MODEL_SIZE, FEED_FORWARD_SIZE, dtype=torch.float64)
    outer[:, 0] = 1.0
    with torch.no_grad():
        feed_forward.inner.weight.copy_(inner)
        feed_forward.outer.weight.copy_(outer)
    x = torch.full((400, MODEL_SIZE), 1 / MODEL_SIZE, dtype=torch.float64)
    # The first inner unit is 1, then 0 or 2; all channels of the output are that unit.
    output = feed_forward(x)
    torch.testing.assert_close(output, output[:, :1].expand_as(output))
    values = output[:, 0].round(decimals=9).unique().tolist()
    assert values == [0.0, 2.0]
    feed_forward.eval()
    torch.testing.assert_close(feed_forward(x), torch.ones_like(x))
