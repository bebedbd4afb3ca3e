"""Frozen parameters: which they are, and what training leaves out because of them."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import TrainingConfig
from nmtkit.config.training_rules import PARTS
from nmtkit.data.batch import Batch, eos_batch
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer
from nmtkit.training.micro_batches import micro_batch_seed
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import describe_frozen, freeze
from nmtkit.training.trainer import Trainer
from nmtkit.training.updates import Start
from tests.messages import refuses
from tests.tiny import randomize, tiny_train_recipe, with_settings
from tests.training import CPU, assert_resumes, run_context, trainer_of

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


def frozen_names(model: Transformer) -> set[str]:
    """Return all names of the frozen parameters; a tied one has several."""
    named = model.named_parameters(remove_duplicate=False)
    return {name for name, parameter in named if not parameter.requires_grad}


def modules(model: Transformer) -> dict[str, list[Any]]:
    """Return the modules of each part, found by attributes and not by names of parameters."""
    layers: list[Any] = [*model.encoder, *model.decoder]
    return {
        "embeddings": [model.source_embedding, model.target_embedding],
        "source-embeddings": [model.source_embedding],
        "target-embeddings": [model.target_embedding],
        "encoder": [*model.encoder, model.encoder_norm],
        "decoder": [*model.decoder, model.decoder_norm],
        "self-attention": [layer.self_attention for layer in layers],
        "cross-attention": [layer.memory_attention for layer in model.decoder],
        "feed-forward": [layer.feed_forward for layer in layers],
        "norms": [
            *(part.norm for layer in layers for part in layer.residuals),
            *(model.encoder_norm, model.decoder_norm),
        ],
        "output": [model.projection],
        "encoder.2": [model.encoder[1]],
        "decoder.1-2": [model.decoder[0], model.decoder[1]],
    }


def test_the_parts_are_those_that_settings_know() -> None:
    assert [part for part in modules(model_of()) if "." not in part] == [*PARTS]


@pytest.mark.parametrize("part", modules(model_of()))
def test_a_part_is_the_parameters_of_its_modules(part: str) -> None:
    model = model_of()
    expected = {id(p) for module in modules(model)[part] for p in module.parameters()}
    if part == "output":
        expected.add(id(model.output_bias))
    freeze(model, (part,))
    assert {id(p) for p in model.parameters() if not p.requires_grad} == expected
    assert expected


def test_several_parts_are_frozen_together() -> None:
    model = model_of()
    freeze(model, ("encoder",))
    encoder = frozen_names(model)
    freeze(model, ("output",))
    both = model_of()
    freeze(both, ("encoder", "output"))
    assert frozen_names(both) == frozen_names(model) > encoder


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
    freeze(model, (part,))
    assert frozen_names(model) == names
    total = sum(p.numel() for p in model.parameters())
    assert describe_frozen(model, (part,)) == (
        f"frozen: {SOURCE * SIZE} of {total} parameters ({part}); tied, so frozen too: "
        + ", ".join(sorted(names - named))
    )
    assert [p is tensor for p in model.parameters() if not p.requires_grad] == [True]


def test_without_ties_the_line_names_none() -> None:
    model, parts = model_of(), ("source-embeddings", "output")
    freeze(model, parts)
    line = describe_frozen(model, parts)
    number = SOURCE * SIZE + 5 * SIZE + TARGET * SIZE + TARGET
    assert re.fullmatch(rf"frozen: {number} of \d+ parameters \(source-embeddings, output\)", line)


@pytest.mark.parametrize(
    ("tied", "parts", "tie"),
    [
        (False, ("embeddings", "encoder", "decoder", "output"), ""),
        (
            True,
            ("embeddings", "encoder.1-3", "decoder"),
            "tied projection.weight",
        ),
    ],
)
def test_a_model_that_is_frozen_whole_is_refused(
    tied: bool, parts: tuple[str, ...], tie: str
) -> None:
    model = model_of(tie_embeddings=tied, output_bias=False, norm="post")
    freeze(model, parts[1:])
    assert describe_frozen(model, parts[1:])
    freeze(model, parts)
    with refuses(ConfigError, f"freeze {' '.join(parts)}; {tie} part training.freeze"):
        describe_frozen(model, parts)


# ------------------------------------------------------------------------------- gradients


def gradients(model: Transformer, batch: Batch) -> dict[str, torch.Tensor | None]:
    torch.manual_seed(3)
    Objective(model, TrainingConfig(), None).train()(batch).loss.backward()
    return {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("part", modules(model_of()))
@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("activation_checkpointing", [False, True])
def test_the_gradients_of_all_others_are_those_of_the_whole_model(
    part: str, is_tied: bool, activation_checkpointing: bool
) -> None:
    model = model_of(tie_embeddings=is_tied, dropout=0.1)
    model._activation_checkpointing = activation_checkpointing
    randomize(model)
    batch = eos_batch([3, 3, 3], [3, 3, 3], CPU)
    expected = gradients(model, batch)
    model.zero_grad()
    freeze(model, (part,))
    frozen = frozen_names(model)
    for name, gradient in gradients(model, batch).items():
        if name in frozen:
            assert gradient is None, name
        else:
            found, whole = gradient, expected[name]
            assert found is not None, name
            assert whole is not None, name
            assert torch.equal(found, whole), name


# ---------------------------------------------------------------------------------- updates


def recipe_of(*parts: str, **training: Any) -> TrainRecipe:
    return tiny_train_recipe(max_updates=4, dropout=0.1, freeze=parts, **training)


def started(
    recipe: TrainRecipe, dataset: Dataset, folder: Path, low: torch.dtype | None = None
) -> Trainer:
    return trainer_of(replace(run_context(recipe, dataset, folder), low_precision=low))


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "parts",
    [
        ("encoder", "source-embeddings"),
        ("decoder.1",),
        ("self-attention", "cross-attention", "feed-forward"),
        ("encoder", "decoder"),
        ("output",),
    ],
)
@pytest.mark.parametrize("ema_decay", [0.0, 0.5])
@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_updates_change_all_but_the_frozen_weights(
    parts: tuple[str, ...],
    ema_decay: float,
    precision: torch.dtype | None,
    subword_dataset: Dataset,
    tmp_path: Path,
) -> None:
    recipe = recipe_of(*parts, update_tokens=60, max_tokens=30, ema_decay=ema_decay, clip_norm=1.0)
    recipe = with_settings(recipe, activation_checkpointing=precision is not None)
    trainer = started(recipe, subword_dataset, tmp_path, precision)
    state = trainer.train_state
    before, frozen = weights(state.model), frozen_names(state.model)
    for _ in range(3):
        assert trainer.update()
    for model in (state.model, state.published):
        for name, tensor in weights(model).items():
            assert torch.equal(tensor, before[name]) == (name in frozen), name
    assert all(state.model.get_parameter(name).grad is None for name in frozen)
    saved = {name.rpartition(".")[0] for name in state.state_tensors()}
    assert saved == before.keys() - frozen
    assert len(state.optimizer.state) == len(saved)


def test_the_updates_of_the_others_are_those_of_plain_torch(
    subword_dataset: Dataset, tmp_path: Path
) -> None:
    """The oracle is Adam of torch on the gradients of a model that is not frozen."""
    parts = ("encoder", "source-embeddings")
    trainer = started(
        recipe_of(*parts, update_tokens=60, max_tokens=60, clip_norm=0.05),
        subword_dataset,
        tmp_path / "frozen",
    )
    plain = started(recipe_of(update_tokens=60, max_tokens=60), subword_dataset, tmp_path / "plain")
    # The gradients of key biases are rounding alone, which Adam makes as large as any other.
    found, model = (one.train_state.model.double() for one in (trainer, plain))
    frozen = frozen_names(found)
    trained = [p for name, p in model.named_parameters() if name not in frozen]
    config = trainer.context.recipe.training
    adam = torch.optim.Adam(
        trained, betas=(config.adam_beta1, config.adam_beta2), eps=config.adam_epsilon
    )
    for number in range(1, 4):
        assert trainer.update()
        loaded = plain.loader.load(Start(plain.train_state.progress.position, number, 1))
        plain.train_state.progress.position = loaded.following.position
        (batch,) = loaded.micro_batches.values()
        torch.manual_seed(micro_batch_seed(plain.context.recipe.seed.seed, number, 0, 1))
        plain.objective(batch).loss.backward()
        for parameter in trained:
            assert parameter.grad is not None
            parameter.grad /= len(batch.target_out)
        torch.nn.utils.clip_grad_norm_(trained, 0.05)
        adam.param_groups[0]["lr"] = trainer._learning_rate()
        adam.step()
        model.zero_grad()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found.get_parameter(name), parameter, rtol=0, atol=1e-7)


def test_a_resumed_run_is_the_uninterrupted_one(data: Path, tmp_path: Path) -> None:
    recipe = recipe_of("encoder", "source-embeddings", ema_decay=0.5)
    assert_resumes(recipe, data, tmp_path, (1, 3, 4))


def test_training_reports_what_is_frozen(subword_dataset: Dataset, tmp_path: Path) -> None:
    stream = io.StringIO()
    trainer_of(run_context(recipe_of("output"), subword_dataset, tmp_path, stream=stream))
    assert "parameters (output); tied, so frozen too: source_embedding" in stream.getvalue()
