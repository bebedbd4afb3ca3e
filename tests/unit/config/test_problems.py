import pytest

from nmtkit.config.problems import MOST_SHOWN, Problem, raise_problems, shown, suggestion
from nmtkit.errors import ConfigError
from tests.messages import refuses


def test_a_message_has_the_first_problems_and_the_number_of_the_others() -> None:
    problems = [Problem((f"k{n}",), f"text {n}") for n in range(MOST_SHOWN + 2)]
    texts = [f"text {n}" for n in range(MOST_SHOWN)]
    with refuses(ConfigError, f"file {' '.join(texts)}; 2", recorded=False) as caught:
        raise_problems(problems, "file")
    assert f"text {MOST_SHOWN}" not in str(caught.value)


def test_an_unknown_word_has_a_suggestion() -> None:
    with refuses(ConfigError, "haeds; heads", recorded=False):
        raise_problems([Problem(("haeds",), "no 'haeds'", known=("heads", "norm"))])


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("average", "did you mean 'average-checkpoints'?"),
        ("trian", "did you mean 'train'?"),
        ("tr", "known are: train, translate, average-checkpoints"),
        ("", "known are: train, translate, average-checkpoints"),
    ],
)
def test_a_word_that_begins_one_known_word_is_completed(word: str, hint: str) -> None:
    assert suggestion(word, ["train", "translate", "average-checkpoints"]) == hint


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), ("a", "'a'"), ("\u00e4" * 99, "'" + "\\xe4" * 14 + "\\xe...")],
)
def test_a_value_is_shown_in_ascii_and_truncated(value: object, text: str) -> None:
    assert shown(value) == text
