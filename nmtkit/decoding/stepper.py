"""The step function that a search is given: that of a model, or of several that decide together."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nmtkit.model.state import DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import Packed


class States:
    """What each of several models remembers of the same prefixes."""

    def __init__(self, states: Sequence[DecoderState]) -> None:
        self.of_models = states

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


class Stepper:
    """Begins with sources, and predicts one token after the other."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        """Store the models: with one vocabulary, in evaluation mode, on one device."""
        self.models = models

    def start(self, source: Packed) -> States:
        """Read source ids (X,) of B sentences; returns what is remembered, one row each."""
        return States([model.start(model.encode(source)) for model in self.models])

    def step(self, tokens: Tensor, state: States) -> Tensor:
        """Read one more token of each row and predict the next.

        Args:
            tokens: (B, W) int64, the begin symbol at first.
            state: what was read so far; it is left advanced by the tokens.

        Returns:
            (B, W, V) logits; of several models, the logarithm of their mean probability.
        """
        of_models = zip(self.models, state.of_models, strict=True)
        logits = [model.step(tokens, of_model) for model, of_model in of_models]
        if len(logits) == 1:
            return logits[0]
        log_probs = torch.stack([one.log_softmax(-1, dtype=torch.float32) for one in logits])
        return log_probs.logsumexp(0) - math.log(len(logits))
