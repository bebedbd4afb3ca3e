import pytest

from nmtkit.config.problems import MOST_SHOWN, Problem, raise_problems, shown
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
    ("value", "text"),
    [(True, "true"), ("a", "'a'"), ("\u00e4" * 99, "'" + "\\xe4" * 14 + "\\xe...")],
)
def test_a_value_is_shown_in_ascii_and_truncated(value: object, text: str) -> None:
    assert shown(value) == text
