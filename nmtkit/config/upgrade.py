"""Settings of recipes that earlier versions wrote, under the names and values of today.

A module of its own, since each renamed setting adds an entry here and nowhere else.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nmtkit.config.metrics import AUTO, NLL, NONE

NameAndValue = tuple[str, Any]


def _validate_bleu(old: Any) -> NameAndValue:
    if not isinstance(old, bool):
        return "validate_bleu", old  # version 0.1 refused it as well
    return "validate_metrics", AUTO if old else NONE


def _best_metric(old: Any) -> NameAndValue:
    return "best_metric", NLL if old == "loss" else old


_UPGRADES: Mapping[tuple[str, str], Callable[[Any], NameAndValue]] = {
    ("validation", "validate_bleu"): _validate_bleu,
    ("validation", "best_metric"): _best_metric,
}
"""Today's name and value of a setting, by its section and old name."""


def upgraded(section: str, name: str, value: Any) -> NameAndValue:
    """Return today's name and value of a setting; a setting of today is returned unchanged."""
    upgrade = _UPGRADES.get((section, name))
    return upgrade(value) if upgrade else (name, value)
