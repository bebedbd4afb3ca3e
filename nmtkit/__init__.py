r"""Train and run sequence-to-sequence Transformers.

import nmtkit

translator = nmtkit.load("model/", search=nmtkit.SearchConfig(beam=8))
for translation in translator.translate(["A sentence.", "And another one."]):
    print(translation.text)

The names in `__all__` are the Python API, imported from nmtkit/api.py when they are used; all else
is internal.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nmtkit.errors import ConfigError, DamagedError, DataError, NmtkitError, ResourceError
from nmtkit.version import __version__

if TYPE_CHECKING:
    from nmtkit.api import Aligner, Translator, evaluate, load, load_aligner
    from nmtkit.config.metrics import MetricsConfig, SignificanceConfig
    from nmtkit.config.schema import RuntimeConfig, SearchConfig
    from nmtkit.config.translation import (
        AligningConfig,
        ConstraintsConfig,
        LinksConfig,
        OutputConfig,
        SamplingConfig,
        TranslationConfig,
    )
    from nmtkit.decoding.answers import AlignedPair, ScoredLine, Translation
    from nmtkit.evaluation.metric import Score
else:

    def __getattr__(name: str) -> object:
        """Import a public name at its first use."""
        if name not in __all__:
            raise AttributeError(f"module 'nmtkit' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module("nmtkit.api"), name)
        return value

    def __dir__() -> list[str]:
        """Return the public names, also those that have not been imported."""
        return __all__


__all__ = [
    "AlignedPair",
    "Aligner",
    "AligningConfig",
    "ConfigError",
    "ConstraintsConfig",
    "DamagedError",
    "DataError",
    "LinksConfig",
    "MetricsConfig",
    "NmtkitError",
    "OutputConfig",
    "ResourceError",
    "RuntimeConfig",
    "SamplingConfig",
    "Score",
    "ScoredLine",
    "SearchConfig",
    "SignificanceConfig",
    "Translation",
    "TranslationConfig",
    "Translator",
    "__version__",
    "evaluate",
    "load",
    "load_aligner",
]
