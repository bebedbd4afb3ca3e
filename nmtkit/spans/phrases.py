"""Required phrases: hypotheses contain given phrases, each exactly or at least a number of times.

The phrases of a sentence are matched in all rows in parallel: `matched[l]` says that the last l
tokens of a row are the first l of a phrase, so a token makes it `matched[l + 1]` if it is the
phrase's token l (the shift-and automaton; Baeza-Yates and Gonnet 1992). A phrase that must still
occur proposes its next token, and the search divides the beam among rows of different progress.
Source: Post and Vilar 2018, https://arxiv.org/abs/1804.06609, with one difference: a phrase is not
proposed before the position at which a free search attends to what it translates. Otherwise the
rows with most progress, which have all phrases at the beginning, would fill a beam of usual width.

Shapes: B sentences; W rows; C candidates; K requirements; P phrases; L longest phrase; V tokens.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from nmtkit.decoding.constraints import IMPOSSIBLE, NO_TOKEN, Constraint
from nmtkit.spans.required import AFTER_WORDS, BEFORE_WORDS, is_word_character
from nmtkit.symbols import EOS_ID
from nmtkit.text.vocabulary import Vocabulary

LOOKAHEAD = 1
"""Positions by which a phrase may begin before the free search attends to it, if W > 1."""

_NEVER = 2**40


@dataclass(frozen=True)
class Requirement:
    """Phrases one of which must occur.

    Attributes:
        phrases: the alternatives, as ids; each at least one.
        starts: for each time that it must occur, the position from which it is proposed, ascending.
        longer: by how many tokens it is longer than what the free search wrote there.
        is_exact: it must not occur more often.
        is_glued: whether marks may touch it before, and after it, as in the source; letters and
            digits may not.
    """

    phrases: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    longer: int
    is_exact: bool
    is_glued: tuple[bool, bool] = (False, False)

    @property
    def num_tokens(self) -> int:
        """Tokens by which it makes a translation longer, at most."""
        return len(self.starts) * max(map(len, self.phrases))


class WordEdges(NamedTuple):
    """Which tokens touch what is next to them, so that a phrase there would grow.

    Attributes:
        begins_inside: (V,) bool: the text of a token begins within a word, not with a space or a
            mark that may follow a word.
        ends_inside: (V,) bool: it ends within a word.
        begins_in_letters, ends_in_letters: the same with letters and digits only.
    """

    begins_inside: Tensor
    ends_inside: Tensor
    begins_in_letters: Tensor
    ends_in_letters: Tensor

    @staticmethod
    def of(vocabulary: Vocabulary) -> "WordEdges":
        """Return the edges of all tokens of a vocabulary."""
        texts = [vocabulary.texts([index])[0] for index in range(vocabulary.size)]
        # A byte of a character may be of a letter.
        letters = {one for text in texts for one in text if is_word_character(one)} | {"\ufffd"}
        found = (
            [bool(text) and not re.match(AFTER_WORDS, text[0]) for text in texts],
            [bool(text) and not re.match(BEFORE_WORDS, text[-1]) for text in texts],
            [text[:1] in letters for text in texts],
            [text[-1:] in letters for text in texts],
        )
        return WordEdges(*map(torch.tensor, found))


class Table(NamedTuple):
    """The phrases of B sentences.

    Attributes:
        tokens: (B, P, L) ids, padded with NO_TOKEN.
        owners: (B, P) int64, the requirement of each phrase.
        starts: (B, K, times + 1) the positions from which it is proposed, time after time.
        counts: (B, K) how often each requirement must occur.
        shortest, longest: (B, K) tokens of its shortest and longest phrase.
        lengths: (B, P) tokens of each phrase.
        longer, is_exact: (B, K), as in `Requirement`.
        is_last: (B, P, L) bool, the last token of each phrase.
        last: (B, P) its id.
        begins_inside, ends_inside: (B, P) bool, of the first and of the last token; where marks may
            touch the phrase, of letters and digits.
        is_glued_before, is_glued_after: (B, P) bool, as in `Requirement`.
    """

    tokens: Tensor
    owners: Tensor
    starts: Tensor
    counts: Tensor
    shortest: Tensor
    longest: Tensor
    lengths: Tensor
    longer: Tensor
    is_exact: Tensor
    is_last: Tensor
    last: Tensor
    begins_inside: Tensor
    ends_inside: Tensor
    is_glued_before: Tensor
    is_glued_after: Tensor

    @staticmethod
    def of(requirements: Sequence[Sequence[Requirement]], edges: WordEdges) -> "Table":
        """Make the table of the requirements of each sentence."""
        flat = [
            [(owner, phrase) for owner, one in enumerate(own) for phrase in one.phrases]
            for own in requirements
        ]
        num_phrases, num_owners = max(map(len, flat)), max(map(len, requirements))
        size = max(len(phrase) for own in flat for _, phrase in own)
        times = max(len(one.starts) for own in requirements for one in own)
        tokens = torch.full((len(flat), num_phrases, size), NO_TOKEN)
        owners = torch.zeros(len(flat), num_phrases, dtype=torch.int64)
        may_touch = torch.zeros(len(flat), num_phrases, 2, dtype=torch.bool)
        starts = torch.full((len(flat), num_owners, times + 1), _NEVER)
        numbers = torch.zeros(len(flat), num_owners, 5, dtype=torch.int64)
        for sentence, own in enumerate(flat):
            for place, (owner, phrase) in enumerate(own):
                tokens[sentence, place, : len(phrase)] = torch.tensor(phrase)
                owners[sentence, place] = owner
                may_touch[sentence, place] = torch.tensor(requirements[sentence][owner].is_glued)
            for owner, one in enumerate(requirements[sentence]):
                starts[sentence, owner, : len(one.starts)] = torch.tensor(one.starts)
                sizes = [len(phrase) for phrase in one.phrases]
                row = (len(one.starts), min(sizes), max(sizes), one.longer, int(one.is_exact))
                numbers[sentence, owner] = torch.tensor(row)
        counts, shortest, longest, longer, is_exact = numbers.unbind(2)
        is_token = tokens != NO_TOKEN
        is_last = is_token & (is_token.sum(2, keepdim=True) == torch.arange(1, size + 1))
        device = edges.begins_inside.device
        first = tokens[:, :, 0].clamp(min=0).to(device)
        last = (tokens * is_last).sum(2).to(device)
        before, after = may_touch.to(device).unbind(2)
        return Table(
            tokens=tokens.to(device),
            owners=owners.to(device),
            starts=starts.to(device),
            counts=counts.to(device),
            shortest=shortest.to(device),
            longest=longest.to(device),
            lengths=is_token.sum(2).to(device),
            longer=longer.to(device),
            is_exact=is_exact.bool().to(device),
            is_last=is_last.to(device),
            last=last,
            begins_inside=edges.begins_inside[first].where(~before, edges.begins_in_letters[first]),
            ends_inside=edges.ends_inside[last].where(~after, edges.ends_in_letters[last]),
            is_glued_before=before,
            is_glued_after=after,
        )


class State(NamedTuple):
    """How far rows (or candidates) have come.

    Attributes:
        matched: (B, W, P, L) bool, see the module's docstring.
        num_met: (B, W, K) int64, how often each requirement has occurred.
        at_edge: (B, W, P) bool: a phrase that ends within a word is complete, so the word must end
            too.
    """

    matched: Tensor
    num_met: Tensor
    at_edge: Tensor


class RequiredPhrases(Constraint):
    """The constraint that B sentences contain their required phrases, as whole words."""

    demands = True

    def __init__(
        self,
        requirements: Sequence[Sequence[Requirement]],
        edges: WordEdges,
        max_lengths: Tensor,
        width: int,
    ) -> None:
        """Store the phrases of B sentences, at least one of which has a requirement.

        Args:
            requirements: of each sentence.
            edges: of the target vocabulary.
            max_lengths: (B,) int64, the longest hypothesis permitted, its end symbol counted.
            width: rows per sentence.
        """
        self._table = table = Table.of(requirements, edges)
        self._edges = edges
        self._max_lengths = max_lengths
        longest = (table.counts * table.shortest).sum(1)
        # Before it there is room for all phrases of all sentences.
        self._first_forced = int((max_lengths - 1 - longest).amin())
        self._lookahead = LOOKAHEAD if width > 1 else 0
        num_met = torch.zeros_like(table.counts)[:, None]
        matched = torch.zeros_like(table.is_last)[:, None]
        matched[..., 0] = True
        self._state = State(matched, num_met, torch.zeros_like(matched[..., 0]))
        self._position = 0
        self._wants_end = torch.zeros_like(max_lengths, dtype=torch.bool)[:, None]

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Forbid the end before all has occurred, what would grow a phrase, and repetitions."""
        self._position = prefixes.shape[2]
        if self._position:
            self._state = self._advance(self._state, prefixes[:, :, -1])
        state, is_unmet = self._state, self._is_unmet(self._state)
        self._wants_end = sums[:, :, EOS_ID] >= sums.amax(2)
        self._forbid_growth(sums)
        # A phrase must not be completed once more than it must occur.
        is_met = (state.num_met >= self._table.counts[:, None]) & self._table.is_exact[:, None]
        is_over = self._of_phrases(is_met)
        sentence, row, phrase = (self._is_complete_with_last() & is_over).nonzero(as_tuple=True)
        sums[sentence, row, self._table.last[sentence, phrase]] = IMPOSSIBLE
        sums[:, :, EOS_ID].masked_fill_(is_unmet.any(2), IMPOSSIBLE)
        if self._position >= self._first_forced:
            room = self._max_lengths[:, None] - 1 - self._position
            self._force(sums, (self._num_missing(state) >= room) & is_unmet.any(2))

    def proposals(self) -> Tensor:
        """Return the next token of each phrase that must occur and may begin, or has begun."""
        begun, is_needed = self._begun(self._state), self._is_needed(self._state)
        may_begin = is_needed & self._state.matched[..., 0] & self._is_open()
        tokens = self._table.tokens[:, None].expand(-1, begun.shape[1], -1, -1)
        following = tokens.gather(3, begun[..., None]).squeeze(3)
        return following.masked_fill(~((begun > 0) | may_begin), NO_TOKEN)

    def progress(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Return the number of required tokens that each candidate contains."""
        after = self._advance(_rows(self._state, parents), tokens)
        return self._num_required(after)

    def expand(self, width: int) -> None:
        """Repeat each sentence's only row `width` times."""
        self._state = State(*(one.repeat_interleave(width, 1) for one in self._state))

    def reorder(self, parents: Tensor) -> None:
        """Make row w of each sentence continue its row parents[:, w]; parents (B, W) int64."""
        self._state = _rows(self._state, parents)

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only; sentences (B',) int64."""
        self._state = State(*(one[sentences] for one in self._state))
        self._table = Table(*(one[sentences] for one in self._table))
        self._max_lengths = self._max_lengths[sentences]

    def _advance(self, state: State, tokens: Tensor) -> State:
        """Return the state of rows after one more token each; tokens (B, W)."""
        hits = state.matched & (self._table.tokens[:, None] == tokens[:, :, None, None])
        is_complete = (hits & self._table.is_last[:, None]).any(3)  # (B, W, P)
        is_met = self._of_requirements(is_complete)
        # A word that continues did not contain the phrase.
        touches = self._edges.begins_inside[tokens][..., None].where(
            ~self._table.is_glued_after[:, None], self._edges.begins_in_letters[tokens][..., None]
        )
        is_undone = self._of_requirements(state.at_edge & touches)
        at_edge = is_complete & self._table.ends_inside[:, None]
        is_inside = self._edges.ends_inside[tokens][..., None].where(
            ~self._table.is_glued_before[:, None], self._edges.ends_in_letters[tokens][..., None]
        )
        first = ~(is_inside & self._table.begins_inside[:, None])  # (B, W, P)
        has_begun = (hits & ~self._table.is_last[:, None])[..., :-1]
        matched = torch.cat([first[..., None], has_begun], 3)
        return State(matched, state.num_met + is_met.long() - is_undone.long(), at_edge)

    def _is_unmet(self, state: State) -> Tensor:
        """Return whether each requirement must occur again: (B, W, K)."""
        return state.num_met < self._table.counts[:, None]

    def _is_needed(self, state: State) -> Tensor:
        """Return whether each phrase is one of those that must occur again: (B, W, P)."""
        return self._of_phrases(self._is_unmet(state))

    def _of_phrases(self, values: Tensor) -> Tensor:
        """Return the values (B, W, K) of the requirement of each phrase: (B, W, P)."""
        return values.gather(2, self._table.owners[:, None].expand(-1, values.shape[1], -1))

    def _of_requirements(self, flags: Tensor) -> Tensor:
        """Return whether a phrase (B, W, P) of each requirement has a flag: (B, W, K)."""
        num_owners = self._table.counts.shape[1]
        counts = torch.zeros(*flags.shape[:2], num_owners, dtype=torch.int64, device=flags.device)
        owners = self._table.owners[:, None].expand(-1, flags.shape[1], -1)
        return counts.scatter_add(2, owners, flags.long()) > 0

    def _is_complete_with_last(self) -> Tensor:
        """Return whether only the last token of each phrase is missing: (B, W, P)."""
        return (self._state.matched & self._table.is_last[:, None]).any(3)

    def _is_open(self) -> Tensor:
        """Return whether each phrase may begin at this position: (B, W, P)."""
        state = self._state
        met = state.num_met.minimum(self._table.counts[:, None]).clamp(min=0)
        times = self._table.starts[:, None].expand(-1, met.shape[1], -1, -1)
        starts = times.gather(3, met[..., None]).squeeze(3)
        shift = (met * self._table.longer[:, None]).sum(2, keepdim=True)
        is_open = starts + shift <= self._position + self._lookahead
        is_open = is_open | self._wants_end[..., None]
        return self._of_phrases(is_open)

    def _num_required(self, state: State) -> Tensor:
        """Return the number of required tokens that rows contain: (B, W).

        An alternative counts as the longest one, and so does a token of it that is nearer its end.
        Otherwise rows that begin a phrase again and again would go before those that continue it.
        """
        table = self._table
        met = state.num_met.minimum(table.counts[:, None]) * table.longest[:, None]
        begun = self._begun(state)  # (B, W, P)
        own = table.longest.gather(1, table.owners) - table.lengths  # (B, P)
        return met.sum(2) + ((begun + own[:, None]) * (begun > 0)).amax(2)

    def _begun(self, state: State) -> Tensor:
        """Return how much of each phrase that must occur again has been written: (B, W, P)."""
        positions = torch.arange(
            state.matched.shape[3], dtype=torch.int32, device=state.matched.device
        )
        return (state.matched * positions).amax(3).long() * self._is_needed(state)

    def _num_missing(self, state: State) -> Tensor:
        """Return the number of tokens after which all can have occurred: (B, W)."""
        table = self._table
        num_times = (table.counts[:, None] - state.num_met).clamp(min=0)
        shortest = table.shortest.gather(1, table.owners)[:, None]  # (B, 1, P)
        begun = self._begun(state)
        saved = (shortest - table.lengths[:, None] + begun).clamp(min=0) * (begun > 0)
        return (num_times * table.shortest[:, None]).sum(2) - saved.amax(2)

    def _forbid_growth(self, sums: Tensor) -> None:
        """Forbid letters after a phrase, unless they continue a longer one."""
        sentence, row = self._state.at_edge.any(2).nonzero(as_tuple=True)
        if not len(sentence):
            return
        own = sums[sentence, row]  # (n, V)
        matched = self._state.matched[sentence, row]  # (n, P, L)
        tokens = self._table.tokens[sentence]
        tokens = tokens.masked_fill(~matched | (tokens == NO_TOKEN), EOS_ID)
        tokens[..., 0] = EOS_ID
        tokens = tokens.flatten(1)
        kept = own.gather(1, tokens)
        at_edge = self._state.at_edge[sentence, row]  # (n, P)
        no_marks = (at_edge & ~self._table.is_glued_after[sentence]).any(1, keepdim=True)
        edges = self._edges
        forbidden = edges.begins_inside.where(no_marks, edges.begins_in_letters)  # (n, V)
        own = own.masked_fill(forbidden, IMPOSSIBLE)
        sums[sentence, row] = own.scatter(1, tokens, kept)

    def _force(self, sums: Tensor, is_forced: Tensor) -> None:
        """Permit only what completes the phrases, where there is no room for more."""
        if not is_forced.any():  # synchronises with the host
            return
        self._wants_end = self._wants_end | is_forced
        tokens = self.proposals()  # (B, W, P)
        rows = torch.arange(tokens.shape[1], device=tokens.device)
        rows = rows.repeat_interleave(tokens.shape[2]).expand(len(tokens), -1)
        after = self._advance(_rows(self._state, rows), tokens.flatten(1).clamp(min=0))
        fits = self._num_missing(after).view_as(tokens) < self._num_missing(self._state)[..., None]
        tokens = tokens.masked_fill(~fits, NO_TOKEN)[is_forced]  # (n, P)
        own = sums[is_forced]
        kept = own.gather(1, tokens.clamp(min=0)).masked_fill(tokens == NO_TOKEN, IMPOSSIBLE)
        own = torch.full_like(own, IMPOSSIBLE)
        sums[is_forced] = own.scatter_reduce(1, tokens.clamp(min=0), kept, "amax")


def _rows(state: State, parents: Tensor) -> State:
    """Return the state of the rows `parents` (B, C)."""
    sentences = torch.arange(len(parents), device=parents.device)[:, None]
    return State(*(one[sentences, parents] for one in state))
