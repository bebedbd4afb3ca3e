r"""Train and run sequence-to-sequence Transformers.

import nmtkit

translator = nmtkit.load("model/")
print(*translator.translate(["A sentence.", "And another one."]), sep="\n")
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from nmtkit.version import __version__ as __version__

if TYPE_CHECKING:
    from nmtkit.config.schema import TranslateRecipe
    from nmtkit.decoding.translator import Translator


def load(*paths: str | Path, recipe: "TranslateRecipe | None" = None) -> "Translator":
    """Load a model, ready to translate.

    Args:
        paths: a model, a checkpoint or a run; several are an ensemble.
        recipe: settings, checked by the rules of the command, so that n_best above 1 needs
            output_format "json"; None = the defaults of `nmtkit translate`.

    Raises:
        nmtkit.errors.ConfigError: settings are out of range, contradict each other, or require
            several processes.
        nmtkit.errors.NmtkitError: see `nmtkit.decoding.loading.load_translator`.
    """
    from nmtkit.config.schema import TranslateRecipe
    from nmtkit.config.validate import require_valid
    from nmtkit.decoding.loading import load_translator
    from nmtkit.errors import ConfigError

    recipe = recipe or TranslateRecipe()
    require_valid(recipe)
    if recipe.translation.devices != 1:
        raise ConfigError(
            f"devices ({recipe.translation.devices}): nmtkit.load uses this process only; call "
            "nmtkit.decoding.workers.open_translator [translation.devices]"
        )
    return load_translator(list(map(Path, paths)), recipe, warnings.warn)
