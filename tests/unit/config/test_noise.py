import pytest

from nmtkit.config.noise import MODIFIERS, noise_probabilities
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError

SYNTAX = (
    "must be MODIFIER=PROBABILITY, separated by commas, such as upper=0.07,typo=0.05; or none "
    "[training.noise]"
)


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


def test_modifiers_are_applied_in_the_order_of_the_table() -> None:
    text = ",".join(f"{name}=0.1" for name in reversed(MODIFIERS))
    assert [*noise_probabilities(text)] == [*MODIFIERS]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", f"noise ('') {SYNTAX}"),
        ("upper", f"noise ('upper') {SYNTAX}"),
        ("upper=", f"noise ('upper=') {SYNTAX}"),
        ("upper=0.1,,typo=0.1", f"noise ('upper=0.1,,typo=0.1') {SYNTAX}"),
        ("none,upper=0.1", f"noise ('none,upper=0.1') {SYNTAX}"),
        ("uper=0.1", "noise: no modifier 'uper'; did you mean 'upper'? [training.noise]"),
        ("=0.1", "noise: no modifier ''; known are: join-lines, drop-final-punctuation, typo, "),
        ("Upper=0.1", "noise: no modifier 'Upper'; did you mean 'upper'? [training.noise]"),
        *(
            (
                f"typo={number}",
                f"noise ('typo={number}'): the probability must be a number above 0 and at most 1, "
                "such as typo=0.05 [training.noise]",
            )
            for number in ("0", "-0.1", "1.01", "nan", "inf", "5%", "often", "0.1=0.2")
        ),
        (
            "typo=0.1,upper=0.1,typo=0.2",
            "noise ('typo=0.1,upper=0.1,typo=0.2') names typo twice; leave one out",
        ),
    ],
)
def test_other_text_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(TrainRecipe, {"noise": text})
    assert expected in str(caught.value)


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(ConfigError, match=r"no modifier 'lower'.*'typo=2'.*no modifier 'x'"):
        build(TrainRecipe, {"noise": "lower=0.1,typo=2,x=0.1"})
