import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmtkit.decoding.attention import all_weights
from nmtkit.errors import DamagedError, DataError
from nmtkit.model.attention import MemoryAttention, SelfAttention
from nmtkit.model.transformer import Transformer
from nmtkit.symbols import EOS_ID
from tests.tiny import tiny_codec, tiny_model

SOURCE, TARGET = [3, 4, 5, 6, EOS_ID], [7, 8, 9, EOS_ID]
TOLERANCE = 1e-6
"""The model computes in float64, and the weights are returned as float32."""


@pytest.fixture(scope="module")
def model() -> Transformer:
    return tiny_model(tiny_codec()).double()


def passes(attentions: Sequence[nn.Module], model: Transformer) -> list[tuple[Tensor, Tensor]]:
    """Return what each attention projects to values, and what it puts out, in a real pass."""
    seen: list[tuple[Tensor, Tensor]] = []

    def see(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], out: Tensor) -> None:
        memory = named.get("memory")
        seen.append((arguments[0] if memory is None else memory.values, out))

    handles = [one.register_forward_hook(see, with_kwargs=True) for one in attentions]
    all_weights(model, SOURCE, TARGET)
    for handle in handles:
        handle.remove()
    return seen


def values(attention: SelfAttention | MemoryAttention, attended: Tensor) -> Tensor:
    """Return the values of each head: (H, S, U)."""
    joint = (
        attention.query_key_value if isinstance(attention, SelfAttention) else attention.key_value
    )
    projected: Tensor = joint(attended).split(attention.sizes, -1)[-1]
    heads: Tensor = projected.unflatten(-1, (attention.heads, -1))
    return heads.transpose(0, 1)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "memory"])
def test_weights_times_values_are_what_the_model_computes(kind: str, model: Transformer) -> None:
    attentions: dict[str, list[SelfAttention | MemoryAttention]] = {
        "encoder": [layer.self_attention for layer in model.encoder],
        "decoder": [layer.self_attention for layer in model.decoder],
        "memory": [layer.memory_attention for layer in model.decoder],
    }
    found = dataclasses.asdict(all_weights(model, SOURCE, TARGET))[kind].double()
    lengths = {"encoder": (5, 5), "decoder": (4, 4), "memory": (4, 5)}
    assert found.shape == (2, 2, *lengths[kind])
    seen = passes(attentions[kind], model)
    with torch.inference_mode():
        for own, weights, (attended, output) in zip(attentions[kind], found, seen, strict=True):
            context = (weights @ values(own, attended)).transpose(0, 1).flatten(1)
            torch.testing.assert_close(own.output(context), output, rtol=0, atol=TOLERANCE)


def test_rows_sum_to_1_and_the_decoder_does_not_look_ahead(model: Transformer) -> None:
    found = all_weights(model, SOURCE, TARGET)
    assert found.decoder is not None
    assert found.memory is not None
    for weights in (found.encoder, found.decoder, found.memory):
        assert weights.dtype == torch.float32
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert not found.decoder.triu(1).any()
    assert found.encoder.triu(1).any()


def test_a_source_alone_has_the_encoders_attention_only(model: Transformer) -> None:
    alone, with_target = all_weights(model, SOURCE, None), all_weights(model, SOURCE, TARGET)
    assert (alone.decoder, alone.memory) == (None, None)
    assert torch.equal(alone.encoder, with_target.encoder)


def test_a_damaged_model_is_told() -> None:
    model = tiny_model(tiny_codec())
    nn.init.constant_(model.encoder[1].self_attention.query_key_value.weight, float("nan"))
    with pytest.raises(DamagedError, match="weights are not numbers, so the model is damaged"):
        all_weights(model, SOURCE, None)


def test_a_sequence_beyond_the_learned_positions_is_refused() -> None:
    codec = tiny_codec()
    plain = tiny_model(codec)
    config = dataclasses.replace(plain.config, positions="learned", max_positions=4)
    model = Transformer(config, codec.source.size, codec.target.size, codec.is_shared).eval()
    with pytest.raises(DataError, match="position"):
        all_weights(model, SOURCE, None)
