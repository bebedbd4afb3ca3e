from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from nmtkit.config import model as model_config
from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe, fields_of
from nmtkit.model.attention import CrossAttention, SelfAttention
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


Counterparts = list[tuple[list[Tensor], Tensor]]
"""Our parameters, and the one of torch that holds them below each other."""


def torch_encoder_layer(
    layer: EncoderLayer, norm: str
) -> tuple[nn.TransformerEncoderLayer, Counterparts]:
    """Return torch's layer with the parameters of ours."""
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
    counterparts = [
        *of_attention(
            layer.self_attention, [layer.self_attention.query_key_value], oracle.self_attn
        ),
        *of_rest(layer, oracle, [oracle.norm1, oracle.norm2]),
    ]
    copy(counterparts)
    return oracle, counterparts


def torch_decoder_layer(
    layer: DecoderLayer, norm: str
) -> tuple[nn.TransformerDecoderLayer, Counterparts]:
    """Return torch's layer with the parameters of ours."""
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
    own, memory = layer.self_attention, layer.memory_attention
    counterparts = [
        *of_attention(own, [own.query_key_value], oracle.self_attn),
        *of_attention(memory, [memory.query, memory.key_value], oracle.multihead_attn),
        *of_rest(layer, oracle, [oracle.norm1, oracle.norm2, oracle.norm3]),
    ]
    copy(counterparts)
    return oracle, counterparts


def of_attention(
    ours: SelfAttention | CrossAttention,
    projections: Sequence[nn.Linear],
    theirs: nn.MultiheadAttention,
) -> Counterparts:
    return [
        ([one.weight for one in projections], theirs.in_proj_weight),
        ([one.bias for one in projections], theirs.in_proj_bias),
        *of_module(ours.output, theirs.out_proj),
    ]


def of_rest(
    layer: EncoderLayer | DecoderLayer,
    oracle: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer,
    layer_norms: Sequence[nn.Module],
) -> Counterparts:
    counterparts = [
        *of_module(layer.feed_forward.inner, oracle.linear1),
        *of_module(layer.feed_forward.outer, oracle.linear2),
    ]
    for residual, layer_norm in zip(layer.residuals, layer_norms, strict=True):
        assert isinstance(residual, Residual)
        counterparts += of_module(residual.norm, layer_norm)
    return counterparts


def of_module(ours: nn.Module, theirs: nn.Module) -> Counterparts:
    named = dict(ours.named_parameters())
    return [([named[name]], other) for name, other in theirs.named_parameters()]


def copy(counterparts: Counterparts) -> None:
    with torch.no_grad():
        for ours, other in counterparts:
            other.copy_(torch.cat(ours))


def causal_mask(size: int) -> Tensor:
    """Mask with True at positions that must not be attended to: torch's convention here."""
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def assert_same_with_gradients(
    actual: Tensor, expected: Tensor, leaves: list[Tensor], counterparts: Counterparts
) -> None:
    """Compare our output and torch's, and the gradients of leaves and of each parameter."""
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=TOLERANCE)
    pairs = [*(([leaf], leaf) for leaf in leaves), *counterparts]
    weights = torch.randn_like(actual)
    ours = torch.autograd.grad((actual * weights).sum(), [one for own, _ in pairs for one in own])
    theirs = torch.autograd.grad((expected * weights).sum(), [other for _, other in pairs])
    found = iter(ours)
    for (own, _), gradient in zip(pairs, theirs, strict=True):
        together = torch.cat([next(found) for _ in own])
        torch.testing.assert_close(together, gradient, rtol=0.0, atol=TOLERANCE)


@norms
@pytest.mark.parametrize("sizes", [TARGET, [4, 4]], ids=["ragged", "rectangular"])
def test_the_encoder_layer_equals_torchs(sizes: list[int], norm: str) -> None:
    layer = EncoderLayer(config(norm, 0.0, 0.0))
    randomize(layer)
    oracle, counterparts = torch_encoder_layer(layer, norm)
    x, layout = random_values(sizes), Layout(sizes, CPU)
    actual = layer(x, partial(layer.self_attention, layout=layout, is_causal=False))
    expected = torch.cat([oracle(sentence[None])[0] for sentence in x.split(sizes)])
    assert_same_with_gradients(actual, expected, [x], counterparts)


@norms
def test_the_decoder_layer_equals_torchs(norm: str) -> None:
    layer = DecoderLayer(config(norm, 0.0, 0.0))
    randomize(layer)
    oracle, counterparts = torch_decoder_layer(layer, norm)
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
    assert_same_with_gradients(actual, expected, [x, memory], counterparts)


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
    assert [*NORMS] == [*model_config.NORMS] == [*fields["norm"].choices]
    assert [*ACTIVATIONS] == [*model_config.ACTIVATIONS] == [*fields["activation"].choices]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_tensors_that_the_backward_pass_of_an_activation_needs_are_counted(name: str) -> None:
    kept: list[Tensor] = []
    x = random_values([5])

    def keep(tensor: Tensor) -> Tensor:
        if not any(torch.equal(tensor, other) for other in kept):
            kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        keep(ACTIVATIONS[name](x).detach())
    assert len(kept) == model_config.ACTIVATIONS[name].num_kept


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("relu", lambda x: x.clamp(min=0)),
        ("silu", lambda x: x / (1 + (-x).exp())),
        ("squared-relu", lambda x: x * x.clamp(min=0)),
        ("swiglu", lambda x: x[:, :20] / (1 + (-x[:, :20]).exp()) * x[:, 20:]),
    ],
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
