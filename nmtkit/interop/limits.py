"""What other formats limit: the length of sequences, the sizes and the reach of attention."""

from collections.abc import Collection, Iterator

from nmtkit.config.problems import Problem
from nmtkit.config.training import POSITIONS, ModelConfig

NUM_POSITIONS = 2048
"""Longest sequence of an exported model: other libraries hold the sinusoids as a table."""


def num_positions(config: ModelConfig) -> int:
    """Return the longest sequence that a model can read or write once it is exported."""
    is_learned = POSITIONS[config.positions].is_learned
    return config.max_positions if is_learned else NUM_POSITIONS


def attention_limits(config: ModelConfig) -> Iterator[Problem]:
    """Yield what others do not have: heads of other sizes than the model's, and windows."""
    own = config.model_size // config.heads
    for name, size in (("key_size", config.key_size), ("value_size", config.value_size)):
        if size * config.heads not in (0, config.model_size):
            yield refusal(name, size, f"model_size / heads ({own})")
    if config.window:
        yield refusal("window", config.window, "0")


def choice_limits(config: ModelConfig, name: str, known: Collection[str]) -> Iterator[Problem]:
    """Yield the problem of a choice that a format has no word for."""
    value = vars(config)[name]
    if value not in known:
        yield refusal(name, value, " or ".join(known))


def refusal(name: str, value: object, wanted: str) -> Problem:
    """Return the problem that a setting of the model is not the only one that a format knows."""
    return Problem((name,), f"{name} ({value}) must be {wanted} [model.{name}]")
