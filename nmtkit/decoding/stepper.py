"""The step function that a search is given: that of a model, or of several that decide together.

With a shortlist the search sees a vocabulary of its own for each batch: the candidates of any of
its sentences, of which the others have those that are theirs alone impossible. The special symbols
keep their ids, as they are the first of every vocabulary. So a search need not know of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.constraints import IMPOSSIBLE, NO_TOKEN
from nmtkit.model.layers import Function
from nmtkit.model.state import DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import Packed


@dataclass
class Narrowing:
    """The part of the vocabulary that a batch of B sentences looks at.

    Attributes:
        entries: (V',) its ids, ascending.
        bias: (B, 1, V') added to logits: 0, or impossible for what is no candidate of a sentence.
        projections: of each model, hidden vectors to the logits of the entries.
    """

    entries: Tensor
    bias: Tensor
    projections: list[Function]


class States:
    """What each of several models remembers of the same prefixes."""

    def __init__(self, states: Sequence[DecoderState], narrowing: Narrowing | None) -> None:
        """Store them, and the part of the vocabulary that is looked at; None = all of it."""
        self.of_models = states
        self.narrowing = narrowing

    def expand(self, width: int) -> None:
        """Turn each sentence's only row into `width` equal ones."""
        for state in self.of_models:
            state.expand(width)

    def reorder(self, parents: Tensor) -> None:
        """Let row w of each sentence continue its row parents[:, w]; parents (B, W) int64."""
        for state in self.of_models:
            state.reorder(parents)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only, in this order; sentences (B',) int64."""
        for state in self.of_models:
            state.keep(sentences)
        if self.narrowing:
            self.narrowing.bias = self.narrowing.bias[sentences]

    def tokens(self, places: Sequence[int]) -> tuple[int, ...]:
        """Return the ids of what the search calls by its place among the entries."""
        if self.narrowing is None:
            return tuple(places)
        return tuple(self.narrowing.entries[list(places)].tolist())

    def places(self, tokens: Tensor) -> Tensor:
        """Return the places among the entries of ids, all of which are there; NO_TOKEN stays."""
        if self.narrowing is None:
            return tokens
        found = torch.searchsorted(self.narrowing.entries, tokens)
        return found.masked_fill(tokens == NO_TOKEN, NO_TOKEN)


class Stepper:
    """Begins with sources, and predicts one token after the other."""

    def __init__(self, models: Sequence[Transformer], shortlist: Shortlist | None = None) -> None:
        """Store what decides.

        Args:
            models: with one vocabulary, in evaluation mode, on one device.
            shortlist: the candidates of source tokens; None = all of the vocabulary.
        """
        self.models = models
        self.shortlist = shortlist

    def start(self, source: Packed, beginnings: Tensor) -> States:
        """Read sources, one row each.

        Args:
            source: ids (X,) of B sentences.
            beginnings: (B, P) ids that translations must begin with, NO_TOKEN behind.
        """
        states = [model.start(model.encode(source)) for model in self.models]
        if self.shortlist is None:
            return States(states, None)
        return States(states, self._narrow(self.shortlist, source, beginnings))

    def step(self, tokens: Tensor, state: States) -> Tensor:
        """Read one more token of each row and predict the next.

        Args:
            tokens: (B, W) int64, the begin symbol at first.
            state: what was read so far; it is left advanced by the tokens.

        Returns:
            (B, W, V) logits; of several models, the logarithm of their mean probability.
        """
        logits = self._logits(tokens, state)
        if len(logits) == 1:
            return logits[0]
        log_probs = torch.stack([one.log_softmax(-1, dtype=torch.float32) for one in logits])
        return log_probs.logsumexp(0) - math.log(len(logits))

    def _logits(self, tokens: Tensor, state: States) -> list[Tensor]:
        """Return the logits (B, W, V) of each model."""
        of_models = zip(self.models, state.of_models, strict=True)
        narrowing = state.narrowing
        if narrowing is None:
            return [model.step(tokens, of_model) for model, of_model in of_models]
        tokens = narrowing.entries[tokens]
        hidden = [model.advance(tokens, of_model) for model, of_model in of_models]
        return [
            project(vectors) + narrowing.bias
            for project, vectors in zip(narrowing.projections, hidden, strict=True)
        ]

    def _narrow(self, shortlist: Shortlist, source: Packed, beginnings: Tensor) -> Narrowing:
        """Find the candidates of each sentence, and of all of them together."""
        lengths = source.layout.lengths
        is_candidate = np.zeros((len(lengths), shortlist.size), bool)
        is_candidate[:, shortlist.frequent] = True
        rows = np.repeat(np.arange(len(lengths)), lengths)
        candidates = shortlist.candidates[source.values.cpu().numpy()]
        is_candidate[rows[:, None], candidates] = True
        sentences, places = (beginnings != NO_TOKEN).nonzero(as_tuple=True)
        forced = beginnings[sentences, places].cpu().numpy()
        is_candidate[sentences.cpu().numpy(), forced] = True
        entries = np.flatnonzero(is_candidate.any(0))
        bias = np.where(is_candidate[:, None, entries], np.float32(0), np.float32(IMPOSSIBLE))
        device = source.values.device
        ids = torch.from_numpy(entries).to(device)
        return Narrowing(
            entries=ids,
            bias=torch.from_numpy(bias).to(device),
            projections=[model.narrowed(ids) for model in self.models],
        )
