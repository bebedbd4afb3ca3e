"""Validation: nll of the validation set, scores of its translations, and their history.

The `Translator` of `nmtkit translate` translates the raw text, in the precision of training, and
the metrics of `nmtkit score` compare it with the raw reference. Ranks divide the work. Validation
draws no random numbers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, starmap

import numpy as np
import torch

from nmtkit.config.metrics import (
    AUTO,
    DEFAULT_METRICS,
    METRICS,
    NLL,
    NONE,
    OTHER_LANGUAGE,
    MetricsConfig,
    base_language,
    base_metric,
    cost,
    metric_names,
    metrics_of,
    not_validated,
    tokenizer_of,
)
from nmtkit.config.problems import suggestion
from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.training import ValidationConfig
from nmtkit.config.translation import AligningConfig, LinksConfig, TranslationConfig
from nmtkit.data.batch import gather
from nmtkit.data.binary import Dataset
from nmtkit.data.languages import LanguageScores, Rank, language_identifier
from nmtkit.data.sampler import batch_by_length
from nmtkit.decoding.aligner import Aligner, AligningModel
from nmtkit.decoding.answers import Pair, Request
from nmtkit.decoding.formats import pharaoh
from nmtkit.decoding.translator import BATCH_SIZES, Translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metric import Metric, Statistics
from nmtkit.evaluation.metrics import count_corpus, make_metrics, missing_extra
from nmtkit.progress.records import Sample, ValidationProgress, ValidationRecord
from nmtkit.text.characters import SUBWORD_MARK, join_subwords
from nmtkit.text.codec import TextCodec, languages_of
from nmtkit.text.language_symbols import needs_language, symbols_for
from nmtkit.text.lines import numbered_chunks
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective

ShowProgress = Callable[[ValidationProgress], None]
"""Shows the progress of a validation."""

_MIN_MARKED = 0.01
"""Share of entries with the mark of subword-nmt from which text is joined before it is scored."""

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
        statistics: statistics of all lines from which the scores are computed, by metric.
    """

    nll: float
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    translations: Sequence[str] = ()
    statistics: Mapping[str, Statistics] = field(default_factory=dict)


class ValidationHistory:
    """The validations of a run: the best one, and the number since.

    It is read from the run's log, so checkpoints do not save it.
    """

    def __init__(self, metric: str, records: Sequence[ValidationRecord]) -> None:
        """Compare validations by a metric; `records` are those so far, oldest first."""
        self._metric = metric
        self._updates: list[int] = []
        self._costs: list[float] = []
        self._scores: list[Mapping[str, float]] = []
        for record in records:
            self.add(record.update, record.nll, record.scores)

    def add(self, update: int, nll: float, scores: Mapping[str, float]) -> bool:
        """Add the validation after an update; return whether it is the best so far."""
        new = cost(self._metric, nll, scores)
        is_best = all(new < earlier for earlier in self._costs)
        self._updates.append(update)
        self._costs.append(new)
        self._scores.append(scores)
        return is_best

    def worse_directions(self) -> list[str]:
        """Return the directions that are worse than at the best validation before the last one.

        None if the last validation is not the best; the metric is then not an average, or worse.
        """
        *earlier, last = self._costs
        if not earlier or last >= min(earlier):
            return []
        old, new = self._scores[earlier.index(min(earlier))], self._scores[-1]
        names = [name for name in new if name.startswith(f"{self._metric}:") and name in old]
        worse = [one for one in names if cost(one, math.inf, new) > cost(one, math.inf, old)]
        return [name.partition(":")[2] for name in worse]

    def is_best_by(self, metric: str) -> bool:
        """Return whether the last validation, which has a score by a metric, is the best by it."""
        costs = [cost(metric, math.inf, one) for one in self._scores if metric in one]
        return costs.index(min(costs)) == len(costs) - 1

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


def check_symbols(dataset: Dataset) -> None:
    """Raise ConfigError if a validation line has no symbol of a target language, but needs one."""
    codec = dataset.codec
    for number, line in enumerate(dataset.valid_source if needs_language(codec) else (), 1):
        if line.strip() and not codec.split_symbol(line)[0]:
            symbol = symbols_for(codec, "", codec.target_langs[0])
            raise ConfigError(
                f"{dataset.folder}: validation line {number} does not begin with the symbol of its "
                f"target language; give `nmtkit preprocess` --tag 'PREFIX={symbol}', with that of "
                "each text of training and validation, or --validate-metrics none"
            )


def make_validation_metrics(
    config: ValidationConfig,
    codec: TextCodec,
    directions: Sequence[str],
    report: Callable[[str], None],
) -> dict[str, Metric]:
    """Make the metrics of validations, by name; they are those of `nmtkit score`.

    With several directions, each has its own, such as `bleu:en-sv`.

    BLEU without the packages that its tokenizer needs compares characters instead.

    Args:
        config: checked settings.
        codec: its target type must fit the metrics, and its languages are theirs.
        directions: of the validation texts; none of two languages.
        report: prints a line about missing packages.

    Raises:
        ConfigError: a metric does not fit the target or cannot be made, or the best metric is not
            validated.
    """
    target, text = codec.target_type, config.validate_metrics
    default = [DEFAULT_METRICS[target], *(["chrf"] if directions else [])]
    automatic = {AUTO: default, NONE: []}
    best, _, direction = config.best_metric.partition(":")
    if direction and direction not in directions:
        raise ConfigError(
            f"best_metric ({config.best_metric!r}): this dataset has no validation text of "
            f"{direction}; {suggestion(direction, directions)} [validation.best_metric]"
        )
    names = automatic[text] if text in automatic else metric_names(text)
    wanted = [("validate_metrics", name) for name in names]
    if best != NLL:
        wanted.append(("best_metric", best))
    for setting, name in wanted:
        if METRICS[name].compares not in (target, "text"):  # any line is text, too
            raise ConfigError(
                f"{setting}: {name} compares {METRICS[name].compares}, and the target side of this "
                f"dataset is {target}; choose from {', '.join(metrics_of(target))} "
                f"[validation.{setting}]"
            )
    if best not in (NLL, *names):
        raise ConfigError(f"{not_validated(best, names)} [validation.best_metric]")
    metrics = {}
    for one in directions or [""]:
        pair = "-".join(map(base_language, languages_of(one))) if one else codec.language_pair
        made = MetricsConfig(language_pair=pair)
        tokenizer = tokenizer_of(made)
        if "bleu" in names and (extra := missing_extra(tokenizer)):
            report(
                f"BLEU of validations {f'in {one} ' * bool(one)}is by character, as the packages "
                f"of the tokenizer {tokenizer} are not installed; run "
                f"`pip install 'nmtkit[{extra}]'`"
            )
            made = replace(made, tokenize="char")
        for name in names:
            metrics[_named(name, one)] = make_metrics(replace(made, metric=name))[0]
    return metrics


@dataclass(frozen=True)
class Validator:
    """Validates a model on a dataset's validation pairs.

    Attributes:
        objective: objective with the model to validate.
        dataset: dataset with validation pairs and their raw text.
        search: settings of the search that translates for the metrics.
        metrics: metrics by name, those of a direction as `bleu:en-sv`; if empty, nothing is
            translated.
        batch_tokens: largest number of source or target tokens per batch.
        warn: prints warnings of the translator, and of metrics that cannot be computed.
        ranks: ranks that divide the work.
    """

    objective: Objective
    dataset: Dataset
    search: SearchConfig
    metrics: Mapping[str, Metric]
    batch_tokens: int
    warn: Callable[[str], None]
    ranks: Ranks

    @cached_property
    def alignment_error(self) -> Metric | None:
        """The error of the trained head's links; None = no head, or no links to compare with."""
        if not self.dataset.valid_links or self.objective.model.config.trained_head is None:
            return None
        return make_metrics(MetricsConfig(metric="aer", gold_base="0"))[0]

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
            own_nll = self._nll(is_stopping, show)
            # Otherwise search cannot use the probabilities.
            is_finite = all(map(math.isfinite, own_nll))
            is_translated = self.metrics and is_finite
            own_lines = self._translate(is_stopping, show) if is_translated else []
            is_aligned = self.alignment_error and is_finite
            own_links = self._align(is_stopping, show) if is_aligned else []
        finally:
            self.objective.train()
        if any(self.ranks.gather(is_stopping())):
            return None
        lengths = self.dataset.valid.target.lengths()
        nlls = {
            text.direction: sum(own) / int(lengths[text.pairs].sum())
            for text, *own in zip(self._texts, *self.ranks.gather(own_nll), strict=True)
        }
        nll = sum(nlls.values()) / len(nlls)
        of_directions = {_named(NLL, one): value for one, value in nlls.items() if one}
        if not math.isfinite(nll):
            metrics = {**self.metrics}
            if self.alignment_error:
                metrics["aer"] = self.alignment_error
            worst = {name: _worst(one) for name, one in metrics.items()}
            return Validation(nll, _with_averages(worst) | of_directions, {})
        translations, links = (
            [line for lines in self.ranks.gather(own) for line in lines]
            for own in (own_lines, own_links)
        )
        scored = self._scored(nll, translations, links, show)
        return replace(scored, scores=_with_averages(scored.scores) | of_directions)

    @cached_property
    def _texts(self) -> "list[_Part]":
        """The validation texts."""
        parts, line, pair = [], 0, 0
        for text in self.dataset.valid_texts:
            ends = line + text.num_lines, pair + text.num_pairs
            parts.append(_Part(text.direction, slice(line, ends[0]), slice(pair, ends[1])))
            line, pair = ends
        return parts

    def _scored(
        self, nll: float, translations: Sequence[str], links: Sequence[str], show: ShowProgress
    ) -> Validation:
        """Return the scores of translations, those of each direction if there are several."""
        scores: dict[str, float] = {}
        signatures, statistics = {}, {}
        lines = {text.direction: text.lines for text in self._texts}
        join = _joiner(self.dataset.codec)
        outputs, references = (
            [*map(join, one)] for one in (translations, self.dataset.valid_target)
        )
        if self.metrics:
            show(ValidationProgress("computed metrics", 0, len(self.metrics)))
        for number, (name, metric) in enumerate(self.metrics.items(), 1):
            own = lines[name.partition(":")[2]]
            try:
                counted = count_corpus(metric, outputs[own], [references[own]])
                score = metric.score(counted, resamples=0)
            except DataError as error:
                self.warn(f"{name} of the validation set cannot be computed: {error}")
                scores[name] = _worst(metric)
            else:
                scores[name], signatures[name] = score.score, score.signature
                statistics[name] = counted
            show(ValidationProgress("computed metrics", number, len(self.metrics)))
        if self.metrics and self.dataset.directions and (rank := language_identifier()):
            for direction, own in lines.items():
                name = _named(OTHER_LANGUAGE, direction)
                scores[name] = points_in_other_language(outputs[own], references[own], rank)
        if self.alignment_error:
            counted = count_corpus(self.alignment_error, links, [self.dataset.valid_links])
            score = self.alignment_error.score(counted, resamples=0)
            scores["aer"], signatures["aer"] = score.score, score.signature
            statistics["aer"] = counted
        return Validation(nll, scores, signatures, translations, statistics)

    @torch.inference_mode()
    def _nll(self, is_stopping: Callable[[], bool], show: ShowProgress) -> list[float]:
        """Sum the negative log-likelihood of each validation text over this rank's batches."""
        pairs = replace(self.dataset.valid, links=None)
        device = self.objective.model.output_weight.device
        lengths = pairs.source.lengths(), pairs.target.lengths()
        budget = max(self.batch_tokens, int(lengths[0].max()), int(lengths[1].max()))
        totals = [0.0] * len(self._texts)
        batches = [
            (place, text.pairs.start + indices)
            for place, text in enumerate(self._texts)
            for indices in batch_by_length(lengths[0][text.pairs], lengths[1][text.pairs], budget)
        ][self.ranks.rank :: self.ranks.size]
        show(ValidationProgress("batches of nll", 0, len(batches)))
        for number, (place, indices) in enumerate(batches, 1):
            if is_stopping():
                break
            totals[place] += float(self.objective(gather(pairs, indices, device)).sums[NLL])
            show(ValidationProgress("batches of nll", number, len(batches)))
        return totals

    def _translate(self, is_stopping: Callable[[], bool], show: ShowProgress) -> list[str]:
        """Translate this rank's lines."""
        trained = self.objective.model
        size = min(BATCH_SIZES[trained.output_weight.device.type], MAX_SENTENCES)
        recipe = TranslateRecipe(search=self.search, translation=TranslationConfig(batch_size=size))
        precision = self.objective.low_precision or trained.output_weight.dtype
        model = trained.prepared_copy(precision)
        translator = Translator([model], self.dataset.codec, recipe, self.warn)
        lines, (first, end) = self.dataset.valid_source, self._own_lines()
        translations: list[str] = []
        num_done = 0
        show(ValidationProgress("translated lines", num_done, end - first))
        requests = map(Request, islice(lines, first, end))
        chunks = numbered_chunks(requests, recipe.translation.chunk_lines)
        for result in translator.answer_all(chunks):
            if is_stopping():
                break
            translations += [answer.translation.text for answer in result.answers]
            num_done += result.num_lines
            show(ValidationProgress("translated lines", num_done, end - first))
        return translations

    def _align(self, is_stopping: Callable[[], bool], show: ShowProgress) -> list[str]:
        """Align this rank's lines; return their links in Pharaoh's format."""
        dataset, (first, end) = self.dataset, self._own_lines()
        model, limit = self.objective.model, self.batch_tokens
        one = AligningModel(model, dataset.codec)
        config = AligningConfig(max_tokens=limit, max_length=model.config.longest_sequence)
        aligner = Aligner([one], LinksConfig(), config, self.warn)
        pairs = zip(dataset.valid_source[first:end], dataset.valid_target[first:end], strict=True)
        links: list[str] = []
        show(ValidationProgress("aligned lines", 0, end - first))
        for result in aligner.answer_all(numbered_chunks(starmap(Pair, pairs), config.chunk_lines)):
            if is_stopping():
                break
            links += [pharaoh(answer.links) for answer in result.answers]
            show(ValidationProgress("aligned lines", len(links), end - first))
        return links

    def _own_lines(self) -> tuple[int, int]:
        """Return the first line of this rank, and the end of its lines."""
        count, ranks = len(self.dataset.valid_source), self.ranks
        return count * ranks.rank // ranks.size, count * (ranks.rank + 1) // ranks.size


@dataclass(frozen=True)
class _Part:
    """A validation text: its direction, or "", its lines, and its pairs with ids."""

    direction: str
    lines: slice
    pairs: slice


def validated_directions(dataset: Dataset) -> list[str]:
    """Return the directions with a validation text; none of a dataset of two languages."""
    return [text.direction for text in dataset.valid_texts if text.direction]


def points_in_other_language(
    outputs: Sequence[str], references: Sequence[str], rank: Rank
) -> float:
    """Return the percentage of outputs in another language, minus that of the references.

    The languages are those of the references; lines that are too short are not judged.
    """
    known = LanguageScores.of(references, rank)
    shares = []
    for scores in (LanguageScores.of(outputs, rank), known):
        num_judged = int(np.count_nonzero(scores.are_judged))
        found = int(np.count_nonzero(scores.in_other_language(known)))
        shares.append(100 * found / max(1, num_judged))
    return shares[0] - shares[1]


def _named(metric: str, direction: str) -> str:
    return f"{metric}:{direction}" if direction else metric


def _with_averages(scores: Mapping[str, float]) -> dict[str, float]:
    """Return scores with the averages over directions, which come first."""
    names = dict.fromkeys(base_metric(name) for name in scores if ":" in name)
    values = {
        one: [score for name, score in scores.items() if base_metric(name) == one] for one in names
    }
    return {**{name: sum(own) / len(own) for name, own in values.items()}, **scores}


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


def _joiner(codec: TextCodec) -> Callable[[str], str]:
    """Return the function that joins the target's subwords if they are subword-nmt's."""
    target = codec.target
    marked = sum(target.piece(entry).endswith(SUBWORD_MARK) for entry in range(target.size))
    return join_subwords if marked > _MIN_MARKED * target.size else str


def _worst(metric: Metric) -> float:
    return 0.0 if metric.is_higher_better else math.inf
