"""Well-formed search: all hypotheses of a parser are trees with one leaf per word of the source.

The tokens that may follow depend on the prefix only: on its depth, its number of leaves, and the
open constituents with their beginnings. They are computed for all rows in parallel, by the rules of
the linearisation: `RULES`.

A chain is a sequence of constituents over the same words, each the only child of the one before.
Without a limit, a model that has learnt little would fill the longest output with chains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

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
        self._rules = RULES[codec.target.linearization]

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
        return WellFormed(self._classes, self._rules, num_words, max_lengths, LONGEST_CHAIN)


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
        self,
        classes: TokenClasses,
        rules: "Rules",
        num_words: Tensor,
        max_lengths: Tensor,
        longest_chain: int,
    ) -> None:
        """Store the limits.

        Args:
            classes: of the tokens.
            rules: of their linearisation.
            num_words: (B,) int64, the number of leaves of each tree; at least 1.
            max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted. A
                sentence whose shortest tree does not fit is not constrained.
            longest_chain: largest number of constituents over the same words.
        """
        self._classes = classes
        self._rules = rules
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
        state = _State(
            changes=changes,
            depths=depths,
            depth=changes.sum(2),
            last_change=changes[:, :, -1:].sum(2),
            is_empty=changes.new_full(changes.shape[:2], not position, dtype=torch.bool),
            num_missing=self._num_words[:, None] - classes.is_leaf[prefixes].sum(2),
            room=self._max_lengths[:, None] - position,
            longest_chain=self._longest_chain,
        )
        allowed = self._rules(state)
        # All open constituents must be closed before the last position of the sentence.
        may_open = allowed.open & (state.depth + state.num_missing + OTHER_TOKENS <= state.room)
        mask = (may_open[:, :, None] & (classes.depth_changes == 1)) | (
            allowed.add[:, :, None] & classes.is_leaf
        )
        mask[:, :, EOS_ID] = allowed.end
        if position:
            closing = classes.closings[prefixes.gather(2, state.innermost)]
            mask.scatter_(2, closing, mask.gather(2, closing) | allowed.close[:, :, None])
        is_free = self._max_lengths < self._num_words + OTHER_TOKENS
        return mask | is_free[:, None, None]

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences; indices (B',) int64."""
        self._num_words = self._num_words[sentences]
        self._max_lengths = self._max_lengths[sentences]


@dataclass(frozen=True)
class _State:
    """What rules need to know of prefixes with T tokens.

    Attributes:
        changes: (B, W, T) int64, the depth changes of the tokens.
        depths: (B, W, T), the depth after each token.
        depth: (B, W), the number of open constituents.
        last_change: (B, W), the depth change of the last token; 0 for an empty prefix.
        is_empty: (B, W) bool, whether the prefixes are empty.
        num_missing: (B, W), the number of leaves to come.
        room: (B, 1), the number of tokens that may follow, the end symbol counted.
        longest_chain: largest number of constituents over the same words.
    """

    changes: Tensor
    depths: Tensor
    depth: Tensor
    last_change: Tensor
    is_empty: Tensor
    num_missing: Tensor
    room: Tensor
    longest_chain: int

    @cached_property
    def innermost(self) -> Tensor:
        """The index (B, W, 1) of the bracket that opens the innermost open constituent."""
        return self.last_opening(0)

    def last_opening(self, below: int) -> Tensor:
        """Return the index (B, W, 1) of the last opening bracket at the depth plus `below`.

        If there is none, the index is undefined.
        """
        places = torch.arange(self.changes.shape[2], device=self.changes.device)
        is_candidate = (self.changes == 1) & (self.depths == self.depths[:, :, -1:] + below)
        return (is_candidate * places).amax(2, keepdim=True)


@dataclass(frozen=True)
class _Allowed:
    """Whether a constituent may be opened or closed, a leaf be added, or the tree end; (B, W)."""

    open: Tensor
    add: Tensor
    close: Tensor
    end: Tensor


def _brackets(state: _State) -> _Allowed:
    """An opening bracket precedes all children."""
    depth, num_missing = state.depth, state.num_missing
    # A leaf or a second child ends a chain: leaves are reserved for the chains that need one.
    num_needed, is_needed_next = _leaves_needed(state)
    is_whole = (depth > 1) | ((depth == 1) & (num_missing == 0))
    return _Allowed(
        open=(num_needed + is_needed_next < num_missing) & ((depth > 0) | state.is_empty),
        add=(depth > 0) & (num_needed < num_missing),
        close=(state.last_change != 1) & is_whole & ~_is_longest_chain(state),
        end=~state.is_empty & (depth == 0),
    )


def _in_order(state: _State) -> _Allowed:
    """An opening bracket follows the first child.

    A chain is closing brackets, of which each follows its opening one directly, except perhaps the
    first. Only a leaf may follow an opening bracket after a longest chain.
    """
    depth, num_missing, longest = state.depth, state.num_missing, state.longest_chain
    has_closed, has_opened = state.last_change == -1, state.last_change == 1
    is_longest_chain = has_closed & _alternates(state, 2 * longest - 1)
    follows_longest_chain = has_opened & _alternates(state, 2 * longest)
    # A root without all words has to become the first child of another one.
    has_room = (depth > 1) | (num_missing == 0) | (num_missing + OTHER_TOKENS < state.room)
    return _Allowed(
        open=~state.is_empty & ~has_opened & ((num_missing > 0) | ~is_longest_chain),
        add=((depth > 0) | state.is_empty) & (num_missing > 0),
        close=(depth > 0) & has_room & ~follows_longest_chain,
        end=(depth == 0) & (num_missing == 0) & has_closed,
    )


Rules = Callable[[_State], _Allowed]

RULES: dict[str, Rules] = {"brackets": _brackets, "in-order": _in_order}
"""What may follow, by linearisation."""


def _leaves_needed(state: _State) -> tuple[Tensor, Tensor]:
    """Return the leaves (B, W) that open chains need, and whether one more opening adds one.

    Let m open constituents begin directly after each other, and K be the longest chain. They would
    close as one chain. So after each K that close, a leaf must follow: this takes ceil(m / K) - 1
    leaves.
    """
    changes, depths, longest = state.changes, state.depths, state.longest_chain
    places = torch.arange(1, changes.shape[2] + 1, device=changes.device)
    lowest = depths.flip(2).cummin(2).values.flip(2)  # lowest depth from each place on
    is_open = (changes == 1) & (lowest == depths)
    outside = (places * ~is_open).cummax(2).values
    ranks = places - outside  # from 1, among those that begin directly after each other
    is_needed = is_open & (ranks > 1) & ((ranks - 1) % longest == 0)
    last = ranks[:, :, -1:].sum(2)  # 0 for an empty prefix
    return is_needed.sum(2), (last > 0) & (last % longest == 0)


def _is_longest_chain(state: _State) -> Tensor:
    """Return whether the innermost open constituent (B, W) holds only a longest chain."""
    longest = state.longest_chain
    if state.changes.shape[2] <= 2 * longest:
        return torch.zeros_like(state.depth, dtype=torch.bool)
    is_direct = state.last_opening(longest) == state.innermost + longest
    return (state.changes[:, :, -longest:] == -1).all(2) & is_direct.squeeze(2)


def _alternates(state: _State, length: int) -> Tensor:
    """Return whether the last tokens (B, W) are opening and closing brackets in alternation."""
    last = state.changes[:, :, -length:]
    if last.shape[2] < length:
        return torch.zeros_like(state.depth, dtype=torch.bool)
    return (last[:, :, 1:] * last[:, :, :-1] == -1).all(2)
