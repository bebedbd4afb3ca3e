"""Every choice of the model's shape trains, is saved, read back and translates; so does a new one.

A new entry in the two tables, of facts and of implementations, is all that it takes.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmtkit.config import model as model_config
from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.loading import load_translator
from nmtkit.model import embedding, layers
from nmtkit.model.cost import count_parameters
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.run import train
from tests.tiny import VALID_LINES, tiny_dataset, tiny_train_recipe
from tests.translating import translate

CPU = torch.device("cpu")
NUM_UPDATES = 2


def train_and_translate(folder: Path, choice: dict[str, Any]) -> None:
    """Train, read what was saved, count its parameters and translate with it."""
    recipe = tiny_train_recipe(NUM_UPDATES, dropout=0.1)
    recipe = replace(recipe, model=replace(recipe.model, **choice))
    train(recipe, tiny_dataset(folder), folder / "run")
    last = RunFolder(folder / "run").last()
    assert last is not None
    loaded = load_model(last, CPU)
    assert vars(loaded.recipe.model).items() >= choice.items()
    sizes = (loaded.codec.source.size, loaded.codec.target.size)
    counted = count_parameters(loaded.recipe.model, *sizes, loaded.codec.is_shared).total
    assert counted == sum(p.numel() for p in loaded.model.parameters())
    translator = load_translator([last], TranslateRecipe(), pytest.fail)
    assert len([*translate(translator, VALID_LINES)]) == len(VALID_LINES)


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        *(("positions", name) for name in model_config.POSITIONS),
        *(("norm", name) for name in model_config.NORMS),
        *(("activation", name) for name in model_config.ACTIVATIONS),
    ],
)
def test_every_choice_trains_and_translates(setting: str, name: str, tmp_path: Path) -> None:
    train_and_translate(tmp_path, {setting: name})


class NoPositions(nn.Module):
    """A bag of words."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.size = config.model_size

    def forward(self, positions: Tensor, _longest: int) -> Tensor:
        return torch.zeros(*positions.shape, self.size, device=positions.device)


class SandwichNorm(layers.Residual):
    """x + LayerNorm(Dropout(f(x)))."""

    def enter(self, x: Tensor) -> Tensor:
        return x

    def leave(self, x: Tensor, result: Tensor) -> Tensor:
        inner: Tensor = self.norm(self.dropout(result))
        return x + inner


def test_a_new_position_encoding_needs_its_entries_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = model_config.PositionEncoding(is_learned=False, needs_even_size=False)
    monkeypatch.setitem(model_config.POSITIONS, "none", facts)
    monkeypatch.setitem(embedding.POSITIONS, "none", NoPositions)
    train_and_translate(tmp_path, {"positions": "none"})


def test_a_new_norm_needs_its_entries_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(model_config.NORMS, "sandwich", model_config.Norm(has_final_norm=True))
    monkeypatch.setitem(layers.NORMS, "sandwich", SandwichNorm)
    train_and_translate(tmp_path, {"norm": "sandwich"})


def test_a_new_activation_needs_its_entries_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(model_config.ACTIVATIONS, "tanh", model_config.Activation(1))
    monkeypatch.setitem(layers.ACTIVATIONS, "tanh", torch.tanh)
    train_and_translate(tmp_path, {"activation": "tanh"})
