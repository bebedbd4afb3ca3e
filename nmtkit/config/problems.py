"""Problems of a configuration, collected and raised as one error."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nmtkit.errors import ConfigError


@dataclass(frozen=True)
class Problem:
    """A problem of a configuration.

    Attributes:
        keys: names of the settings involved.
        text: the setting, its value, what is expected, how to fix it.
        is_idle: the first setting has no effect with the others.
    """

    keys: tuple[str, ...]
    text: str
    is_idle: bool = False


def raise_problems(problems: Sequence[Problem], where: str = "") -> None:
    """Raise one ConfigError with all problems, if there are any."""
    if problems:
        text = "; ".join(problem.text for problem in problems)
        raise ConfigError(f"{where}: {text}" if where else text)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a hint about an unknown word: the most similar known one, or all known ones."""
    candidates = list(known)
    close = difflib.get_close_matches(word, candidates, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are: {', '.join(candidates)}"
