"""The constraint that hypotheses are trees with one leaf for each word of the source.

Which tokens may follow is a function of the prefix alone: how deep it is, how many leaves it has,
and which constituent is open innermost. All of it is computed for all rows at once.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.symbols import EOS_ID
from nmtkit.text.linearised import is_closing, is_opening
from nmtkit.text.tree_tokens import TreeTokens

_FEWEST_TOKENS = 3
"""Of a tree beside its leaves: the root's brackets, and the end symbol."""


@dataclass(frozen=True)
class TokenClasses:
    """What each of V tokens does to a tree.

    Attributes:
        steps: (V,) int64, by how much the depth changes: 1, -1 or 0.
        is_leaf: (V,) bool.
        closings: (V,) int64, of an opening bracket the closing one; of others anything.
    """

    steps: Tensor
    is_leaf: Tensor
    closings: Tensor

    @staticmethod
    def of(tokens: TreeTokens, device: torch.device) -> "TokenClasses":
        """Sort the entries of a vocabulary; a bracket without its counterpart is of no class."""
        ids = {tokens.piece(index): index for index in range(tokens.size)}
        steps, closings = [0] * tokens.size, [EOS_ID] * tokens.size
        is_leaf = [False] * tokens.size
        for token, index in ids.items():
            closing = ids.get(f"){token[1:]}")
            if is_opening(token) and closing is not None:
                steps[index], steps[closing], closings[index] = 1, -1, closing
            is_leaf[index] = not (is_opening(token) or is_closing(token)) and index > EOS_ID
        return TokenClasses(
            steps=torch.tensor(steps, device=device),
            is_leaf=torch.tensor(is_leaf, device=device),
            closings=torch.tensor(closings, device=device),
        )


def fewest_tokens(num_words: int) -> int:
    """Return the length of the shortest tree over so many words, its end symbol counted."""
    return num_words + _FEWEST_TOKENS


class WellFormed:
    """The trees that B sentences may have."""

    def __init__(self, classes: TokenClasses, num_words: Tensor, max_lengths: Tensor) -> None:
        """Store them.

        Args:
            classes: of the tokens.
            num_words: (B,) int64, the leaves that a tree must have; at least 1.
            max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted. A
                sentence that has no room for its shortest tree is left free.
        """
        self._classes = classes
        self._num_words = num_words
        self._max_lengths = max_lengths

    def permitted(self, prefixes: Tensor) -> Tensor:
        """Return which tokens may follow prefixes, as a mask (B, W, V).

        What follows a permitted prefix can always be completed within the longest length.

        Args:
            prefixes: (B, W, T) tokens, without the begin symbol.
        """
        classes, position = self._classes, prefixes.shape[2]
        steps = classes.steps[prefixes]  # (B, W, T)
        depths = steps.cumsum(2)
        depth = steps.sum(2)  # (B, W)
        num_missing = self._num_words[:, None] - classes.is_leaf[prefixes].sum(2)
        # Constituents, where they are open, are closed again before the sentence's last position.
        room = self._max_lengths[:, None] - position
        has_room = depth + num_missing + _FEWEST_TOKENS <= room
        has_root = torch.full_like(depth, position, dtype=torch.bool)
        may_open = has_room & (num_missing > 0) & ((depth > 0) | ~has_root)
        may_add = (depth > 0) & (num_missing > 0)
        mask = (may_open[:, :, None] & (classes.steps == 1)) | (
            may_add[:, :, None] & classes.is_leaf
        )
        mask[:, :, EOS_ID] = has_root & (depth == 0)
        if position:
            is_empty = steps[:, :, -1] == 1
            may_close = ~is_empty & ((depth > 1) | ((depth == 1) & (num_missing == 0)))
            closing = classes.closings[_innermost(prefixes, steps, depths)][:, :, None]
            mask.scatter_(2, closing, mask.gather(2, closing) | may_close[:, :, None])
        is_free = self._max_lengths < self._num_words + _FEWEST_TOKENS
        return mask | is_free[:, None, None]

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only; sentences (B',) int64."""
        self._num_words = self._num_words[sentences]
        self._max_lengths = self._max_lengths[sentences]


def _innermost(prefixes: Tensor, steps: Tensor, depths: Tensor) -> Tensor:
    """Return the opening bracket (B, W) of the innermost open constituent; where none is, any.

    It is the last one that led to the depth which the prefix has now.
    """
    places = torch.arange(prefixes.shape[2], device=prefixes.device)
    is_candidate = (steps == 1) & (depths == depths[:, :, -1:])
    last = (is_candidate * places).amax(2, keepdim=True)
    return prefixes.gather(2, last).squeeze(2)
