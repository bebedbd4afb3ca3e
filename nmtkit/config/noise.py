"""Modifiers that `--noise` names, and their rules.

`MODIFIERS` in nmtkit/text/noise.py changes the text.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nmtkit.config.metrics import NONE
from nmtkit.config.problems import Problem, shown, suggestion


@dataclass(frozen=True)
class Modifier:
    """Facts about a modifier.

    Attributes:
        changes_target: it changes both sides; otherwise only the source.
    """

    changes_target: bool


JOIN_LINES = "join-lines"

MODIFIERS = {
    JOIN_LINES: Modifier(changes_target=True),
    "drop-final-punctuation": Modifier(changes_target=True),
    "typo": Modifier(changes_target=False),
    "title": Modifier(changes_target=False),
    "upper": Modifier(changes_target=False),
}
"""Modifiers in the order in which they are applied to a pair."""


def noise_probabilities(text: str) -> dict[str, float]:
    """Return the probability of each modifier that a valid setting names, in the table's order."""
    if text == NONE:
        return {}
    given = {name: float(number) for name, number in map(_split, text.split(","))}
    return {name: given[name] for name in MODIFIERS if name in given}


def noise_problems(text: str) -> Iterator[Problem]:
    """Yield the problems of --noise that do not depend on the dataset; training finds the others.

    Args:
        text: comma-separated MODIFIER=PROBABILITY, or none.
    """
    if text == NONE:
        return
    named: set[str] = set()
    for entry in text.split(","):
        name, number = _split(entry)
        if not number:
            problem = (
                f"noise ({shown(text)}) must be MODIFIER=PROBABILITY, separated by commas, such as "
                f"upper=0.07,typo=0.05; or {NONE}"
            )
        elif name not in MODIFIERS:
            problem = f"noise: no modifier {shown(name)}; {suggestion(name, MODIFIERS)}"
        elif not _is_probability(number):
            problem = (
                f"noise ({shown(entry.strip())}): the probability must be a number above 0 and at "
                f"most 1, such as {name}=0.05"
            )
        elif name in named:
            problem = f"noise ({shown(text)}) names {name} twice; leave one out"
        else:
            named.add(name)
            continue
        yield Problem(("noise",), f"{problem} [training.noise]")


def _split(entry: str) -> tuple[str, str]:
    name, _, number = entry.partition("=")
    return name.strip(), number.strip()


def _is_probability(number: str) -> bool:
    try:
        return 0 < float(number) <= 1
    except ValueError:
        return False
