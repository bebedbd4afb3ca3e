"""Translators and scorers from the paths of models.

A module of its own, so that the translator and the scorer read no files.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from nmtkit.config.schema import ScoreRecipe, TranslateRecipe
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.scorer import Scorer
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError
from nmtkit.runtime.devices import choose_precision, set_up
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.storage.model_path import load_model
from nmtkit.text.codec import TextCodec


def load_translator(
    paths: Sequence[Path], recipe: TranslateRecipe, warn: Callable[[str], None]
) -> Translator:
    """Load models, and make them ready to translate together.

    Args:
        paths: of models, checkpoints or runs; at least one.
        recipe: how to translate, and on which device.
        warn: takes one-line warnings.

    Raises:
        ConfigError: their vocabularies differ; or there is no such device.
        DamagedError: there is no model or shortlist, or it is not whole.
    """
    device = set_up(recipe.runtime)
    loaded = [_load_prepared(path, device, recipe.translation.precision) for path in paths]
    first, *others = loaded
    for path, other in zip(paths[1:], others, strict=True):
        if other.codec.fingerprint != first.codec.fingerprint:
            raise ConfigError(
                f"{path}: has another vocabulary than {paths[0]}, so that the two cannot translate "
                "together; give models that were trained on one dataset"
            )
    models = [one.model for one in loaded]
    shortlist = _load_shortlist(recipe.translation.shortlist, paths[0], first.codec)
    return Translator(models, first.codec, recipe, warn, shortlist)


def load_scorer(path: Path, recipe: ScoreRecipe) -> Scorer:
    """Load a model, and make it ready to score.

    Args:
        path: of a model, checkpoint or run.
        recipe: how to score, and on which device.

    Raises:
        ConfigError: there is no such device, or it has not the precision.
        DamagedError: there is no model, or it is not whole.
    """
    loaded = _load_prepared(path, set_up(recipe.runtime), recipe.scoring.precision)
    return Scorer(loaded.model, loaded.codec, recipe.scoring)


def _load_prepared(path: Path, device: torch.device, precision: str) -> LoadedModel:
    """Load a model in the form that is fastest for inference in a precision."""
    loaded = load_model(path, device)
    loaded.model.prepare(choose_precision(precision, device, trained_size=None) or torch.float32)
    return loaded


def _load_shortlist(folder: str, model: Path, codec: TextCodec) -> Shortlist | None:
    if not folder:
        return None
    shortlist = Shortlist.load(Path(folder))
    if shortlist.codec != codec.fingerprint:
        raise ConfigError(
            f"{folder}: is the shortlist of another vocabulary than that of {model}; make one of "
            "the model's dataset by `nmtkit shortlist`"
        )
    return shortlist
