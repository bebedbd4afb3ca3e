"""Settings of earlier recipes: their current names and values.

A module of its own: each renamed setting adds an entry here and nowhere else.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nmtkit.config.metrics import AUTO, NLL, NONE

NameAndValue = tuple[str, Any]


def _validate_bleu(old: Any) -> NameAndValue:
    if not isinstance(old, bool):
        return "validate_bleu", old  # an error, as it always was
    return "validate_metrics", AUTO if old else NONE


def _best_metric(old: Any) -> NameAndValue:
    return "best_metric", NLL if old == "loss" else old


def _renamed(name: str) -> Callable[[Any], NameAndValue]:
    return lambda value: (name, value)


_UPGRADES: Mapping[tuple[str, str], Callable[[Any], NameAndValue]] = {
    ("validation", "validate_bleu"): _validate_bleu,
    ("validation", "best_metric"): _best_metric,
    ("training", "average_decay"): _renamed("ema_decay"),
    ("engine", "recompute"): _renamed("activation_checkpointing"),
    ("search", "extra_length"): _renamed("max_length_offset"),
    ("constraints", "min_length"): _renamed("min_length_offset"),
    ("breakdown", "sentence"): _renamed("sentence_level"),
}
"""Functions from an old value to the current name and value, by section and old name."""


def upgraded(section: str, name: str, value: Any) -> NameAndValue:
    """Return the current name and value of a setting; current settings are unchanged."""
    upgrade = _UPGRADES.get((section, name))
    return upgrade(value) if upgrade else (name, value)
