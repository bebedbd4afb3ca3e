"""Translator: translates chunks of lines in batches, and answers in order.

Each input line has exactly one answer. The caller reads chunks, and writes files and formats.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from nmtkit.config.metrics import CONSTRAINT_SETTINGS, TargetType
from nmtkit.config.schema import ScoringConfig, TranslateRecipe
from nmtkit.config.translation import ConstraintsConfig
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.answers import Answer, BatchResult, Chunk, Request, with_warnings
from nmtkit.decoding.constraints import (
    NO_TOKEN,
    BannedToken,
    Constraint,
    Constraints,
    ForcedPrefixes,
    NoRepeatedNgrams,
    ShortestLengths,
)
from nmtkit.decoding.forced import attention_by_ensemble, max_tokens_of, score_by_ensemble
from nmtkit.decoding.long_lines import LineSplitter, SourcePart, answer_of
from nmtkit.decoding.sampling import SamplingSpec, sample
from nmtkit.decoding.scorer import Scorer
from nmtkit.decoding.search import beam_search, longest_translation
from nmtkit.decoding.stepper import Stepper
from nmtkit.errors import ConfigError, DataError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import batches_by_length, pack_sequences
from nmtkit.parsing.well_formed import TreeForm
from nmtkit.symbols import UNK_ID
from nmtkit.text.codec import KINDS, TextCodec

BATCH_SIZES = {"cpu": 64, "cuda": 1024}
"""Limit of a batch if --batch-size is 0, by device type.

On a GPU the host is what limits a step: on an H200 a step of 1 024 sentences takes 1.7 times as
long as one of 256.
"""

_USUAL_WIDTH = 4
"""Hypotheses per sentence for which batch limits are meant; wider beams get smaller batches."""


class OutputForm(Protocol):
    """The form of all outputs of a type of target.

    Attributes:
        no_shortlist, no_prefix: why a shortlist or a forced prefix is refused; "" = it is not.
    """

    no_shortlist: str
    no_prefix: str

    def fewest_tokens(self, ids: list[int], line: str) -> int:
        """Return the length of the shortest output of a source, its end symbol counted.

        Args:
            ids: ids of the source, or of a part of it.
            line: text of the whole source.
        """

    def constraint(self, fewest: Sequence[int], max_lengths: Tensor) -> Constraint | None:
        """Return the constraint on a batch; None = the search is free.

        Args:
            fewest: the fewest tokens of each of B outputs.
            max_lengths: (B,) int64, the longest hypotheses permitted, end symbols counted.
        """


MakeForm = Callable[[TextCodec, ConstraintsConfig, torch.device], OutputForm]

OUTPUT_FORMS: dict[TargetType, MakeForm | None] = {"text": None, "trees": TreeForm}
"""Functions that make the form of a type of target; None = any output is valid."""


class Translator:
    """A model or ensemble with its codec, ready to translate."""

    def __init__(
        self,
        models: Sequence[Transformer],
        codec: TextCodec,
        recipe: TranslateRecipe,
        warn: Callable[[str], None],
        shortlist: Shortlist | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            models: in evaluation mode, on the device to use; several are an ensemble.
            codec: the codec that the models were trained with.
            recipe: settings of search, output and long lines.
            warn: takes one-line warnings of `answer_all`.
            shortlist: candidates for each source token; None = the whole vocabulary.

        Raises:
            ConfigError: the shortlist or a setting does not fit the models.
        """
        self._models = models
        self._stepper = Stepper(models, shortlist)
        self._codec = codec
        self._recipe = recipe
        self._warn = warn
        self._num_positions = min(model.config.longest_sequence for model in models)
        self._device = models[0].output_weight.device
        self._form = form = output_form(codec, recipe.constraints, self._device)
        self._splitter = LineSplitter(
            codec,
            recipe.translation,
            self._num_positions,
            recipe.constraints.max_output_length,
            form.no_prefix if form else "",
        )
        if shortlist is not None and form is not None and form.no_shortlist:
            raise ConfigError(f"--shortlist: {form.no_shortlist}; leave it out")

    def answer_all(self, chunks: Iterable[Chunk]) -> Iterator[BatchResult]:
        """Translate chunks of lines; yield the result of each batch.

        The answers of all results together are in the order of the lines. A chunk is read when the
        results of the one before have been consumed.
        """
        results = (result for first, chunk in chunks for result in self.answer_chunk(chunk, first))
        yield from with_warnings(results, self._warn)

    @torch.inference_mode()
    def answer_chunk(self, requests: Sequence[Request], first_number: int) -> Iterator[BatchResult]:
        """Translate a chunk of lines, in batches of sentences of similar length.

        Each answer has the n best translations of its line; a blank line has one blank translation.

        Args:
            requests: any number of requests.
            first_number: the number of the first line, for messages and for sampling.

        Raises:
            DataError: a line is too long, its prefix does not fit, or no translation is permitted.
        """
        assert not any(model.training for model in self._models), (
            "models must be in evaluation mode"
        )
        lines = deque(
            self._splitter.encode(request, number)
            for number, request in enumerate(requests, first_number)
        )
        parts = [part for line in lines for part in line if part.ids]
        num_missing = Counter(part.line for part in parts)
        num_blank = len(lines) - len(num_missing)
        yield BatchResult(self._final_answers(lines), num_blank, 0)
        for batch in self._batches(parts):
            self._translate(batch)
            num_missing.subtract(part.line for part in batch)
            num_lines = sum(not num_missing[line] for line in {part.line for part in batch})
            num_tokens = sum(len(part.hypotheses[0].ids) for part in batch)
            yield BatchResult(self._final_answers(lines), num_lines, num_tokens)

    def scorer(self, config: ScoringConfig) -> Scorer:
        """Return a scorer of the same models."""
        return Scorer(self._models, self._codec, config)

    @property
    def target_kind(self) -> str:
        """Kind of the target vocabulary, a key of `KINDS`."""
        return self._codec.target.kind

    @property
    def width(self) -> int:
        """Rows per sentence that a step of the models reads."""
        recipe = self._recipe
        return recipe.output.n_best if recipe.sampling.sample else recipe.search.beam

    def summarize(self, repair_counts: Counter[bool | None]) -> str:
        """Return a line about the repaired translations of a text; "" for plain text.

        Args:
            repair_counts: number of translations for each value of `is_repaired`.
        """
        return KINDS[self.target_kind].summarize(repair_counts)

    def _final_answers(self, lines: deque[list[SourcePart]]) -> list[Answer]:
        """Remove the first lines if they are translated; return the answers to them."""
        answers = []
        while lines and all(part.hypotheses for part in lines[0]):
            answers.append(answer_of(self._codec, lines.popleft()))
        return answers

    def _batches(self, parts: Sequence[SourcePart]) -> Iterator[list[SourcePart]]:
        """Yield batches of parts of similar length, the longest first."""
        config, device = self._recipe.translation, self._device
        lengths = [max(len(part.ids), len(part.forced_prefix)) for part in parts]
        batch_size = config.batch_size or BATCH_SIZES[device.type]
        limits = (max_tokens_of(config, device), batch_size)
        for batch in batches_by_length(lengths, *(scale_limit(one, self.width) for one in limits)):
            yield [parts[index] for index in batch]

    def _translate(self, parts: Sequence[SourcePart]) -> None:
        """Find the hypotheses of a batch, with the annotations that are requested."""
        recipe, stepper, device = self._recipe, self._stepper, self._device
        sources = pack_sequences([part.ids for part in parts], device)
        forced_prefixes = _padded([part.forced_prefix for part in parts], device)
        state = stepper.start(sources, forced_prefixes)
        longest, constraints = self._limits(parts, state.indices(forced_prefixes))
        if recipe.sampling.sample:
            keys = torch.tensor([(part.line, part.index) for part in parts], device=device)
            spec = SamplingSpec(recipe.sampling, keys, recipe.output.n_best)
            found = sample(stepper.step, state, longest, spec, recipe.search, constraints)
        else:
            found = beam_search(
                stepper.step, state, longest, recipe.search, constraints, recipe.output.n_best
            )
        for part, hypotheses in zip(parts, found, strict=True):
            if not hypotheses:
                raise DataError(
                    f"line {part.line}: no translation satisfies --min-length-offset, "
                    "--no-repeat-ngram and the other constraints; loosen them"
                )
            part.hypotheses = state.with_token_ids(hypotheses)
        self._annotate(parts)

    def _annotate(self, parts: Sequence[SourcePart]) -> None:
        """Read the hypotheses again, which is cheap compared with the search, as requested."""
        models, output = self._models, self._recipe.output
        max_tokens = max_tokens_of(self._recipe.translation, self._device)
        pairs = [(part.ids, one.ids) for part in parts for one in part.hypotheses]
        if output.token_scores:
            log_probs = iter(score_by_ensemble(models, pairs, max_tokens))
            for part in parts:
                part.token_log_probs = [next(log_probs) for _ in part.hypotheses]
        if output.alignments or output.attention:
            attention = iter(attention_by_ensemble(models, pairs, max_tokens))
            for part in parts:
                part.attention = [next(attention) for _ in part.hypotheses]

    def _limits(
        self, parts: Sequence[SourcePart], forced_prefixes: Tensor
    ) -> tuple[Tensor, Constraints | None]:
        """Return the largest lengths of hypotheses (B,), and their other constraints, if any."""
        search, config = self._recipe.search, self._recipe.constraints
        form, fewest = self._form, [1] * len(parts)
        if form is not None:
            fewest = [form.fewest_tokens(part.ids, part.request.line) for part in parts]
        longest, shortest = [], []
        for part, num_fewest in zip(parts, fewest, strict=True):
            size, forced = len(part.ids), len(part.forced_prefix)
            limit = max(longest_translation(search, size), num_fewest)
            if config.max_output_length:
                limit = min(limit, config.max_output_length + 1)
            limit = min(max(limit, forced + 1), self._num_positions)
            longest.append(limit)
            minimum = int(config.min_length_ratio * (size - 1)) + config.min_length_offset + 1
            shortest.append(min(minimum, limit))
        device = self._device
        max_lengths = torch.tensor(longest, device=device)
        constraints: list[Constraint] = []
        if forced_prefixes.shape[1]:
            constraints.append(ForcedPrefixes(forced_prefixes))
        if max(shortest) > 1:
            constraints.append(ShortestLengths(torch.tensor(shortest, device=device)))
        if config.ban_unknown:
            constraints.append(BannedToken(UNK_ID))
        if config.no_repeat_ngram:
            constraints.append(NoRepeatedNgrams(config.no_repeat_ngram))
        if form is not None and (of_form := form.constraint(fewest, max_lengths)) is not None:
            constraints.append(of_form)
        return max_lengths, Constraints(constraints, max_lengths) if constraints else None


def output_form(
    codec: TextCodec, config: ConstraintsConfig, device: torch.device
) -> OutputForm | None:
    """Return the form that the target of a codec demands, if any.

    Raises:
        ConfigError: a setting has no effect on this type of target.
    """
    own = CONSTRAINT_SETTINGS[codec.target_type]
    for settings in CONSTRAINT_SETTINGS.values():
        for name, reason in settings.items():
            value, default = vars(config)[name], getattr(ConstraintsConfig, name)
            if name not in own and value != default:
                raise ConfigError(
                    f"{name} ({value!r}) has no effect: {reason}; leave it out [constraints.{name}]"
                )
    make_form = OUTPUT_FORMS[codec.target_type]
    return None if make_form is None else make_form(codec, config, device)


def scale_limit(limit: int, width: int) -> int:
    """Scale the limit of a batch to sentences of `width` hypotheses each; at least 1."""
    return max(1, limit * _USUAL_WIDTH // max(width, _USUAL_WIDTH))


def _padded(sequences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return sequences of ids as (B, P), padded with NO_TOKEN."""
    longest = max(map(len, sequences))
    rows = [[*ids, *[NO_TOKEN] * (longest - len(ids))] for ids in sequences]
    return torch.tensor(rows, dtype=torch.int64, device=device)
