"""Validation: the likelihood of the validation set, scores of its translations, their history.

The `Translator` of `nmtkit translate` translates the raw text, and the metrics of `nmtkit score`
compare it with the raw reference. Ranks share the work. The randomness of training is not touched.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from nmtkit.config.metrics import (
    AUTO,
    DEFAULT_METRICS,
    METRICS,
    NLL,
    NONE,
    MetricsConfig,
    cost,
    metric_names,
    metrics_of,
    not_validated,
)
from nmtkit.config.schema import SearchConfig, TranslateRecipe, TranslationConfig
from nmtkit.config.training import ValidationConfig
from nmtkit.data.batch import gather
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import cut_sorted
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metric import Metric
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.progress.records import ValidationRecord
from nmtkit.text.codec import TextCodec
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective

LINES_BETWEEN_STOP_CHECKS = 128
"""Sentences translated before a request to stop is looked at again."""


@dataclass(frozen=True)
class Validation:
    """The result of a validation.

    Attributes:
        nll: negative log-likelihood without smoothing, in nats per target token.
        scores: of the translations, by metric; the worst ones if nll is not finite, because the
            model cannot translate then.
        signatures: how the scores were computed, by metric.
    """

    nll: float
    scores: Mapping[str, float]
    signatures: Mapping[str, str]


class ValidationHistory:
    """The validations of a run, oldest first: which is the best, how many came after it.

    It follows from the records of the run's log, so none of it is saved.
    """

    def __init__(self, metric: str, records: Sequence[ValidationRecord]) -> None:
        """Add the validations so far, in the order of their updates, to be compared by a metric."""
        self._metric = metric
        self._updates: list[int] = []
        self._costs: list[float] = []
        for record in records:
            self.add(record.update, record.nll, record.scores)

    def add(self, update: int, nll: float, scores: Mapping[str, float]) -> bool:
        """Add the validation after an update; return whether it is the best so far."""
        new = cost(self._metric, nll, scores)
        is_best = all(new < earlier for earlier in self._costs)
        self._updates.append(update)
        self._costs.append(new)
        return is_best

    @property
    def last_update(self) -> int:
        """The update that was validated last; 0 = none yet."""
        return self._updates[-1] if self._updates else 0

    @property
    def num_stale(self) -> int:
        """Validations since the best one."""
        return len(self._costs) - 1 - self._costs.index(min(self._costs)) if self._costs else 0

    def best_first(self) -> list[int]:
        """Return the updates that were validated, the best first, the earlier of equal ones."""
        order = sorted(range(len(self._costs)), key=self._costs.__getitem__)
        return [self._updates[place] for place in order]


def make_validation_metrics(config: ValidationConfig, codec: TextCodec) -> dict[str, Metric]:
    """Make the metrics of validations, by their names.

    Args:
        config: a checked one.
        codec: its target type must fit the metrics; its languages are those of metrics that need
            them.

    Raises:
        ConfigError: a metric does not fit the target, or cannot be made; or the best metric is not
            among them.
    """
    target, text = codec.target_type, config.validate_metrics
    automatic = {AUTO: [DEFAULT_METRICS[target]], NONE: []}
    names = automatic[text] if text in automatic else metric_names(text)
    wanted = [("validate_metrics", name) for name in names]
    if config.best_metric != NLL:
        wanted.append(("best_metric", config.best_metric))
    for setting, name in wanted:
        if METRICS[name].compares not in (target, "text"):  # any line is text, too
            raise ConfigError(
                f"{setting}: {name} compares {METRICS[name].compares}, and the target side of this "
                f"dataset is {target}; choose from {', '.join(metrics_of(target))} "
                f"[validation.{setting}]"
            )
    if config.best_metric not in (NLL, *names):
        raise ConfigError(not_validated(config.best_metric, names))
    return {name: _make_metric(name, codec) for name in names}


def _make_metric(name: str, codec: TextCodec) -> Metric:
    languages = f"{codec.source_lang}-{codec.target_lang}" * METRICS[name].needs_languages
    return make_metrics(MetricsConfig(metric=name, language_pair=languages))[0]


@dataclass(frozen=True)
class Share:
    """The contribution of one rank.

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
        search: SearchConfig,
        metrics: Mapping[str, Metric],
        batch_tokens: int,
        warn: Callable[[str], None],
        ranks: Ranks,
    ) -> None:
        """Store the parts.

        Args:
            objective: holds the model.
            dataset: its validation pairs and their raw text.
            search: how to translate for the metrics.
            metrics: by their names; without any, nothing is translated.
            batch_tokens: source and target tokens of a batch, at most.
            warn: takes the translator's warnings, and messages of metrics that cannot be computed.
            ranks: who shares the work.
        """
        self.objective = objective
        self.dataset = dataset
        self.search = search
        self.metrics = metrics
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
        if not math.isfinite(nll):
            return Validation(nll, {name: _worst(one) for name, one in self.metrics.items()}, {})
        return self._scored(nll, [line for share in finished for line in share.translations])

    def _scored(self, nll: float, translations: Sequence[str]) -> Validation:
        scores, signatures = {}, {}
        for name, metric in self.metrics.items():
            try:
                (score,) = score_corpus([metric], translations, [self.dataset.valid_target])
            except DataError as error:
                self.warn(f"{name} of the validation set cannot be computed: {error}")
                scores[name] = _worst(metric)
            else:
                scores[name], signatures[name] = score.score, score.signature
        return Validation(nll, scores, signatures)

    def _share(self, is_stopping: Callable[[], bool]) -> Share | None:
        """Do this rank's share of the work; None if asked to stop before its end."""
        nll = self._nll(is_stopping)
        is_sound = math.isfinite(nll)  # else the probabilities are none that a search can use
        translations = self._translate(is_stopping) if self.metrics and is_sound else []
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


def _worst(metric: Metric) -> float:
    return 0.0 if metric.is_higher_better else math.inf
