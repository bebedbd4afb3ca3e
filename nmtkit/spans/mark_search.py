"""Well-formed marks: hypotheses have each mark of their line once, nested as in the line.

A closing mark follows the marks of all that its element encloses, and the end symbol those of the
line. Elements next to each other may change their order. No tag is within a word. Where the model
would end the text, and where the length leaves no room for more, only the missing marks may follow.

Shapes: B sentences; W rows; C candidates; K marks of a sentence; V tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmtkit.decoding.constraints import IMPOSSIBLE, Constraint
from nmtkit.spans.marked_lines import Item
from nmtkit.spans.phrases import WordEdges
from nmtkit.spans.tags import ROOT
from nmtkit.symbols import EOS_ID

_NOWHERE = -2
"""The parent of items that a sentence does not have."""


class _Table(NamedTuple):
    """The items of B sentences.

    Attributes:
        openings: (B, K) the first token of each item, EOS_ID if there is none.
        closings: (B, K) the second token; EOS_ID if there is none.
        parents: (B, K) the item that encloses each, ROOT or _NOWHERE.
        is_replaced: (B, K) bool, the item is a placeholder.
        max_lengths: (B,) the longest hypothesis permitted, its end symbol counted.
    """

    openings: Tensor
    closings: Tensor
    parents: Tensor
    is_replaced: Tensor
    max_lengths: Tensor


class _State(NamedTuple):
    """What rows have written.

    Attributes:
        is_open, is_closed: (B, W, K) bool, the first token of an item; its last token.
        innermost: (B, W) int64, the item that is open, or ROOT.
        is_in_word: (B, W) bool, the text so far ends in a letter.
        is_tag: (B, W) bool, the last token is the mark of a tag.
    """

    is_open: Tensor
    is_closed: Tensor
    innermost: Tensor
    is_in_word: Tensor
    is_tag: Tensor


class WellFormedMarks(Constraint):
    """The constraint that B sentences have the marks of their lines."""

    demands = True

    def __init__(
        self,
        items: Sequence[Sequence[Item]],
        tokens: Sequence[Sequence[tuple[int, ...]]],
        all_marks: Tensor,
        edges: WordEdges,
        max_lengths: Tensor,
    ) -> None:
        """Store the marks.

        Args:
            items: of each sentence.
            tokens: of each item, one or two.
            all_marks: (M,) int64, the tokens of all marks that the search knows.
            edges: of the tokens that the search knows.
            max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted; all
                marks of a sentence fit.
        """
        most = max(map(len, items))
        numbers = torch.full((len(items), 4, most), EOS_ID)
        numbers[:, 2] = _NOWHERE
        for sentence, own in enumerate(items):
            for number, item in enumerate(own):
                first, *last = tokens[sentence][number]
                numbers[sentence, 0, number] = first
                numbers[sentence, 1, number] = last[0] if last else EOS_ID
                numbers[sentence, 2, number] = item.parent
                numbers[sentence, 3, number] = item.is_replaced
        device = max_lengths.device
        openings, closings, parents, is_replaced = numbers.to(device).unbind(1)
        self._table = _Table(openings, closings, parents, is_replaced == 1, max_lengths)
        self._all_marks = all_marks
        self._edges = edges
        is_missing = (self._table.parents == _NOWHERE)[:, None]  # (B, 1, K)
        innermost = torch.full_like(max_lengths, ROOT)[:, None]
        is_no = torch.zeros_like(innermost, dtype=torch.bool)
        self._state = _State(is_missing, is_missing.clone(), innermost, is_no, is_no)

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Forbid the marks that may not follow, the end before all marks, and what has no room."""
        table, position = self._table, prefixes.shape[2]
        if position:
            self._state = self._advance(prefixes[:, :, -1])
        may_open, may_close = self._permitted()
        num_missing = self._num_missing()
        is_unmet = num_missing > 0
        room = table.max_lengths[:, None] - 1 - position
        wants_end = sums[:, :, EOS_ID] >= sums.amax(2)
        tokens = torch.cat([table.openings, table.closings], 1)
        tokens = tokens[:, None].expand(-1, sums.shape[1], -1)
        kept = sums.gather(2, tokens)
        kept = kept.masked_fill(~torch.cat([may_open, may_close], 2), IMPOSSIBLE)
        is_forced = is_unmet & (wants_end | (num_missing >= room))
        is_split = self._state.is_tag & self._state.is_in_word
        is_forbidden = is_forced[..., None] | (is_split[..., None] & self._edges.begins_in_letters)
        sums.masked_fill_(is_forbidden, IMPOSSIBLE)
        sums[:, :, self._all_marks] = IMPOSSIBLE
        sums[:, :, EOS_ID].masked_fill_(is_unmet, IMPOSSIBLE)
        sums.scatter_reduce_(2, tokens, kept, "amax")

    def expand(self, width: int) -> None:
        """Repeat each sentence's only row `width` times."""
        self._state = _State(*(one.repeat_interleave(width, 1) for one in self._state))

    def reorder(self, parents: Tensor) -> None:
        """Make row w of each sentence continue its row parents[:, w]; parents (B, W) int64."""
        sentences = torch.arange(len(parents), device=parents.device)[:, None]
        self._state = _State(*(one[sentences, parents] for one in self._state))

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""
        self._state = _State(*(one[sentences] for one in self._state))
        self._table = _Table(*(one[sentences] for one in self._table))

    def _advance(self, tokens: Tensor) -> _State:
        """Return the state of rows after one more token each; tokens (B, W)."""
        table, state = self._table, self._state
        is_word = (tokens == EOS_ID)[..., None]
        opens = (table.openings[:, None] == tokens[..., None]) & ~is_word  # (B, W, K)
        closes = (table.closings[:, None] == tokens[..., None]) & ~is_word
        is_pair = (table.closings != EOS_ID)[:, None]
        numbers = torch.arange(opens.shape[2], device=tokens.device)
        parents = table.parents[:, None]
        innermost = state.innermost
        innermost = innermost.where(~(opens & is_pair).any(2), (numbers * opens).sum(2))
        innermost = innermost.where(~closes.any(2), (parents * closes).sum(2))
        is_closed = state.is_closed | closes | (opens & ~is_pair)
        is_placeholder = (opens & table.is_replaced[:, None]).any(2)
        is_tag = (opens | closes).any(2) & ~is_placeholder
        is_in_word = state.is_in_word.where(is_tag, self._edges.ends_in_letters[tokens])
        return _State(state.is_open | opens, is_closed, innermost, is_in_word, is_tag)

    def _permitted(self) -> tuple[Tensor, Tensor]:
        """Return which items may be opened, and which closed: (B, W, K)."""
        table, state = self._table, self._state
        is_inside = table.parents[:, None] == state.innermost[..., None]
        numbers = torch.arange(is_inside.shape[2], device=is_inside.device)
        is_whole = ~(is_inside & ~state.is_closed).any(2, keepdim=True)
        may_close = (numbers == state.innermost[..., None]) & is_whole
        return is_inside & ~state.is_open, may_close

    def _num_missing(self) -> Tensor:
        """Return the number of marks that rows must still have: (B, W)."""
        is_pair = (self._table.closings != EOS_ID)[:, None]
        is_half = is_pair & ~self._state.is_closed
        return (~self._state.is_open).sum(2) + is_half.sum(2)
