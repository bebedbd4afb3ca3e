"""Translators from the paths of models."""

from collections.abc import Callable, Sequence
from pathlib import Path

from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError
from nmtkit.model_path import load_model
from nmtkit.runtime import set_up


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
        DamagedError: there is no model, or it is not whole.
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
    return Translator([one.model for one in loaded], first.codec, recipe, warn)
