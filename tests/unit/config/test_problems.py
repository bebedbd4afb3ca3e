import pytest

from nmtkit.config.problems import MOST_SHOWN, Problem, raise_problems, shown, suggestion
from nmtkit.errors import ConfigError


def test_a_message_has_the_first_problems_and_the_number_of_the_others() -> None:
    problems = [Problem((f"k{n}",), f"text {n}") for n in range(MOST_SHOWN + 2)]
    with pytest.raises(ConfigError) as caught:
        raise_problems(problems, "file")
    texts = [f"text {n}" for n in range(MOST_SHOWN)]
    assert str(caught.value) == f"file: {'; '.join(texts)}; and 2 more problems"


def test_an_unknown_word_has_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"^no 'haeds'; did you mean 'heads'\?$"):
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
