"""Problems of a configuration, collected and raised as one error."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.schema import Recipe
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


def without_effect(
    recipe: Recipe, names: tuple[str, ...], when: str, *causes: str
) -> Iterator[Problem]:
    """Yield a problem for each of the named settings that differs from its default.

    Args:
        recipe: all settings.
        names: the settings without effect.
        when: the condition, for the message.
        causes: settings of the condition; nothing is reported if one of them has a problem.
    """
    fields, values = fields_of(type(recipe)), values_of(recipe)
    for name in names:
        if values[name] != fields[name].default:
            yield Problem(
                (name, *causes),
                f"{name} ({values[name]}) has no effect {when}; leave it out "
                f"[{fields[name].section}.{name}]",
                is_idle=True,
            )


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a hint about an unknown word.

    It is the known word that it begins, if there is only one, or the most similar one, or all.
    """
    candidates = list(known)
    begun = [one for one in candidates if word and one.startswith(word)]
    close = begun if len(begun) == 1 else difflib.get_close_matches(word, candidates, n=1)
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
