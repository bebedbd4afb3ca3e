"""Reach of attention: which keys of a sentence a query may attend to, by their positions.

Source: paper, section 3.2.3, for what the three kinds of attention see; section 4 for "restricted
to considering only a neighborhood of size r".
"""

from dataclasses import dataclass

UNLIMITED = -1


@dataclass(frozen=True)
class Reach:
    """Numbers of positions before and after its own that a query attends to; -1 = all."""

    before: int
    after: int

    @property
    def is_limited(self) -> bool:
        """Both sides end somewhere, so the work is linear in the tokens."""
        return UNLIMITED not in (self.before, self.after)


EVERYTHING = Reach(UNLIMITED, UNLIMITED)
"""The whole sentence, as in the encoder and over the memory."""

CAUSAL = Reach(UNLIMITED, 0)
"""The own position and those before it, as in the decoder."""


def neighborhood(window: int, is_causal: bool, longest: int) -> Reach:
    """Return the reach of self-attention.

    Args:
        window: r, the size of the neighborhood: r // 2 positions on either side, or, causal, the
            last r positions, the own one counted; 0 = no limit.
        is_causal: a position does not see those after it.
        longest: tokens of the longest sequence; a window that covers it is no limit.
    """
    near = Reach(window - 1, 0) if is_causal else Reach(window // 2, window // 2)
    if window and near.before < longest - 1:
        return near
    return CAUSAL if is_causal else EVERYTHING
