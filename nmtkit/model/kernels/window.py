"""Windows of attention: the keys of a sentence that a query may attend to, by position.

Source: paper, section 3.2.3, for full and causal attention; section 4 for self-attention
"restricted to considering only a neighborhood of size r".
"""

from dataclasses import dataclass

UNLIMITED = -1


@dataclass(frozen=True)
class Window:
    """Positions to the left and right of a query that it attends to; -1 = all of that side.

    This is the pair `window_size` of flash attention.
    """

    left: int
    right: int

    @property
    def is_limited(self) -> bool:
        """Whether both sides are limited, so the work is linear in the tokens."""
        return UNLIMITED not in (self.left, self.right)


FULL = Window(UNLIMITED, UNLIMITED)
"""The whole sentence, as in the encoder and over the memory."""

CAUSAL = Window(UNLIMITED, 0)
"""The query's own position and those before it, as in the decoder."""


def self_attention_window(size: int, is_causal: bool, longest: int) -> Window:
    """Return the window of self-attention.

    Args:
        size: r of `--window`: r // 2 positions on either side or, if causal, the last r positions,
            the query's own counted; 0 = no limit.
        is_causal: a position does not attend to those after it.
        longest: tokens of the longest sequence; a window that covers it has no limit.
    """
    limited = Window(size - 1, 0) if is_causal else Window(size // 2, size // 2)
    if size and limited.left < longest - 1:
        return limited
    return CAUSAL if is_causal else FULL
