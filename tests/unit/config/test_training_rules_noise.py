import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.config.training_rules import (
    MODIFIERS,
    annotation_probabilities,
    noise_probabilities,
)
from nmtkit.errors import ConfigError
from tests.messages import refuses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", {}),
        ("upper=0.07", {"upper": 0.07}),
        (" upper = 1 , typo=1e-3 ", {"typo": 0.001, "upper": 1.0}),
    ],
)
def test_probabilities_are_read(text: str, expected: dict[str, float]) -> None:
    assert noise_probabilities(build(TrainRecipe, {"noise": text}).training.noise) == expected


def test_annotations_are_named_as_noise_is() -> None:
    recipe = build(TrainRecipe, {"annotate": "terms=0.2,tags=0.1"})
    assert annotation_probabilities(recipe.training.annotate) == {"tags": 0.1, "terms": 0.2}
    with refuses(ConfigError, "annotate tag; tags training.annotate"):
        build(TrainRecipe, {"annotate": "tag=0.1"})


def test_modifiers_are_applied_in_the_order_of_the_table() -> None:
    text = ",".join(f"{name}=0.1" for name in reversed(MODIFIERS))
    assert [*noise_probabilities(text)] == [*MODIFIERS]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", "noise ''"),
        ("upper", "noise upper"),
        ("upper=", "noise upper="),
        ("upper=0.1,,typo=0.1", "noise '' upper=0.07"),
        ("none,upper=0.1", "noise none"),
        ("uper=0.1", "noise uper; upper training.noise"),
        ("=0.1", "noise ''; join-lines drop-final-punctuation typo"),
        ("Upper=0.1", "noise Upper; upper training.noise"),
        *(
            (
                f"typo={number}",
                f"noise typo={number} 0 1 upper=0.07 training.noise",
            )
            for number in ("0", "-0.1", "1.01", "nan", "inf", "5%", "often", "0.1=0.2")
        ),
        ("typo=0.1,upper=0.1,typo=0.2", "noise typo twice"),
    ],
)
def test_other_text_is_refused(text: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        build(TrainRecipe, {"noise": text})


def test_all_problems_are_reported_together() -> None:
    with refuses(ConfigError, "noise lower typo=2 x training.noise"):
        build(TrainRecipe, {"noise": "lower=0.1,typo=2,x=0.1"})
