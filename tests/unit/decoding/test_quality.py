"""Regressions of chrF, and calibrations that are stored with models."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.answers import Answer, Request, Translation
from nmtkit.decoding.quality import (
    Calibration,
    Floats,
    Regression,
    calibration_for,
    settings_of,
    stored_calibration,
)
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.storage.manifest import seal
from nmtkit.storage.model_description import CALIBRATION, hashes_of
from tests.messages import refuses
from tests.tiny import write_tiny_model

RECIPE = TranslateRecipe()
KNOWN = Regression([0.1, -1.0], [0.9, 1.0], [10.0, 50.0, 5.0], [2.0, 20.0, 0.0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a model with a calibration."""
    folder = write_tiny_model(tmp_path / "model")
    calibration_of(folder).save(folder)
    return folder


def calibration_of(folder: Path) -> Calibration:
    settings = settings_of(RECIPE.search, RECIPE.translation)
    return Calibration(hashes_of(folder), settings, 100, KNOWN)


def drawn_signals(num_lines: int) -> Floats:
    generator = np.random.default_rng(1)
    return np.stack([generator.uniform(0.1, 0.9, num_lines), generator.normal(size=num_lines)], 1)


def test_a_linear_law_is_learnt_exactly() -> None:
    signals = drawn_signals(50)
    chrf = 10 + 50 * signals[:, 0] + 5 * signals[:, 1]
    expected, error = Regression.learn(signals, chrf).predict(signals)
    assert expected == pytest.approx(chrf.clip(0, 100))
    assert error == pytest.approx(1)  # the smallest


def test_the_error_grows_where_the_noise_does() -> None:
    signals = drawn_signals(20_000)
    noise = np.random.default_rng(2).normal(size=len(signals)) * (2 + 20 * signals[:, 0])
    learnt = Regression.learn(signals, 40 + 10 * signals[:, 0] + noise)
    _, (low, high) = learnt.predict(np.array([[0.2, 0.0], [0.8, 0.0]]))
    assert (low, high) == (pytest.approx(6, rel=0.1), pytest.approx(18, rel=0.1))


def test_a_signal_outside_the_lines_counts_as_the_nearest_inside() -> None:
    inside, outside = np.array([[0.9, -1.0]]), np.array([[5.0, -9.0]])
    assert KNOWN.predict(outside) == KNOWN.predict(inside)


def test_expectations_are_scores_of_chrf() -> None:
    steep = replace(KNOWN, chrf=[0.0, 1000.0, -1000.0])
    expected, _ = steep.predict(np.array([[0.9, -1.0], [0.1, 1.0]]))
    assert expected.tolist() == [100, 0]


def test_each_translation_of_a_list_is_rated_by_its_own_signals(folder: Path) -> None:
    other = Translation("b", math.log(0.25), -1.0, ("b",), num_source_tokens=1)
    best = Translation(
        "a", 2 * math.log(0.5), -1.0, ("a", "c"), num_source_tokens=2, alternatives=(other,)
    )
    rated = calibration_of(folder).rated(Answer(Request("x"), best)).translation
    found = [(one.quality.chrf, one.quality.error) for one in rated.n_best if one.quality]
    assert found == [pytest.approx((35, 12)), pytest.approx((22.5, 7))]


BLANK = Translation("", 0.0, 0.0, ())
WHOLE = Translation("a", -1.0, -1.0, ("a",), num_source_tokens=1)


@pytest.mark.parametrize(
    ("request_", "translation"),
    [
        (Request(""), BLANK),
        (Request("a", target_prefix="a"), WHOLE),
        (Request("a", target_lang="sv"), WHOLE),
    ],
)
def test_what_was_not_learnt_is_not_rated(
    request_: Request, translation: Translation, folder: Path
) -> None:
    rated = calibration_of(folder).rated(Answer(request_, translation))
    assert rated.translation.quality is None


def test_a_calibration_is_read_as_it_was_stored(folder: Path) -> None:
    assert stored_calibration(folder) == calibration_of(folder)
    assert calibration_for([folder], RECIPE) == calibration_of(folder)


def test_a_calibration_is_for_one_model_and_its_search(folder: Path) -> None:
    with refuses(ConfigError, "quality ensemble; one model --quality"):
        calibration_for([folder, folder], RECIPE)
    search = SearchConfig(beam=5, stop_when="proved")
    with refuses(ConfigError, f"{folder} beam 4 5 stop_when finished proved; `nmtkit calibrate`"):
        calibration_for([folder], replace(RECIPE, search=search))
    lines = TranslationConfig(target_lang="sv", max_source_length=9, precision="bfloat16")
    with refuses(ConfigError, f"{folder} target_lang sv max_source_length 9; `nmtkit calibrate`"):
        calibration_for([folder], replace(RECIPE, translation=lines))
    rounded = replace(RECIPE, translation=TranslationConfig(precision="bfloat16"))
    assert calibration_for([folder], rounded) == calibration_of(folder)
    (folder / CALIBRATION.name).unlink()
    with refuses(ConfigError, f"{folder} no calibration; `nmtkit calibrate` --quality"):
        calibration_for([folder], RECIPE)


def test_a_calibration_of_another_model_is_refused(folder: Path) -> None:
    foreign = {"weights": "0", "codec": "0"}
    replace(calibration_of(folder), model=foreign).save(folder)
    with refuses(
        DamagedError, f"{folder}/{CALIBRATION.name} another model; delete `nmtkit calibrate`"
    ):
        stored_calibration(folder)


def without(*keys: str) -> Callable[[dict[str, Any]], object]:
    def remove(fields: dict[str, Any]) -> None:
        for key in keys[:-1]:
            fields = fields[key]
        del fields[keys[-1]]

    return remove


@pytest.mark.parametrize(
    "change",
    [
        without("regression"),
        without("regression", "error"),
        lambda fields: fields["regression"]["chrf"].pop(),
        lambda fields: fields.update(num_lines="many"),
    ],
)
def test_a_damaged_calibration_is_refused(
    change: Callable[[dict[str, Any]], object], folder: Path
) -> None:
    path = folder / CALIBRATION.name
    fields = json.loads(path.read_text())
    change(fields)
    for key in ("format", "version", "nmtkit", "sha256"):
        del fields[key]
    path.write_bytes(seal(CALIBRATION.format, CALIBRATION.version, fields))
    with refuses(DamagedError, f"{path} damaged; `nmtkit calibrate`"):
        stored_calibration(folder)
    path.write_text("{")
    with refuses(DamagedError, f"{path} damaged; `nmtkit calibrate`"):
        stored_calibration(folder)
