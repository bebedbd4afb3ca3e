"""Well-formed search: all hypotheses of a parser are trees with one leaf per word of the source.

The tokens that may follow depend on the prefix only: on its depth, its number of leaves, and the
open constituents with their beginnings. They are computed for all rows in parallel.

A chain is a sequence of constituents over the same words, each the only child of the one before.
Without a limit, a model that has learnt little would fill the longest output with chains.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.config.translation import ConstraintsConfig
from nmtkit.decoding.constraints import IMPOSSIBLE, Constraint
from nmtkit.parsing.linearize import is_closing, is_opening
from nmtkit.parsing.trees import split_words
from nmtkit.parsing.vocabulary import TreeTokens
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec

OTHER_TOKENS = 3
"""Tokens of the shortest tree that are not leaves: the root's brackets and the end symbol."""

LONGEST_CHAIN = 8
"""Largest number of constituents over the same words. The 17,248 clean trees of CRAFT and GUM have
at most 4, the root's bracket counted."""


class TreeForm:
    """The form of a parser's outputs; see `OutputForm` of nmtkit/decoding/translator.py."""

    no_shortlist = "the model is a parser, whose vocabulary is small"
    no_prefix = "for a parser, whose output is a whole tree"

    def __init__(self, codec: TextCodec, config: ConstraintsConfig, device: torch.device) -> None:
        """Classify the tokens of a codec with trees as target."""
        assert isinstance(codec.target, TreeTokens), codec.target.kind
        self._codec = codec
        self._is_prevented = config.malformed_trees == "prevent"
        self._classes = TokenClasses.of(codec.target, device)

    def fewest_tokens(self, ids: list[int], line: str) -> int:
        """Return the length of the shortest tree over the words of a source."""
        is_whole = ids == self._codec.encode_source(line)
        # Parts of a normalised line may have another number of words; `complete` repairs this.
        text = line if is_whole else self._codec.source.decode(ids)
        return max(1, len(split_words(text))) + OTHER_TOKENS

    def constraint(self, fewest: Sequence[int], max_lengths: Tensor) -> "WellFormed | None":
        """Return the constraint that prevents malformed trees; None if they are repaired."""
        if not self._is_prevented:
            return None
        num_words = torch.tensor(fewest, device=max_lengths.device) - OTHER_TOKENS
        return WellFormed(self._classes, num_words, max_lengths, LONGEST_CHAIN)


@dataclass(frozen=True)
class TokenClasses:
    """The role of each of V tokens in a tree.

    Attributes:
        depth_changes: (V,) int64: 1, -1 or 0.
        is_leaf: (V,) bool.
        closings: (V,) int64, the closing bracket of an opening one; undefined for other tokens.
    """

    depth_changes: Tensor
    is_leaf: Tensor
    closings: Tensor

    @staticmethod
    def of(tokens: TreeTokens, device: torch.device) -> "TokenClasses":
        """Classify the entries of a vocabulary; a bracket without its counterpart has no role."""
        ids = {tokens.piece(index): index for index in range(tokens.size)}
        changes, closings = [0] * tokens.size, [EOS_ID] * tokens.size
        is_leaf = [False] * tokens.size
        for token, index in ids.items():
            closing = ids.get(f"){token[1:]}")
            if is_opening(token) and closing is not None:
                changes[index], changes[closing], closings[index] = 1, -1, closing
            is_leaf[index] = not (is_opening(token) or is_closing(token)) and index > EOS_ID
        return TokenClasses(
            depth_changes=torch.tensor(changes, device=device),
            is_leaf=torch.tensor(is_leaf, device=device),
            closings=torch.tensor(closings, device=device),
        )


class WellFormed(Constraint):
    """The constraint that B sentences have well-formed trees as outputs."""

    def __init__(
        self, classes: TokenClasses, num_words: Tensor, max_lengths: Tensor, longest_chain: int
    ) -> None:
        """Store the limits.

        Args:
            classes: of the tokens.
            num_words: (B,) int64, the number of leaves of each tree; at least 1.
            max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted. A
                sentence whose shortest tree does not fit is not constrained.
            longest_chain: largest number of constituents over the same words.
        """
        self._classes = classes
        self._num_words = num_words
        self._max_lengths = max_lengths
        self._longest_chain = longest_chain

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Forbid the candidates that are not permitted."""
        sums.masked_fill_(~self.permitted(prefixes), IMPOSSIBLE)

    def permitted(self, prefixes: Tensor) -> Tensor:
        """Return the tokens that may follow prefixes, as a mask (B, W, V).

        A prefix of permitted tokens can always be completed within the longest length.

        Args:
            prefixes: (B, W, T) ids, without the begin symbol.
        """
        classes, position = self._classes, prefixes.shape[2]
        changes = classes.depth_changes[prefixes]  # (B, W, T)
        depths = changes.cumsum(2)
        depth = changes.sum(2)  # (B, W)
        num_missing = self._num_words[:, None] - classes.is_leaf[prefixes].sum(2)
        # All open constituents must be closed before the last position of the sentence.
        room = self._max_lengths[:, None] - position
        has_room = depth + num_missing + OTHER_TOKENS <= room
        has_root = torch.full_like(depth, position, dtype=torch.bool)
        # A leaf or a second child ends a chain: leaves are reserved for the chains that need one.
        num_needed, is_needed_next = self._leaves_needed(changes, depths)
        has_leaf = num_needed < num_missing
        has_leaf_inside = num_needed + is_needed_next < num_missing
        may_open = has_room & has_leaf_inside & ((depth > 0) | ~has_root)
        may_add = (depth > 0) & has_leaf
        mask = (may_open[:, :, None] & (classes.depth_changes == 1)) | (
            may_add[:, :, None] & classes.is_leaf
        )
        mask[:, :, EOS_ID] = has_root & (depth == 0)
        if position:
            is_empty = changes[:, :, -1] == 1
            innermost = _last_opening(changes, depths, 0)
            is_long = self._is_longest_chain(changes, depths, innermost)
            is_whole = (depth > 1) | ((depth == 1) & (num_missing == 0))
            may_close = ~is_empty & is_whole & ~is_long
            closing = classes.closings[prefixes.gather(2, innermost)]
            mask.scatter_(2, closing, mask.gather(2, closing) | may_close[:, :, None])
        is_free = self._max_lengths < self._num_words + OTHER_TOKENS
        return mask | is_free[:, None, None]

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences; indices (B',) int64."""
        self._num_words = self._num_words[sentences]
        self._max_lengths = self._max_lengths[sentences]

    def _leaves_needed(self, changes: Tensor, depths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the leaves (B, W) that open chains need, and whether one more opening adds one.

        Let m open constituents begin directly after each other, and K be the longest chain. They
        would close as one chain. So after each K that close, a leaf must follow: this takes
        ceil(m / K) - 1 leaves.
        """
        places = torch.arange(1, changes.shape[2] + 1, device=changes.device)
        lowest = depths.flip(2).cummin(2).values.flip(2)  # lowest depth from each place on
        is_open = (changes == 1) & (lowest == depths)
        outside = (places * ~is_open).cummax(2).values
        ranks = places - outside  # from 1, among those that begin directly after each other
        is_needed = is_open & (ranks > 1) & ((ranks - 1) % self._longest_chain == 0)
        last = ranks[:, :, -1:].sum(2)  # 0 for an empty prefix
        return is_needed.sum(2), (last > 0) & (last % self._longest_chain == 0)

    def _is_longest_chain(self, changes: Tensor, depths: Tensor, innermost: Tensor) -> Tensor:
        """Return whether the innermost open constituent (B, W) holds only a longest chain."""
        longest = self._longest_chain
        if changes.shape[2] <= 2 * longest:
            return torch.zeros_like(innermost.squeeze(2), dtype=torch.bool)
        is_closed = (changes[:, :, -longest:] == -1).all(2)
        inside = _last_opening(changes, depths, longest)
        return is_closed & (inside == innermost + longest).squeeze(2)


def _last_opening(changes: Tensor, depths: Tensor, below: int) -> Tensor:
    """Return the index (B, W, 1) of the last opening bracket at the current depth plus `below`.

    With 0, it opens the innermost open constituent. If there is none, the index is undefined.
    """
    places = torch.arange(changes.shape[2], device=changes.device)
    is_candidate = (changes == 1) & (depths == depths[:, :, -1:] + below)
    return (is_candidate * places).amax(2, keepdim=True)
