"""Expected quality of translations: their chrF, predicted from what the search knows of them.

Two signals predict it: the geometric mean of the probabilities of the tokens, and the logarithm of
the tokens of a translation per token of its source. So a prediction costs nothing. A linear
regression is learnt on lines with references, and a second one predicts how far the first is off,
because the chrF of good lines varies more than that of bad ones.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.answers import Answer, Quality, Translation
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.storage.json_data import JsonError, decode, encode
from nmtkit.storage.model_description import CALIBRATION, hashes_of

Floats = NDArray[np.float64]

_OF_LINES = ("source_lang", "target_lang", "max_source_length", "on_too_long", "shortlist")
"""Settings of `TranslationConfig` by which translations differ, more than by rounding."""

NUM_SIGNALS = 2
_BEST = 100.0
"""The largest chrF."""

_SMALLEST_ERROR = 1.0
_DEVIATION = math.sqrt(math.pi / 2)
"""The standard deviation of a normal distribution, in units of its mean absolute value."""


def signals(translation: Translation) -> tuple[float, float]:
    """Return the signals of a translation that has tokens."""
    num_tokens = len(translation.tokens)
    return (
        math.exp(translation.log_prob / num_tokens),
        math.log(num_tokens / translation.num_source_tokens),
    )


@dataclass(frozen=True)
class Regression:
    """Predictions of the chrF of lines, and of their errors, from their signals.

    Attributes:
        low, high: the range of each signal in the lines that it was learnt from; a signal outside
            counts as the nearest value inside.
        chrf, error: the intercept, then the weight of each signal.
    """

    low: list[float]
    high: list[float]
    chrf: list[float]
    error: list[float]

    @property
    def has_all_weights(self) -> bool:
        """Whether there are as many numbers as signals."""
        ranges, weights = (self.low, self.high), (self.chrf, self.error)
        return all(len(one) == NUM_SIGNALS for one in ranges) and all(
            len(one) == NUM_SIGNALS + 1 for one in weights
        )

    @staticmethod
    def learn(signals_of_lines: Floats, chrf: Floats) -> "Regression":
        """Fit to lines by least squares: signals (N, 2) and their chrF (N,)."""
        inputs = _with_intercept(signals_of_lines)
        weights = np.linalg.lstsq(inputs, chrf)[0]
        residuals = np.abs(chrf - inputs @ weights) * _DEVIATION
        of_error = np.linalg.lstsq(inputs, residuals)[0]
        return Regression(
            signals_of_lines.min(0).tolist(),
            signals_of_lines.max(0).tolist(),
            weights.tolist(),
            of_error.tolist(),
        )

    def predict(self, signals_of_lines: Floats) -> tuple[Floats, Floats]:
        """Return the expected chrF (N,) and its standard error (N,) for signals (N, 2)."""
        inputs = _with_intercept(np.clip(signals_of_lines, self.low, self.high))
        expected = np.clip(inputs @ np.array(self.chrf), 0, _BEST)
        return expected, np.maximum(inputs @ np.array(self.error), _SMALLEST_ERROR)


def _with_intercept(signals_of_lines: Floats) -> Floats:
    return np.hstack([np.ones((len(signals_of_lines), 1)), signals_of_lines])


@dataclass(frozen=True)
class Calibration:
    """A regression, and the model and the search that it was learnt for.

    Attributes:
        model: the hashes of its weights and of its codec.
        settings: of the search and of the lines, by name.
        num_lines: the lines that it was learnt from.
        regression: the predictions.
    """

    model: Mapping[str, Any]
    settings: Mapping[str, Any]
    num_lines: int
    regression: Regression

    def save(self, folder: Path) -> None:
        """Store it with its model, which keeps its hash.

        Raises:
            ResourceError: no space, no permission, a failing disk.
        """
        CALIBRATION.write(folder, encode(self))

    def rated(self, answer: Answer) -> Answer:
        """Return an answer whose translations have their expected quality.

        Blank ones have none, nor those that begin with a forced prefix or are of another language.
        """
        request = answer.request
        target_lang = self.settings["target_lang"]
        if request.target_prefix or (request.target_lang or target_lang) != target_lang:
            return answer
        best, *others = map(self._rated, answer.translation.n_best)
        return replace(answer, translation=replace(best, alternatives=tuple(others)))

    def _rated(self, translation: Translation) -> Translation:
        if not translation.tokens:
            return translation
        (chrf,), (error,) = self.regression.predict(np.array([signals(translation)]))
        return replace(translation, quality=Quality(float(chrf), float(error)))


def stored_calibration(folder: Path) -> Calibration | None:
    """Return the calibration of a model folder; None if it has none.

    Raises:
        DamagedError: the file is damaged, of another version, or of another model.
    """
    fields = CALIBRATION.read(folder)
    if fields is None:
        return None
    try:
        found = decode(Calibration, fields)
        if not found.regression.has_all_weights:
            raise CALIBRATION.damaged(folder)
    except JsonError:
        raise CALIBRATION.damaged(folder) from None
    if found.model != hashes_of(folder):
        raise DamagedError(
            f"{folder / CALIBRATION.name}: belongs to another model; delete it, or run "
            "`nmtkit calibrate` again"
        )
    return found


def settings_of(search: SearchConfig, translation: TranslationConfig) -> dict[str, Any]:
    """Return the settings by which translations, and so their signals, differ."""
    return {**vars(search), **{name: getattr(translation, name) for name in _OF_LINES}}


def calibration_for(folders: Sequence[Path], recipe: TranslateRecipe) -> Calibration:
    """Return the calibration of a model for a search.

    Raises:
        ConfigError: there are several models, or it has none for this search.
        DamagedError: as `stored_calibration`.
    """
    if len(folders) > 1:
        raise ConfigError(
            "quality (True): a calibration is of one model, not of an ensemble; give one model, or "
            "leave out --quality"
        )
    found = stored_calibration(folders[0])
    if found is None:
        raise ConfigError(
            f"{folders[0]}: has no calibration; run `nmtkit calibrate` on lines with references, "
            "or leave out --quality"
        )
    differing = [
        f"{name} {found.settings[name]!r}, not {value!r}"
        for name, value in settings_of(recipe.search, recipe.translation).items()
        if found.settings.get(name, value) != value
    ]
    if differing:
        raise ConfigError(
            f"{folders[0]}: was calibrated with {' and '.join(differing)}; translate with the same "
            "settings, or run `nmtkit calibrate` with these"
        )
    return found
