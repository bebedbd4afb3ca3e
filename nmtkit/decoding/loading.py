"""Translators from the paths of models."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from nmtkit.config.schema import TranslateRecipe
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError
from nmtkit.model_path import load_model
from nmtkit.runtime import low_precision, set_up
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
    loaded = [load_model(path, device) for path in paths]
    first, *others = loaded
    for path, other in zip(paths[1:], others, strict=True):
        if other.codec.fingerprint != first.codec.fingerprint:
            raise ConfigError(
                f"{path}: has another vocabulary than {paths[0]}, so that the two cannot translate "
                "together; give models that were trained on one dataset"
            )
    models = [one.model for one in loaded]
    dtype = low_precision(recipe.translation.precision, device) or torch.float32
    for model in models:
        model.prepare(dtype)
    shortlist = _load_shortlist(recipe.translation.shortlist, paths[0], first.codec)
    return Translator(models, first.codec, recipe, warn, shortlist)


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
