"""Frozen parameters: which they are, and what training leaves out because of them."""

import re
from typing import Any

import pytest
import torch

from nmtkit.config.freezing import FREEZABLE
from nmtkit.config.training import ModelConfig
from nmtkit.data.batch import Batch
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer
from nmtkit.training.compiling import eos_batch
from nmtkit.training.initialization import PARTS, describe_frozen, freeze, frozen_parameters
from nmtkit.training.objective import Objective
from tests.tiny import randomize
from tests.training import CPU

SIZE, LAYERS = 8, 3
# Each matrix has a size of its own, so numbers of parameters tell them apart.
SOURCE, TARGET = 11, 13


def model_of(*, is_shared: bool = False, **settings: Any) -> Transformer:
    """Return a model with all kinds of parameters, untied if nothing else is given."""
    shape: dict[str, Any] = {
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "model_size": SIZE,
        "feed_forward_size": 16,
        "heads": 2,
        "norm": "pre",
        "positions": "learned",
        "max_positions": 5,
        "tie_embeddings": False,
        "output_bias": True,
        "dropout": 0.0,
    }
    config = ModelConfig(**{**shape, **settings})
    target = SOURCE if is_shared else TARGET
    return Transformer(config, SOURCE, target, is_shared)


def modules(model: Transformer) -> dict[str, list[Any]]:
    """Return the modules of each part, found by attributes and not by names of parameters."""
    layers = [*model.encoder, *model.decoder]
    return {
        "embeddings": [model.source_embedding, model.target_embedding],
        "source-embeddings": [model.source_embedding],
        "target-embeddings": [model.target_embedding],
        "encoder": [*model.encoder, model.encoder_norm],
        "decoder": [*model.decoder, model.decoder_norm],
        "self-attention": [layer.self_attention for layer in layers],
        "cross-attention": [layer.memory_attention for layer in model.decoder],
        "feed-forward": [layer.feed_forward for layer in layers],
        "output": [model.projection],
        "encoder.2": [model.encoder[1]],
        "decoder.1-2": [model.decoder[0], model.decoder[1]],
    }


def test_every_part_has_its_parameters() -> None:
    assert tuple(PARTS) == FREEZABLE


@pytest.mark.parametrize("part", modules(model_of()))
def test_a_part_is_the_parameters_of_its_modules(part: str) -> None:
    model = model_of()
    expected = {id(p) for module in modules(model)[part] for p in module.parameters()}
    if part == "output":
        expected.add(id(model.output_bias))
    freeze(model, [part])
    assert {id(p) for p in model.parameters() if not p.requires_grad} == expected
    assert expected


def test_several_parts_are_frozen_together() -> None:
    model = model_of()
    both = frozen_parameters(model, ["encoder", "output"])
    assert both == frozen_parameters(model, ["encoder"]) | frozen_parameters(model, ["output"])


@pytest.mark.parametrize("part", ["source-embeddings", "target-embeddings", "output", "embeddings"])
def test_one_name_of_a_tied_tensor_freezes_it_and_says_so(part: str) -> None:
    model = model_of(is_shared=True, tie_embeddings=True, positions="sinusoidal", output_bias=False)
    tensor = model.projection.weight
    names = {
        "source_embedding.tokens.weight",
        "target_embedding.tokens.weight",
        "projection.weight",
    }
    named = {
        "source-embeddings": {"source_embedding.tokens.weight"},
        "target-embeddings": {"target_embedding.tokens.weight"},
        "output": {"projection.weight"},
        "embeddings": names - {"projection.weight"},
    }[part]
    assert frozen_parameters(model, [part]) == names
    total = sum(p.numel() for p in model.parameters())
    assert describe_frozen(model, [part]) == (
        f"frozen: {SOURCE * SIZE} of {total} parameters ({part}); tied, so frozen too: "
        + ", ".join(sorted(names - named))
    )
    freeze(model, [part])
    assert [p is tensor for p in model.parameters() if not p.requires_grad] == [True]


def test_without_ties_the_line_names_none() -> None:
    line = describe_frozen(model_of(), ["source-embeddings", "output"])
    number = SOURCE * SIZE + 5 * SIZE + TARGET * SIZE + TARGET
    assert re.fullmatch(rf"frozen: {number} of \d+ parameters \(source-embeddings, output\)", line)


@pytest.mark.parametrize(
    ("tied", "parts", "hint"),
    [
        (False, ["embeddings", "encoder", "decoder", "output"], ""),
        (
            True,
            ["embeddings", "encoder.1-3", "decoder"],
            "; tied, so frozen too: projection.weight",
        ),
    ],
)
def test_a_model_that_is_frozen_whole_is_refused(tied: bool, parts: list[str], hint: str) -> None:
    model = model_of(tie_embeddings=tied, output_bias=False, norm="post")
    message = (
        f"freeze ({', '.join(parts)}) leaves no parameter to train{hint}; leave out a part "
        "[training.freeze]"
    )
    with pytest.raises(ConfigError, match=re.escape(message)):
        describe_frozen(model, parts)
    assert describe_frozen(model, parts[1:])


# ------------------------------------------------------------------------------- gradients


def gradients(model: Transformer, batch: Batch) -> dict[str, torch.Tensor | None]:
    torch.manual_seed(3)
    Objective(model, 0.1, None).train()(batch).loss.backward()
    return {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("part", modules(model_of()))
@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("activation_checkpointing", [False, True])
def test_the_gradients_of_all_others_are_those_of_the_whole_model(
    part: str, is_tied: bool, activation_checkpointing: bool
) -> None:
    model = model_of(tie_embeddings=is_tied, dropout=0.1)
    model._activation_checkpointing = activation_checkpointing
    randomize(model)
    batch = eos_batch(9, 3, CPU)
    expected = gradients(model, batch)
    model.zero_grad()
    frozen = frozen_parameters(model, [part])
    freeze(model, [part])
    for name, gradient in gradients(model, batch).items():
        if name in frozen:
            assert gradient is None, name
        else:
            found, whole = gradient, expected[name]
            assert found is not None, name
            assert whole is not None, name
            assert torch.equal(found, whole), name
