"""Problems of a configuration, gathered and raised as one error.

A module of its own, below the settings: all that check a configuration report with it.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nmtkit.errors import ConfigError


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        keys: names of the settings that take part in it.
        text: the setting, its value, what is expected, how to mend it.
    """

    keys: tuple[str, ...]
    text: str


def raise_problems(problems: Sequence[Problem], where: str = "") -> None:
    """Raise one ConfigError that tells all problems, if there are any."""
    if problems:
        told = "; ".join(problem.text for problem in problems)
        raise ConfigError(f"{where}: {told}" if where else told)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return how to mend an unknown word: the known one most like it, or else all of them."""
    candidates = list(known)
    close = difflib.get_close_matches(word, candidates, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are: {', '.join(candidates)}"
