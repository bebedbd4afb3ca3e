"""Problems of a configuration, collected and raised as one error."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nmtkit.config.other_toolkits import answer_to_word
from nmtkit.config.schema import Field, Recipe, fields_of, flag_of, values_of
from nmtkit.config.setting import GIVEN
from nmtkit.errors import ConfigError

MOST_SHOWN = 10
"""Problems in a message; of more, only the number is reported."""

MOST_LISTED = 30
"""Known settings in a message; of more, none is listed."""

LONGEST_SHOWN = 60

MIN_SIMILARITY, MOST_LETTERS = 0.66, 2
"""Similarity of a misspelled word and a known one, as `difflib` measures it, and the letters by
which their lengths differ. Three letters, of which one is wrong, have 0.67. A word that begins a
known one has more letters."""


@dataclass(frozen=True)
class Problem:
    """A problem of a configuration.

    Attributes:
        keys: names of the settings involved; `placed` adds the place of the first one to the text.
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
        raise ConfigError(": ".join(filter(None, [where, text_of(problems)])))


def text_of(problems: Sequence[Problem]) -> str:
    """Return the texts of the first problems, and the number of the others."""
    texts = [_described(problem) for problem in problems[:MOST_SHOWN]]
    if len(problems) > MOST_SHOWN:
        texts.append(f"and {len(problems) - MOST_SHOWN:,} more problems")
    return "; ".join(texts)


def placed(recipe: Recipe, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems of a recipe with the place of the first of their settings."""
    fields = fields_of(type(recipe))
    for problem in problems:
        yield replace(problem, text=f"{problem.text} {fields[problem.keys[0]].place}")


def without_effect(
    recipe: Recipe, names: Collection[str], when: str, *causes: str
) -> Iterator[Problem]:
    """Yield a problem for each of the named settings that differs from its default.

    Args:
        recipe: all settings.
        names: the settings without effect.
        when: the condition, for the message.
        causes: settings of the condition; nothing is reported if one of them has a problem.
    """
    fields, values = fields_of(type(recipe)), values_of(recipe)
    assert {*names} <= fields.keys(), names
    for name, field in fields.items():
        if name in names and values[name] != field.default:
            yield Problem(
                (name, *causes),
                f"{name} ({values[name]}) has no effect {when}; leave it out",
                is_idle=True,
            )


def excluded(recipe: Recipe, names: Collection[str], other: str, reason: str) -> Iterator[Problem]:
    """Yield a problem for each of the named settings that another one does not permit."""
    fields, values = fields_of(type(recipe)), values_of(recipe)
    for name in names:
        if values[name] != fields[name].default:
            yield Problem(
                (name, other),
                f"{name} ({values[name]}) {reason}; leave out {fields[name].flag} or "
                f"{fields[other].flag}",
            )


def at_most(name: str, number: float, limit: str, most: float) -> Iterator[Problem]:
    """Yield a problem if a setting is above another one, its limit."""
    if number > most:
        yield Problem(
            (name, limit),
            f"{name} ({number}) must be at most {limit} ({most}); change it, or {flag_of(limit)}",
        )


def unknown_names(
    what: str, names: Iterable[str], known: Collection[str], *keys: str
) -> Iterator[Problem]:
    """Yield a problem of the settings `keys` for each name that is not a known one."""
    for name in names:
        if name not in known:
            yield Problem(keys, f"no {what} {shown(name)}; {suggestion(name, known, what)}")


def declared_effects(recipe: Recipe) -> Iterator[Problem]:
    """Yield a problem for each setting without effect by its `Setting.only_with`."""
    fields, values = fields_of(type(recipe)), values_of(recipe)
    for name, one in fields.items():
        for cause, effective in one.only_with.items():
            if cause in values and not _is_among(values[cause], effective):
                when = _condition(fields[cause], values[cause], effective)
                yield from without_effect(recipe, (name,), when, cause)
                break


def _is_among(value: object, effective: Collection[object]) -> bool:
    return bool(value) if effective is GIVEN else value in effective


def _condition(cause: Field, value: object, effective: Collection[object]) -> str:
    """Return in terms of its flag that a setting has a value without effect."""
    flag = cause.flag
    if isinstance(value, bool):
        return f"{'with' if value else 'without'} {flag}"
    if effective is GIVEN:
        return f"without {flag}"
    if value == cause.default:
        *others, last = map(str, effective)
        return f"without {flag} {' or '.join(filter(None, [', '.join(others), last]))}"
    return f"with {flag} {value}"


def named_twice(setting: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem of a setting for each name that is in its value more than once."""
    for name in dict.fromkeys(names):
        if name and names.count(name) > 1:
            yield Problem((setting,), f"{setting} names {shown(name)} twice; leave one out")


def suggestion(word: str, known: Iterable[str], place: str = "") -> str:
    """Return a hint about an unknown word: an answer, a known word that it resembles, or all.

    Args:
        word: the word.
        known: the known ones.
        place: the setting whose value it is, or "commands", if answers to it may be known.
    """
    candidates = list(known)
    answer = answer_to_word(word, place) or misspelled(word, candidates)
    return answer or f"known are: {', '.join(candidates)}"


def misspelled(word: str, known: Collection[str]) -> str:
    """Return the question for the known word that is closest; or ""."""
    found = closest(word, known)
    return f"did you mean {found!r}?" if found else ""


def closest(word: str, known: Collection[str], min_similarity: float = MIN_SIMILARITY) -> str:
    """Return the shortest known word that a word begins, or the one that it misspells; or ""."""
    lower = word.lower()
    by_length = sorted(known, key=len)
    begun = [one for one in by_length if len(lower) > MOST_LETTERS and one.startswith(lower)]
    alike = [one for one in by_length if abs(len(one) - len(lower)) <= MOST_LETTERS]
    close = difflib.get_close_matches(lower, alike, 1, min_similarity)
    return next(iter([*begun, *close]), "")


def shown(value: object) -> str:
    """Return a value roughly as in TOML, truncated if it is long."""
    text = str(value).lower() if isinstance(value, bool) else ascii(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _described(problem: Problem) -> str:
    """Return the text of a problem; suggestions are slow, so only those that are shown are made."""
    key, known = problem.keys[0], problem.known
    if not known:
        return problem.text
    if len(known) > MOST_LISTED:
        hint = answer_to_word(key, "") or misspelled(key, known) or "`--print-config` prints all"
        return f"{problem.text}; {hint}"
    return f"{problem.text}; {suggestion(key, known)}"
