r"""Train and run sequence-to-sequence Transformers.

import nmtkit

translator = nmtkit.load("model/", beam=8)
for translation in translator.translate(["A sentence.", "And another one."]):
    print(translation.text)

The names in `__all__` are the Python API, imported when they are used; all else is internal.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nmtkit.errors import ConfigError, DamagedError, DataError, NmtkitError, ResourceError
from nmtkit.version import __version__

if TYPE_CHECKING:
    from nmtkit.api import Translator, evaluate, load
    from nmtkit.decoding.answers import Translation
    from nmtkit.decoding.scorer import ScoredLine
    from nmtkit.evaluation.metric import Score
else:
    _HOMES = {
        "Score": "nmtkit.evaluation.metric",
        "ScoredLine": "nmtkit.decoding.scorer",
        "Translation": "nmtkit.decoding.answers",
        "Translator": "nmtkit.api",
        "evaluate": "nmtkit.api",
        "load": "nmtkit.api",
    }

    def __getattr__(name: str) -> object:
        """Import a public name at its first use."""
        if name not in _HOMES:
            raise AttributeError(f"module 'nmtkit' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        """Return the public names, also those that have not been imported."""
        return __all__


__all__ = [
    "ConfigError",
    "DamagedError",
    "DataError",
    "NmtkitError",
    "ResourceError",
    "Score",
    "ScoredLine",
    "Translation",
    "Translator",
    "__version__",
    "evaluate",
    "load",
]
