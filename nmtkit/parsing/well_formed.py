"""The search of a parser: its hypotheses are trees with one leaf for each word of the source.

Which tokens may follow is a function of the prefix alone: how deep it is, how many leaves it has,
which constituents are open, and where they began. All of it is computed for all rows at once.

A chain is constituents over just the same words, each the only child of the one around it. Without
a limit, a model that has learnt little would fill the longest output with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nmtkit.config.schema import ConstraintsConfig
from nmtkit.parsing.linearize import is_closing, is_opening
from nmtkit.parsing.trees import split_words
from nmtkit.parsing.vocabulary import TreeTokens
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec

_FEWEST_TOKENS = 3
"""Of a tree without its leaves: the root's brackets, and the end symbol."""

LONGEST_CHAIN = 8
"""Constituents over just the same words. In the 17,248 trees of CRAFT and GUM, cleaned, at most 4
are, the root's bracket counted."""


class TreeForm:
    """The form of a parser's outputs; see `OutputForm` of nmtkit/decoding/output_forms.py."""

    own_settings: ClassVar[Mapping[str, str]] = {"malformed_trees": "the model is no parser"}
    no_shortlist: ClassVar[str] = "the model is a parser, whose vocabulary is small"
    no_prefix: ClassVar[str] = "for a parser, whose output is a whole tree"

    def __init__(self, codec: TextCodec, config: ConstraintsConfig, device: torch.device) -> None:
        """Sort the tokens of a codec whose target is trees."""
        assert isinstance(codec.target, TreeTokens), codec.target.kind
        self._codec = codec
        self._is_prevented = config.malformed_trees == "prevent"
        self._classes = TokenClasses.of(codec.target, device)

    def fewest_tokens(self, ids: list[int], line: str) -> int:
        """Return the length of the shortest tree over the words of a source."""
        is_whole = ids == self._codec.encode_source(line)
        # `complete` repairs trees of parts whose number of words is another in normalised text.
        text = line if is_whole else self._codec.source.decode(ids)
        return fewest_tokens(max(1, len(split_words(text))))

    def constraint(self, fewest: Sequence[int], max_lengths: Tensor) -> "WellFormed | None":
        """Return the constraint that prevents malformed trees; None if they are repaired."""
        if not self._is_prevented:
            return None
        num_words = torch.tensor(fewest, device=max_lengths.device) - _FEWEST_TOKENS
        return WellFormed(self._classes, num_words, max_lengths, LONGEST_CHAIN)


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
    """Return the length of the shortest tree over this many words, its end symbol counted."""
    return num_words + _FEWEST_TOKENS


class WellFormed:
    """The trees that B sentences may have."""

    def __init__(
        self, classes: TokenClasses, num_words: Tensor, max_lengths: Tensor, longest_chain: int
    ) -> None:
        """Store them.

        Args:
            classes: of the tokens.
            num_words: (B,) int64, the leaves that a tree must have; at least 1.
            max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted. A
                sentence that has no room for its shortest tree is left free.
            longest_chain: how many constituents may be over just the same words.
        """
        self._classes = classes
        self._num_words = num_words
        self._max_lengths = max_lengths
        self._longest_chain = longest_chain

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
        # A leaf ends a chain, and so does a second child: leaves are kept for those that need one.
        num_needed, is_needed_next = self._leaves_needed(steps, depths)
        has_leaf = num_needed < num_missing
        has_leaf_inside = num_needed + is_needed_next < num_missing
        may_open = has_room & has_leaf_inside & ((depth > 0) | ~has_root)
        may_add = (depth > 0) & has_leaf
        mask = (may_open[:, :, None] & (classes.steps == 1)) | (
            may_add[:, :, None] & classes.is_leaf
        )
        mask[:, :, EOS_ID] = has_root & (depth == 0)
        if position:
            is_empty = steps[:, :, -1] == 1
            innermost = _last_opening(steps, depths, 0)
            is_long = self._is_longest_chain(steps, depths, innermost)
            is_whole = (depth > 1) | ((depth == 1) & (num_missing == 0))
            may_close = ~is_empty & is_whole & ~is_long
            closing = classes.closings[prefixes.gather(2, innermost)]
            mask.scatter_(2, closing, mask.gather(2, closing) | may_close[:, :, None])
        is_free = self._max_lengths < self._num_words + _FEWEST_TOKENS
        return mask | is_free[:, None, None]

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""
        self._num_words = self._num_words[sentences]
        self._max_lengths = self._max_lengths[sentences]

    def _leaves_needed(self, steps: Tensor, depths: Tensor) -> tuple[Tensor, Tensor]:
        """Return how many leaves (B, W) chains need to end, and if one more opening adds one.

        Open constituents that began one right behind the other, m of them, close as a chain, but
        where something follows in one of them: behind each K that close, K the longest chain, which
        makes ceil(m / K) - 1 leaves.
        """
        places = torch.arange(1, steps.shape[2] + 1, device=steps.device)
        lowest = depths.flip(2).cummin(2).values.flip(2)  # from each place on
        is_open = (steps == 1) & (lowest == depths)
        outside = (places * ~is_open).cummax(2).values
        ranks = places - outside  # from 1, among those that began one right behind the other
        is_needed = is_open & (ranks > 1) & ((ranks - 1) % self._longest_chain == 0)
        last = ranks[:, :, -1:].sum(2)  # of an empty prefix 0
        return is_needed.sum(2), (last > 0) & (last % self._longest_chain == 0)

    def _is_longest_chain(self, steps: Tensor, depths: Tensor, innermost: Tensor) -> Tensor:
        """Return whether the innermost open constituent (B, W) has a longest chain in it alone."""
        longest = self._longest_chain
        if steps.shape[2] <= 2 * longest:
            return torch.zeros_like(innermost.squeeze(2), dtype=torch.bool)
        is_closed = (steps[:, :, -longest:] == -1).all(2)
        inside = _last_opening(steps, depths, longest)
        return is_closed & (inside == innermost + longest).squeeze(2)


def _last_opening(steps: Tensor, depths: Tensor, below: int) -> Tensor:
    """Return the place (B, W, 1) of the last opening bracket so far below the depth there is now.

    With 0, it is that of the innermost open constituent. Where there is none, any place.
    """
    places = torch.arange(steps.shape[2], device=steps.device)
    is_candidate = (steps == 1) & (depths == depths[:, :, -1:] + below)
    return (is_candidate * places).amax(2, keepdim=True)
