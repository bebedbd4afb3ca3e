"""The step function of a search: the next tokens' logits of a model or an ensemble.

With a shortlist the search sees a smaller vocabulary for each batch: the candidates of all its
sentences. A token that is no candidate of a sentence is impossible there. The special symbols are
the first entries of every vocabulary and keep their ids, so the search needs no change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.constraints import IMPOSSIBLE, NO_TOKEN
from nmtkit.decoding.search import Hypothesis
from nmtkit.model.layers import Function
from nmtkit.model.state import DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences, pack_vectors


@dataclass
class BatchShortlist:
    """The candidates of a batch of B sentences: V' entries of the vocabulary.

    Attributes:
        entries: (V',) their ids, ascending.
        bias: (B, 1, V') added to logits: 0, or IMPOSSIBLE where an entry is no candidate of the
            sentence.
        projections: for each model, the output projection onto the entries.
    """

    entries: Tensor
    bias: Tensor
    projections: list[Function]


class EnsembleState:
    """Decoder states of several models for the same prefixes."""

    def __init__(self, states: Sequence[DecoderState], shortlist: BatchShortlist | None) -> None:
        """Store the states, and the candidates; None = the whole vocabulary."""
        self.model_states = states
        self.shortlist = shortlist

    def expand(self, width: int) -> None:
        """Repeat each sentence's only row `width` times."""
        for state in self.model_states:
            state.expand(width)

    def reorder(self, parents: Tensor) -> None:
        """Make row w of each sentence continue its row parents[:, w]; parents (B, W) int64."""
        for state in self.model_states:
            state.reorder(parents)

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences, in this order; sentences (B',) int64."""
        for state in self.model_states:
            state.keep(sentences)
        if self.shortlist:
            self.shortlist.bias = self.shortlist.bias[sentences]

    def with_token_ids(self, found: list[Hypothesis]) -> list[Hypothesis]:
        """Return hypotheses with the ids of tokens that the search knows by their indices."""
        if self.shortlist is None:
            return found
        entries = self.shortlist.entries
        return [replace(one, ids=tuple(entries[list(one.ids)].tolist())) for one in found]

    def of(self, values: Tensor) -> Tensor:
        """Return those of values (V,) that are of the entries that the search knows."""
        return values if self.shortlist is None else values[self.shortlist.entries]

    def places_of(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the places of ids among the entries, which have them."""
        if self.shortlist is None:
            return tuple(ids)
        return tuple(self.indices(torch.tensor(ids, device=self.shortlist.entries.device)).tolist())

    def indices(self, tokens: Tensor) -> Tensor:
        """Return the indices of ids among the entries, which include them; NO_TOKEN stays."""
        if self.shortlist is None:
            return tokens
        found = torch.searchsorted(self.shortlist.entries, tokens)
        return found.masked_fill(tokens == NO_TOKEN, NO_TOKEN)


class Stepper:
    """The step function of one or several models: encodes sources, then predicts token by token."""

    def __init__(self, models: Sequence[Transformer], shortlist: Shortlist | None = None) -> None:
        """Store the models.

        Args:
            models: with the same vocabulary, in evaluation mode, on one device.
            shortlist: the candidates of source tokens; None = the whole vocabulary.
        """
        self.models = models
        self.shortlist = shortlist

    def encode(self, sources: Sequence[Sequence[int]]) -> list[tuple[Tensor, ...]]:
        """Return the memory of each source in each model, (S, D)."""
        packed = pack_sequences(sources, self.models[0].output_weight.device)
        by_model = [model.encode(packed).split() for model in self.models]
        return [*zip(*by_model, strict=True)]

    def start(
        self,
        sources: Sequence[Sequence[int]],
        memories: Sequence[Sequence[Tensor]],
        demanded: Tensor,
    ) -> EnsembleState:
        """Return the state before the first step, one row per sentence.

        Args:
            sources: ids of B sentences.
            memories: what `encode` returned for each.
            demanded: (B, P) ids that translations must contain, padded with NO_TOKEN.
        """
        by_model = zip(self.models, zip(*memories, strict=True), strict=True)
        states = [model.start(pack_vectors(own)) for model, own in by_model]
        if self.shortlist is None:
            return EnsembleState(states, None)
        return EnsembleState(states, self._batch_shortlist(self.shortlist, sources, demanded))

    def step(self, tokens: Tensor, state: EnsembleState) -> Tensor:
        """Return the logits of the token after each given one.

        Args:
            tokens: (B, W) int64, one per row; the first one is the begin symbol.
            state: the state of the prefixes; advanced in place by the tokens.

        Returns:
            (B, W, V) logits; for an ensemble, the logarithm of the mean probability.
        """
        logits = self._logits(tokens, state)
        if len(logits) == 1:
            return logits[0]
        log_probs = torch.stack([one.log_softmax(-1, dtype=torch.float32) for one in logits])
        return log_probs.logsumexp(0) - math.log(len(logits))

    def _logits(self, tokens: Tensor, state: EnsembleState) -> list[Tensor]:
        """Return the logits (B, W, V) of each model."""
        pairs = zip(self.models, state.model_states, strict=True)
        shortlist = state.shortlist
        if shortlist is None:
            return [model.step(tokens, model_state) for model, model_state in pairs]
        tokens = shortlist.entries[tokens]
        hidden = [model.advance(tokens, model_state) for model, model_state in pairs]
        return [
            project(vectors) + shortlist.bias
            for project, vectors in zip(shortlist.projections, hidden, strict=True)
        ]

    def _batch_shortlist(
        self, shortlist: Shortlist, sources: Sequence[Sequence[int]], demanded: Tensor
    ) -> BatchShortlist:
        """Find the candidates of each sentence, and their union over the batch."""
        lengths = [*map(len, sources)]
        is_candidate = np.zeros((len(lengths), shortlist.size), bool)
        is_candidate[:, shortlist.frequent] = True
        rows = np.repeat(np.arange(len(lengths)), lengths)
        candidates = shortlist.candidates[np.concatenate(sources)]
        is_candidate[rows[:, None], candidates] = True
        sentences, positions = (demanded != NO_TOKEN).nonzero(as_tuple=True)
        forced = demanded[sentences, positions].cpu().numpy()
        is_candidate[sentences.cpu().numpy(), forced] = True
        entries = np.flatnonzero(is_candidate.any(0))
        bias = np.where(is_candidate[:, None, entries], np.float32(0), np.float32(IMPOSSIBLE))
        device = demanded.device
        ids = torch.from_numpy(entries).to(device)
        return BatchShortlist(
            entries=ids,
            bias=torch.from_numpy(bias).to(device),
            projections=[model.partial_projection(ids) for model in self.models],
        )
