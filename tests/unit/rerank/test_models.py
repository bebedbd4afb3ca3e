import math
from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.config.rerank import FeatureSpec, feature_specs
from nmtkit.config.schema import RuntimeConfig, ScoringConfig
from nmtkit.decoding.forced import score_pairs
from nmtkit.decoding.loading import load_scorer
from nmtkit.decoding.scorer import Scorer
from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.rerank import models
from nmtkit.rerank.features import Pair
from nmtkit.rerank.models import Models, reversed_words
from tests.messages import refuses
from tests.tiny import tiny_codec, tiny_model
from tests.unit.rerank.builders import write_tiny_model

CODEC = tiny_codec()
TURNED = replace(CODEC, source_lang="de", target_lang="en")
PAIRS = [Pair("a b c", "A B", "x:1"), Pair("d", "", "x:2"), Pair("a b c", "C A B", "x:3")]


def opened(max_length: int = 4096) -> Models:
    scoring = ScoringConfig(precision="float32", max_length=max_length)
    return Models(scoring, RuntimeConfig(device="cpu", threads=1))


def spec(name: str) -> FeatureSpec:
    (one,) = feature_specs(name)
    return one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_tiny_model(folder / "en-de", CODEC)
    write_tiny_model(folder / "de-en", TURNED, seed=2)
    return folder


def test_each_kind_gives_its_texts_to_the_model(folder: Path) -> None:
    under_test = opened()
    texts = {
        f"forced:{folder}/en-de": [(one.source, one.translation) for one in PAIRS],
        f"backward:{folder}/de-en": [(one.translation, one.source) for one in PAIRS],
        f"right-to-left:{folder}/en-de": [("a b c", "B A"), ("d", ""), ("a b c", "B A C")],
    }
    for name, pairs in texts.items():
        model = tiny_model(CODEC, seed=2 if name.startswith("backward") else 1)
        ids = [(CODEC.encode_source(one), CODEC.encode_target(other)) for one, other in pairs]
        expected = [one.log_prob for one in score_pairs(model, ids, 99, None)]
        found = under_test.load(spec(name))(PAIRS)
        assert found == pytest.approx(expected, abs=1e-5)
        assert all(math.isfinite(one) and one < 0 for one in found)


def test_a_model_is_loaded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Path] = []

    def load(path: Path, scoring: ScoringConfig, runtime: RuntimeConfig) -> Scorer:
        loaded.append(path)
        return load_scorer(path, scoring, runtime)

    monkeypatch.setattr(models, "load_scorer", load)
    under_test = opened()
    for kind in ("forced", "right-to-left", "forced"):
        under_test.load(spec(f"{kind}:{folder}/en-de"))
    assert loaded == [folder / "en-de"]


@pytest.mark.parametrize(
    ("first", "second", "keys"),
    [
        ("forced:en-de", "backward:en-de", "forced:en-de; backward de en"),
        ("backward:de-en", "right-to-left:de-en", "backward:de-en; right-to-left en de"),
        ("forced:en-de", "forced:de-en", "forced:en-de; forced en de"),
    ],
)
def test_a_model_of_the_wrong_direction_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, keys: str
) -> None:
    monkeypatch.chdir(folder)
    under_test = opened()
    under_test.load(spec(first))
    with refuses(ConfigError, f"{second} {keys}"):
        under_test.load(spec(second))


def test_a_line_that_is_too_long_is_named_with_the_feature(folder: Path) -> None:
    score = opened(max_length=3).load(spec(f"backward:{folder}/de-en"))
    with refuses(DataError, f"x:1 backward:{folder}/de-en 4 3; --max-length"):
        score(PAIRS)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with refuses(DamagedError, f"{tmp_path} manifest.json"):
        opened().load(spec(f"forced:{tmp_path}"))


def test_words_are_reversed_and_their_white_space_is_one_space() -> None:
    assert reversed_words(" a  b\tc ") == "c b a"
    assert reversed_words("") == ""
