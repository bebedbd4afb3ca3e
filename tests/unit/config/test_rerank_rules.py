import re
from typing import Any

import pytest

from nmtkit.config.schema import RerankRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError


def recipe(**values: Any) -> RerankRecipe:
    return build(RerankRecipe, {"features": "model"} | values)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("", "features is missing; give --features [rerank.features]"),
        ("length,modle", "features: no feature 'modle'; did you mean 'model'? [rerank.features]"),
        ("model,", "features: no feature ''; known are: model, length, forced, backward, "),
        ("model:x", "features: model has no argument; write model [rerank.features]"),
        ("length:", "features: length has no argument; write length [rerank.features]"),
        ("forced", "features: forced needs an argument; write forced:PATH [rerank.features]"),
        ("backward:", "features: backward needs an argument; write backward:PATH"),
        ("right-to-left", "features: right-to-left needs an argument; write right-to-left:PATH"),
        ("mbr", "features: mbr needs an argument; write mbr:UTILITY"),
        ("mbr:ter", "features: no mbr of 'ter'; known are: chrf, bleu [rerank.features]"),
        ("command", "features: command needs an argument; write command:NAME"),
        (
            "command:comet",
            "features: no program 'comet'; give --metric-command comet='PROGRAM ...' "
            "[rerank.features]",
        ),
        ("model,length,model,model", "features: model is named twice [rerank.features]"),
    ],
)
def test_features_that_cannot_be_made_are_named(features: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        recipe(features=features)


def test_all_problems_of_features_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(features="forced,x,mbr:y")
    assert str(caught.value).count("[rerank.features]") == 3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mbr": "exact"}, "mbr (exact) has no effect without a feature such as mbr; leave it out"),
        ({"max_tokens": 1}, "max_tokens (1) has no effect without a feature such as forced"),
        ({"device": "cpu"}, "device (cpu) has no effect without a feature such as forced"),
        ({"metric": "chrf", "tokenize": "char"}, "tokenize (char) has no effect on chrf"),
    ],
)
def test_a_setting_without_effect_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        recipe(**values)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("bleu,chrf", "metric ('bleu,chrf') cannot tune; "),
        ("none", "metric ('none') cannot tune; known are: bleu, chrf, chrf++, ter, moses-bleu, pa"),
        ("blue", "metric ('blue') cannot tune; did you mean 'bleu'? [metrics.metric]"),
        ("brackets", "metric ('brackets') cannot tune; "),
        ("moses-bleu", "metric moses-bleu needs the languages; give --language-pair, such as en-"),
    ],
)
def test_a_metric_that_cannot_tune_is_refused(metric: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        recipe(metric=metric)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (("q",), "metric_command ('q') must be NAME=COMMAND"),
        (("q=a", "q=b"), "metric_command names q twice"),
        (("bleu=a",), "metric_command: bleu is a metric, or a key of --json"),
        (("a b=a",), "metric_command: the name 'a b' must be letters"),
    ],
)
def test_programs_without_a_usable_name_are_refused(
    commands: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        recipe(metric_command=commands, features="command:q")


def test_a_program_may_be_a_feature_or_the_metric() -> None:
    command = {"metric_command": ("x=cat",)}
    recipe(features="command:x,model", **command)
    recipe(metric="none", **command)
    with pytest.raises(
        ConfigError, match=r"^metric_command \(\('x=cat',\)\) has no effect without"
    ):
        recipe(**command)
    with pytest.raises(ConfigError, match=r"^tokenize \(char\) has no effect on none; leave it"):
        recipe(metric="none", tokenize="char", **command)


def test_settings_with_an_effect_are_accepted() -> None:
    recipe(features="forced:m/,mbr:bleu", device="cpu", mbr="exact", precision="auto")
    recipe(features="right-to-left:m/,length", max_length=9, output_format="json")
    recipe(metric="moses-bleu", language_pair="en-de", lowercase=True)
