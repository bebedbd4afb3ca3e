"""Looking at the validation set: loss, perplexity, and BLEU by the very code of the commands.

Translations are made by the `Translator` of `nmtkit translate` from the raw text, and scored as
`nmtkit score` does against the raw reference. Nothing here touches the randomness of training.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from nmtkit.config.schema import SearchConfig, TranslationConfig
from nmtkit.data.batch import gather
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import cut_sorted
from nmtkit.decoding.translator import Translator
from nmtkit.evaluation.metrics import score_corpus
from nmtkit.training.objective import Objective

LINES_BETWEEN_STOP_CHECKS = 128
"""Sentences translated before a request to stop is looked at again."""


@dataclass(frozen=True)
class Validation:
    """How a model does on the validation set.

    Attributes:
        loss: negative log-likelihood a target token, without smoothing, in nats.
        bleu: BLEU of the translations, or None where it was not asked for.
        signature: how BLEU was computed.
    """

    loss: float
    bleu: float | None
    signature: str | None


class Validator:
    """Validates a model on a dataset's validation pairs."""

    def __init__(
        self,
        objective: Objective,
        dataset: Dataset,
        search: SearchConfig | None,
        batch_tokens: int,
        warn: Callable[[str], None],
    ) -> None:
        """Store the parts.

        Args:
            objective: holds the model.
            dataset: its validation pairs and their raw text.
            search: how to translate for BLEU, or None for the loss alone.
            batch_tokens: source and target tokens of a batch, at most.
            warn: takes the translator's warnings.
        """
        self.objective = objective
        self.dataset = dataset
        self.search = search
        self.batch_tokens = batch_tokens
        self.warn = warn

    def validate(self, is_stopping: Callable[[], bool]) -> Validation | None:
        """Validate, or return None if asked to stop before the end."""
        self.objective.eval()
        try:
            loss = self._loss(is_stopping)
            bleu = self._bleu(is_stopping) if loss is not None and self.search else None
        finally:
            self.objective.train()
        if loss is None or is_stopping():
            return None
        score, signature = bleu or (None, None)
        return Validation(loss, score, signature)

    @torch.inference_mode()
    def _loss(self, is_stopping: Callable[[], bool]) -> float | None:
        pairs = self.dataset.valid
        device = self.objective.model.output_weight.device
        lengths = pairs.source.lengths(), pairs.target.lengths()
        budget = max(self.batch_tokens, int(lengths[0].max()), int(lengths[1].max()))
        total = 0.0
        for indices in cut_sorted(*lengths, budget):
            if is_stopping():
                return None
            total += float(self.objective(gather(pairs, indices, device)).nll)
        return total / int(lengths[1].sum())

    def _bleu(self, is_stopping: Callable[[], bool]) -> tuple[float, str] | None:
        assert self.search is not None
        translator = Translator(
            self.objective.model,
            self.dataset.codec,
            self.search,
            TranslationConfig(chunk_lines=LINES_BETWEEN_STOP_CHECKS),
            self.warn,
        )
        hypotheses: list[str] = []
        for chunk in translator.translate_chunks(iter(self.dataset.valid_source)):
            hypotheses += chunk
            if is_stopping():
                return None
        (score,) = score_corpus(["bleu"], hypotheses, self.dataset.valid_target)
        return score.score, score.signature
