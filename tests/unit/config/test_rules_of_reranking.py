from typing import Any

import pytest

from nmtkit.config.schema import RerankRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError
from tests.messages import refuses


def recipe(**values: Any) -> RerankRecipe:
    return build(RerankRecipe, {"features": "model"} | values)


@pytest.mark.parametrize(
    ("features", "keys"),
    [
        ("", "features rerank.features; --features"),
        ("length,modle", "features modle; model rerank.features"),
        ("model,", "features ''; model length forced backward"),
        ("model:x", "features model; model rerank.features"),
        ("length:", "features length; length rerank.features"),
        ("forced", "features forced; forced:PATH rerank.features"),
        ("backward:", "features backward; backward:PATH"),
        ("right-to-left", "features right-to-left; right-to-left:PATH"),
        ("mbr", "features mbr; mbr:UTILITY"),
        ("mbr:ter", "features mbr ter; chrf bleu rerank.features"),
        ("command", "features command; command:NAME"),
        ("command:comet", "features comet; --metric-command rerank.features"),
        ("model,length,model,model", "features model; one rerank.features"),
    ],
)
def test_features_that_cannot_be_made_are_named(features: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        recipe(features=features)


def test_all_problems_of_features_are_reported_together() -> None:
    with refuses(ConfigError, "features forced; forced:PATH x mbr y") as caught:
        recipe(features="forced,x,mbr:y")
    assert str(caught.value).count("[rerank.features]") == 3


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"mbr": "exact"}, "mbr exact; out"),
        ({"max_tokens": 1}, "max_tokens 1 forced; out"),
        ({"device": "cpu"}, "device cpu forced; out"),
        ({"metric": "chrf", "tokenize": "char"}, "tokenize char chrf; out"),
    ],
)
def test_a_setting_without_effect_is_refused(values: dict[str, Any], keys: str) -> None:
    with refuses(ConfigError, keys):
        recipe(**values)


def test_the_tokenizer_has_an_effect_on_mbr_by_bleu() -> None:
    recipe(metric="chrf", tokenize="char", features="mbr:bleu")


@pytest.mark.parametrize(
    ("metric", "keys"),
    [
        ("bleu,chrf", "metric 'bleu,chrf'"),
        ("none", "metric 'none'; bleu chrf chrf++ ter moses-bleu"),
        ("blue", "metric 'blue'; 'bleu' metrics.metric"),
        ("brackets", "metric 'brackets'"),
        ("moses-bleu", "metric moses-bleu; --language-pair"),
    ],
)
def test_a_metric_that_cannot_tune_is_refused(metric: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        recipe(metric=metric)


def test_programs_without_a_usable_name_are_refused() -> None:
    with refuses(ConfigError, "metric_command q NAME=COMMAND"):
        recipe(metric_command=("q",), features="command:q")


def test_a_program_may_be_a_feature_or_the_metric() -> None:
    command = {"metric_command": ("x=cat",)}
    recipe(features="command:x,model", **command)
    recipe(metric="none", **command)
    with refuses(ConfigError, "metric_command 'x=cat'; out"):
        recipe(**command)
    with refuses(ConfigError, "tokenize char none; out"):
        recipe(metric="none", tokenize="char", **command)


def test_settings_with_an_effect_are_accepted() -> None:
    recipe(features="forced:m/,mbr:bleu", device="cpu", mbr="exact", precision="auto")
    recipe(features="right-to-left:m/,length", max_length=9, output_format="json")
    recipe(metric="moses-bleu", language_pair="en-de", lowercase=True)
