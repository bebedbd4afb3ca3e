"""Which training pairs are kept; a drop always has one reason, so that drops can be counted."""

from typing import Literal, get_args

from nmtkit.config.schema import FilterConfig

Reason = Literal["empty", "too long", "ratio"]
REASONS: tuple[Reason, ...] = get_args(Reason)


def drop_reason(num_source: int, num_target: int, config: FilterConfig) -> Reason | None:
    """Return why a pair is dropped, or None if it is kept.

    Args:
        num_source, num_target: tokens of its sides, end symbols counted. The ratio is taken
            without them, so that it means what it says for short sentences too.
        config: the limits.
    """
    shorter, longer = sorted((num_source - 1, num_target - 1))
    if shorter == 0:
        return "empty"
    if longer + 1 > config.max_length:
        return "too long"
    if config.max_ratio and longer > config.max_ratio * shorter:
        return "ratio"
    return None
