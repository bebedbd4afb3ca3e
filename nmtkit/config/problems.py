"""Problems of a configuration, collected and raised as one error."""

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from nmtkit.errors import ConfigError

MOST_SHOWN = 10
"""Problems in a message; of more, only the number is reported."""

LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Problem:
    """A problem of a configuration.

    Attributes:
        keys: names of the settings involved.
        text: the setting, its value, what is expected, how to fix it.
        known: if the first of `keys` is unknown, the known ones; the message suggests one.
        is_idle: the first setting has no effect with the others.
    """

    keys: tuple[str, ...]
    text: str
    known: Collection[str] = ()
    is_idle: bool = False


def raise_problems(problems: Sequence[Problem], where: str = "") -> None:
    """Raise one ConfigError with the problems, if there are any."""
    if problems:
        texts = [_described(problem) for problem in problems[:MOST_SHOWN]]
        if len(problems) > MOST_SHOWN:
            texts.append(f"and {len(problems) - MOST_SHOWN:,} more problems")
        text = "; ".join(texts)
        raise ConfigError(f"{where}: {text}" if where else text)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a hint about an unknown word: the most similar known one, or all known ones."""
    candidates = list(known)
    close = difflib.get_close_matches(word, candidates, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are: {', '.join(candidates)}"


def shown(value: object) -> str:
    """Return a value roughly as in TOML, truncated if it is long."""
    text = str(value).lower() if isinstance(value, bool) else ascii(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _described(problem: Problem) -> str:
    """Return the text of a problem; suggestions are slow, so only those that are shown are made."""
    if not problem.known:
        return problem.text
    return f"{problem.text}; {suggestion(problem.keys[0], problem.known)}"
