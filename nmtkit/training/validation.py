"""Validation: negative log-likelihood, perplexity, and BLEU by the very code of the commands.

Translations are made by the `Translator` of `nmtkit translate` from the raw text, and scored as
`nmtkit score` does against the raw reference. Ranks share the work. Nothing here touches the
randomness of training.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import torch

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import SearchConfig, TranslateRecipe, TranslationConfig
from nmtkit.data.batch import gather
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import cut_sorted
from nmtkit.decoding.translator import Translator
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective

LINES_BETWEEN_STOP_CHECKS = 128
"""Sentences translated before a request to stop is looked at again."""


@dataclass(frozen=True)
class Validation:
    """How a model does on the validation set.

    Attributes:
        nll: negative log-likelihood without smoothing, in nats per target token.
        bleu: BLEU of the translations, or None where it was not asked for; 0 where nll is not
            finite, with which there are no translations.
        signature: how BLEU was computed, if it was.
    """

    nll: float
    bleu: float | None
    signature: str | None


@dataclass(frozen=True)
class Share:
    """What one rank contributes.

    Attributes:
        nll: negative log-likelihood of its pairs, in nats.
        translations: of its lines.
    """

    nll: float
    translations: list[str]


class Validator:
    """Validates a model on a dataset's validation pairs."""

    def __init__(
        self,
        objective: Objective,
        dataset: Dataset,
        search: SearchConfig | None,
        batch_tokens: int,
        warn: Callable[[str], None],
        ranks: Ranks,
    ) -> None:
        """Store the parts.

        Args:
            objective: holds the model.
            dataset: its validation pairs and their raw text.
            search: how to translate for BLEU, or None for nll alone.
            batch_tokens: source and target tokens of a batch, at most.
            warn: takes the translator's warnings.
            ranks: who shares the work.
        """
        self.objective = objective
        self.dataset = dataset
        self.search = search
        self.batch_tokens = batch_tokens
        self.warn = warn
        self.ranks = ranks

    def validate(self, is_stopping: Callable[[], bool]) -> Validation | None:
        """Validate, or return None if asked to stop before the end.

        Raises:
            LostRankError, ToldElsewhereError: see `Ranks.exchange`.
        """
        self.objective.eval()
        try:
            share = self._share(is_stopping)
        finally:
            self.objective.train()
        shares = self.ranks.gather(share)
        finished = [share for share in shares if share is not None]
        if len(finished) < len(shares):
            return None
        num_tokens = int(self.dataset.valid.target.lengths().sum())
        nll = sum(share.nll for share in finished) / num_tokens
        if self.search is None:
            return Validation(nll, None, None)
        if not math.isfinite(nll):
            return Validation(nll, 0.0, None)
        hypotheses = [line for share in finished for line in share.translations]
        bleu = make_metrics(MetricsConfig())
        (score,) = score_corpus(bleu, hypotheses, [self.dataset.valid_target])
        return Validation(nll, score.score, score.signature)

    def _share(self, is_stopping: Callable[[], bool]) -> Share | None:
        """Do this rank's share of the work; None if asked to stop before its end."""
        nll = self._nll(is_stopping)
        is_sound = math.isfinite(nll)  # else the probabilities are none that a search can use
        translations = self._translate(is_stopping) if self.search and is_sound else []
        return None if is_stopping() else Share(nll, translations)

    @torch.inference_mode()
    def _nll(self, is_stopping: Callable[[], bool]) -> float:
        """Sum the negative log-likelihood over this rank's share of the batches."""
        pairs = self.dataset.valid
        device = self.objective.model.output_weight.device
        lengths = pairs.source.lengths(), pairs.target.lengths()
        budget = max(self.batch_tokens, int(lengths[0].max()), int(lengths[1].max()))
        total = 0.0
        for indices in cut_sorted(*lengths, budget)[self.ranks.rank :: self.ranks.size]:
            if is_stopping():
                break
            total += float(self.objective(gather(pairs, indices, device)).nll)
        return total

    def _translate(self, is_stopping: Callable[[], bool]) -> list[str]:
        """Translate this rank's share of the lines."""
        assert self.search is not None, "translation was not asked for"
        recipe = TranslateRecipe(
            search=self.search, translation=TranslationConfig(chunk_lines=LINES_BETWEEN_STOP_CHECKS)
        )
        translator = Translator([self.objective.model], self.dataset.codec, recipe, self.warn)
        lines, ranks = self.dataset.valid_source, self.ranks
        first, end = (len(lines) * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1))
        translations: list[str] = []
        for line in translator.translate(islice(lines, first, end)):
            if is_stopping():
                break
            translations.append(line)
        return translations
