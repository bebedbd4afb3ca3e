"""Validation: nll of the validation set, scores of its translations, and their history.

The `Translator` of `nmtkit translate` translates the raw text, in the precision of training, and
the metrics of `nmtkit score` compare it with the raw reference. Ranks divide the work. Validation
draws no random numbers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
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
from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.training import ValidationConfig
from nmtkit.config.translation import TranslationConfig
from nmtkit.data.batch import gather
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import batch_by_length
from nmtkit.decoding.batching import BATCH_SIZES
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metric import Metric
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.progress.records import Sample, ValidationProgress, ValidationRecord
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import numbered_chunks
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective

ShowProgress = Callable[[ValidationProgress], None]
"""Shows the progress of a validation."""

MAX_SENTENCES = 256
"""Largest number of sentences that are translated together: next to the state of training."""


@dataclass(frozen=True)
class Validation:
    """The result of a validation.

    Attributes:
        nll: negative log-likelihood without smoothing, in nats per target token.
        scores: scores of the translations, by metric. If nll is not finite, the model cannot
            translate, and these are the worst scores.
        signatures: signatures of the scores, by metric.
        translations: translations of all lines; none if nothing is translated.
    """

    nll: float
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    translations: Sequence[str] = ()


class ValidationHistory:
    """The validations of a run: the best one, and the number since.

    It is read from the run's log, so checkpoints do not save it.
    """

    def __init__(self, metric: str, records: Sequence[ValidationRecord]) -> None:
        """Compare validations by a metric; `records` are those so far, oldest first."""
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
    def last_update(self) -> int | None:
        """Update of the last validation; None = none yet."""
        return self._updates[-1] if self._updates else None

    @property
    def num_stale(self) -> int:
        """Number of validations since the best one."""
        return len(self._costs) - 1 - self._costs.index(min(self._costs)) if self._costs else 0

    def best_first(self) -> list[int]:
        """Return the validated updates, best first; of equal ones, the earlier first."""
        order = sorted(range(len(self._costs)), key=self._costs.__getitem__)
        return [self._updates[place] for place in order]


def make_validation_metrics(config: ValidationConfig, codec: TextCodec) -> dict[str, Metric]:
    """Make the metrics of validations, by name.

    Args:
        config: checked settings.
        codec: its target type must fit the metrics; metrics that need languages use the codec's.

    Raises:
        ConfigError: a metric does not fit the target or cannot be made, or the best metric is not
            validated.
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
class RankResult:
    """The part of a validation that one rank computes.

    Attributes:
        nll: negative log-likelihood of the rank's pairs, in nats.
        translations: translations of the rank's lines.
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
            objective: objective with the model to validate.
            dataset: dataset with validation pairs and their raw text.
            search: settings of the search that translates for the metrics.
            metrics: metrics by name; if empty, nothing is translated.
            batch_tokens: largest number of source or target tokens per batch.
            warn: prints warnings of the translator, and of metrics that cannot be computed.
            ranks: ranks that divide the work.
        """
        self.objective = objective
        self.dataset = dataset
        self.search = search
        self.metrics = metrics
        self.batch_tokens = batch_tokens
        self.warn = warn
        self.ranks = ranks

    def validate(
        self,
        is_stopping: Callable[[], bool],
        show: ShowProgress = lambda _: None,
    ) -> Validation | None:
        """Validate; return None if asked to stop before the end.

        Args:
            is_stopping: returns whether to stop before the next batch.
            show: shows the progress of this rank's part.

        Raises:
            LostRankError, ReportedElsewhereError: see `Ranks.exchange`.
        """
        self.objective.eval()
        try:
            result = self._validate_part(is_stopping, show)
        finally:
            self.objective.train()
        results = self.ranks.gather(asdict(result) if result else None)
        finished = [RankResult(**values) for values in results if values is not None]
        if len(finished) < len(results):
            return None
        num_tokens = int(self.dataset.valid.target.lengths().sum())
        nll = sum(result.nll for result in finished) / num_tokens
        if not math.isfinite(nll):
            return Validation(nll, {name: _worst(one) for name, one in self.metrics.items()}, {})
        translations = [line for result in finished for line in result.translations]
        return self._scored(nll, translations, show)

    def _scored(self, nll: float, translations: Sequence[str], show: ShowProgress) -> Validation:
        scores, signatures = {}, {}
        if self.metrics:
            show(ValidationProgress("computed metrics", 0, len(self.metrics)))
        for number, (name, metric) in enumerate(self.metrics.items(), 1):
            try:
                (score,) = score_corpus([metric], translations, [self.dataset.valid_target])
            except DataError as error:
                self.warn(f"{name} of the validation set cannot be computed: {error}")
                scores[name] = _worst(metric)
            else:
                scores[name], signatures[name] = score.score, score.signature
            show(ValidationProgress("computed metrics", number, len(self.metrics)))
        return Validation(nll, scores, signatures, translations)

    def _validate_part(
        self, is_stopping: Callable[[], bool], show: ShowProgress
    ) -> RankResult | None:
        """Validate this rank's part; return None if asked to stop before its end."""
        nll = self._nll(is_stopping, show)
        is_sound = math.isfinite(nll)  # otherwise search cannot use the probabilities
        translations = self._translate(is_stopping, show) if self.metrics and is_sound else []
        return None if is_stopping() else RankResult(nll, translations)

    @torch.inference_mode()
    def _nll(self, is_stopping: Callable[[], bool], show: ShowProgress) -> float:
        """Sum the negative log-likelihood over this rank's batches."""
        pairs = self.dataset.valid
        device = self.objective.model.output_weight.device
        lengths = pairs.source.lengths(), pairs.target.lengths()
        budget = max(self.batch_tokens, int(lengths[0].max()), int(lengths[1].max()))
        total = 0.0
        batches = batch_by_length(*lengths, budget)[self.ranks.rank :: self.ranks.size]
        show(ValidationProgress("batches of nll", 0, len(batches)))
        for number, indices in enumerate(batches, 1):
            if is_stopping():
                break
            total += float(self.objective(gather(pairs, indices, device)).nll)
            show(ValidationProgress("batches of nll", number, len(batches)))
        return total

    def _translate(self, is_stopping: Callable[[], bool], show: ShowProgress) -> list[str]:
        """Translate this rank's lines."""
        trained = self.objective.model
        size = min(BATCH_SIZES[trained.output_weight.device.type], MAX_SENTENCES)
        recipe = TranslateRecipe(search=self.search, translation=TranslationConfig(batch_size=size))
        precision = self.objective.low_precision or trained.output_weight.dtype
        model = trained.prepared_copy(precision)
        translator = Translator([model], self.dataset.codec, recipe, self.warn)
        lines, ranks = self.dataset.valid_source, self.ranks
        first, end = (len(lines) * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1))
        translations: list[str] = []
        num_done = 0
        show(ValidationProgress("translated lines", num_done, end - first))
        requests = map(Request, islice(lines, first, end))
        chunks = numbered_chunks(requests, recipe.translation.chunk_lines)
        for result in translator.answer_all(chunks):
            if is_stopping():
                break
            translations += [answer.translations[0].text for answer in result.answers]
            num_done += result.num_lines
            show(ValidationProgress("translated lines", num_done, end - first))
        return translations


def choose_samples(dataset: Dataset, translations: Sequence[str], number: int) -> list[Sample]:
    """Return lines of the validation set, the same ones in every validation.

    Args:
        dataset: dataset with the raw text of its validation pairs.
        translations: translations of all lines; if empty, there are no samples.
        number: number of lines, spread evenly; all lines if there are fewer.
    """
    count = min(number, len(translations))
    places = [len(translations) * index // count for index in range(count)]
    return [
        Sample(
            place + 1, dataset.valid_source[place], dataset.valid_target[place], translations[place]
        )
        for place in places
    ]


def _worst(metric: Metric) -> float:
    return 0.0 if metric.is_higher_better else math.inf
