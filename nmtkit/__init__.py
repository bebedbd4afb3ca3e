r"""Train and run sequence-to-sequence Transformers.

import nmtkit

translator = nmtkit.load("model/", search=nmtkit.SearchConfig(beam=8))
for translation in translator.translate(["A sentence.", "And another one."]):
    print(translation.text)

The names in `__all__` are the Python API, imported when they are used; all else is internal.
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
    from nmtkit.decoding.answers import AlignedPair, Translation
    from nmtkit.decoding.scorer import ScoredLine
    from nmtkit.evaluation.metric import Score
else:
    _HOMES = {
        "AlignedPair": "nmtkit.decoding.answers",
        "Aligner": "nmtkit.api",
        "AligningConfig": "nmtkit.config.translation",
        "ConstraintsConfig": "nmtkit.config.translation",
        "LinksConfig": "nmtkit.config.translation",
        "MetricsConfig": "nmtkit.config.metrics",
        "OutputConfig": "nmtkit.config.translation",
        "RuntimeConfig": "nmtkit.config.schema",
        "SamplingConfig": "nmtkit.config.translation",
        "Score": "nmtkit.evaluation.metric",
        "ScoredLine": "nmtkit.decoding.scorer",
        "SearchConfig": "nmtkit.config.schema",
        "SignificanceConfig": "nmtkit.config.metrics",
        "Translation": "nmtkit.decoding.answers",
        "TranslationConfig": "nmtkit.config.translation",
        "Translator": "nmtkit.api",
        "evaluate": "nmtkit.api",
        "load": "nmtkit.api",
        "load_aligner": "nmtkit.api",
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
