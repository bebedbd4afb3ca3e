"""Settings of recipes that earlier versions wrote, under the names and values of today."""

from collections.abc import Callable, Mapping
from typing import Any

from nmtkit.config.metrics import AUTO, NLL, NONE

NameAndValue = tuple[str, Any]

_UPGRADES: Mapping[tuple[str, str], Callable[[Any], NameAndValue]] = {
    ("validation", "validate_bleu"): lambda old: ("validate_metrics", AUTO if old else NONE),
    ("validation", "best_metric"): lambda old: ("best_metric", NLL if old == "loss" else old),
}
"""Today's name and value of a setting, from its section, old name and old value."""


def upgraded(section: str, name: str, value: Any) -> NameAndValue:
    """Return today's name and value of a setting; a setting of today is returned unchanged."""
    upgrade = _UPGRADES.get((section, name))
    return upgrade(value) if upgrade else (name, value)
