"""Translator: translates chunks of lines in batches, and answers in order.

Each input line has exactly one answer. The caller reads chunks, and writes files and formats.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import torch
from torch import Tensor

from nmtkit.config.schema import ScoringConfig, TranslateRecipe
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.annotations import Annotations, annotate
from nmtkit.decoding.answers import (
    Answer,
    BatchResult,
    Chunk,
    ChunkAnswers,
    Translation,
    join_n_best,
)
from nmtkit.decoding.batching import (
    batch_size_of,
    batches_by_length,
    longest_translation,
    max_tokens_of,
    scale_limit,
)
from nmtkit.decoding.constraints import (
    NO_TOKEN,
    BannedToken,
    Constraint,
    Constraints,
    ForcedPrefixes,
    NoRepeatedNgrams,
    ShortestLengths,
)
from nmtkit.decoding.forced import Ids
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.long_lines import LineSplitter, with_warnings
from nmtkit.decoding.output_forms import output_form
from nmtkit.decoding.sampling import SamplingSpec, sample
from nmtkit.decoding.scorer import Scorer
from nmtkit.decoding.search import Hypothesis, beam_search
from nmtkit.decoding.stepper import Stepper
from nmtkit.errors import ConfigError, DataError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import UNK_ID
from nmtkit.text.codec import KINDS, TextCodec
from nmtkit.text.lines import numbered_chunks, one_line

_MAX_PARTS = 2**20
"""More than a line can have, so that line number and part number make one key."""


@dataclass(frozen=True)
class _SourcePart:
    """A sequence to translate: a line, or a part of a line that is too long.

    Attributes:
        ids: source ids, the end symbol last.
        forced_prefix: ids that its translations must begin with.
        key: unique number of the part, which seeds sampling.
        fewest_tokens: length of its shortest valid translation, the end symbol counted.
    """

    ids: list[int]
    forced_prefix: list[int]
    key: int
    fewest_tokens: int


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
            warn: takes one-line warnings of `answer_all` and `translate`.
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
        self._splitter = LineSplitter(codec, recipe.translation, self._num_positions)
        self._device = models[0].output_weight.device
        self._form = output_form(codec, recipe.constraints, self._device)
        if shortlist is not None and self._form is not None and self._form.no_shortlist:
            raise ConfigError(f"--shortlist: {self._form.no_shortlist}; leave it out")

    def translate(self, lines: Iterable[str]) -> Iterator[str]:
        """Translate lines lazily; yield one translation per line.

        Raises:
            DataError: a line is too long, and `on_too_long` is "error".
        """
        config = self._recipe.translation
        chunks = numbered_chunks(map(Request, lines), 1 if config.stream else config.chunk_lines)
        for result in self.answer_all(chunks):
            for answer in result.answers:
                yield answer.translations[0].text

    def answer_all(self, chunks: Iterable[Chunk]) -> Iterator[BatchResult]:
        """Translate chunks of lines; yield the result of each batch.

        The answers of all results together are in the order of the lines. A chunk is read when the
        results of the one before have been consumed.
        """
        results = (result for first, chunk in chunks for result in self.answer_chunk(chunk, first))
        yield from with_warnings(results, self._warn)

    def answer(self, requests: Sequence[Request], first_number: int) -> list[Answer]:
        """Translate a chunk of lines; `answer_chunk` without its steps."""
        results = self.answer_chunk(requests, first_number)
        return [answer for result in results for answer in result.answers]

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
        lines = [
            self._splitter.encode(_spaced(request.source), number)
            for number, request in enumerate(requests, first_number)
        ]
        parts_of_lines = [
            self._parts(request, line.parts, number)
            for number, (request, line) in enumerate(
                zip(requests, lines, strict=True), first_number
            )
        ]
        parts = [part for parts_of_line in parts_of_lines for part in parts_of_line]

        def complete(place: int, found: list[list[Translation]]) -> Answer:
            line = lines[place]
            return self._completed(requests[place], join_n_best(found, line.word_of), line.warning)

        answers = ChunkAnswers([*map(len, parts_of_lines)], complete)
        yield answers.add_blank()
        config, device, width = self._recipe.translation, self._device, self.width
        lengths = [max(len(part.ids), len(part.forced_prefix)) for part in parts]
        limits = max_tokens_of(config, device), batch_size_of(config, device)
        for batch in batches_by_length(lengths, *(scale_limit(one, width) for one in limits)):
            yield answers.add(batch, self._translate([parts[index] for index in batch]))

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

    def _completed(self, request: Request, found: list[Translation], warning: str) -> Answer:
        """Return the answer to a request; the codec completes the texts of its translations."""
        if not request.source:
            return Answer(request, found, warning)
        translations = []
        for one in found:
            text, is_repaired = self._codec.complete(one.text, request.source)
            translations.append(replace(one, text=text, is_repaired=is_repaired))
        return Answer(request, translations, warning)

    def _parts(
        self, request: Request, parts: Sequence[list[int]], number: int
    ) -> list[_SourcePart]:
        """Return the parts of a line to translate; the forced prefix belongs to the first part."""
        if not (parts or request.target_prefix):
            return []
        line = _spaced(request.source)
        if request.target_prefix and self._form is not None and self._form.no_prefix:
            raise DataError(f"line {number}: target_prefix {self._form.no_prefix}; leave it out")
        forced_prefix = self._codec.encode_target(_spaced(request.target_prefix))[:-1]
        if forced_prefix and not parts:
            raise DataError(
                f"line {number}: target_prefix for a blank source, whose translation is blank; "
                "give a source, or leave the prefix out"
            )
        if len(forced_prefix) >= self._num_positions:
            raise DataError(
                f"line {number}: target_prefix has {len(forced_prefix)} tokens, and the model "
                f"{self._num_positions} learned positions; shorten it"
            )
        return [
            _SourcePart(
                ids=ids,
                forced_prefix=[] if index else forced_prefix,
                key=number * _MAX_PARTS + index,
                fewest_tokens=self._form.fewest_tokens(ids, line) if self._form else 1,
            )
            for index, ids in enumerate(parts)
        ]

    def _translate(self, parts: list[_SourcePart]) -> list[list[Translation]]:
        """Translate a batch; return the n best translations of each part."""
        recipe, stepper = self._recipe, self._stepper
        device = self._device
        sources = pack_sequences([part.ids for part in parts], device)
        forced_prefixes = _padded([part.forced_prefix for part in parts], device)
        state = stepper.start(sources, forced_prefixes)
        longest, constraints = self._limits(parts, state.indices(forced_prefixes))
        if recipe.sampling.sample:
            keys = torch.tensor([part.key for part in parts], device=device)
            spec = SamplingSpec(recipe.sampling, recipe.seed.seed, keys, recipe.output.n_best)
            found = sample(stepper.step, state, longest, spec, recipe.search, constraints)
        else:
            found = beam_search(
                stepper.step, state, longest, recipe.search, constraints, recipe.output.n_best
            )
        for part, hypotheses in zip(parts, found, strict=True):
            if not hypotheses:
                raise DataError(
                    f"line {part.key // _MAX_PARTS}: no translation satisfies "
                    "--min-length-offset, --no-repeat-ngram and the other constraints; loosen them"
                )
        found = [[replace(one, ids=state.token_ids(one.ids)) for one in of_one] for of_one in found]
        pairs = [
            (part.ids, one.ids)
            for part, hypotheses in zip(parts, found, strict=True)
            for one in hypotheses
        ]
        annotations = iter(self._annotate(pairs))
        return [[self._translation(one, next(annotations)) for one in of_one] for of_one in found]

    def _annotate(self, pairs: Sequence[tuple[Ids, Ids]]) -> Iterable[Annotations]:
        """Return the requested annotations of each pair of source and translation."""
        output = self._recipe.output
        if not (output.token_scores or output.alignments or output.attention):
            return repeat(Annotations())
        return annotate(
            self._models,
            self._codec,
            pairs,
            max_tokens_of(self._recipe.translation, self._device),
            has_attention=output.alignments or output.attention,
        )

    def _translation(self, hypothesis: Hypothesis, annotations: Annotations) -> Translation:
        text = one_line(self._codec.decode_target(hypothesis.ids))
        tokens = tuple(map(self._codec.target.piece, hypothesis.ids))
        return Translation(text, hypothesis.log_prob, hypothesis.score, tokens, annotations)

    def _limits(
        self, parts: list[_SourcePart], forced_prefixes: Tensor
    ) -> tuple[Tensor, Constraints | None]:
        """Return the largest lengths of hypotheses (B,), and their other constraints, if any."""
        search, config = self._recipe.search, self._recipe.constraints
        longest, shortest = [], []
        for part in parts:
            size, forced = len(part.ids), len(part.forced_prefix)
            limit = max(longest_translation(search, size), part.fewest_tokens)
            if config.max_output_length:
                limit = min(limit, config.max_output_length + 1)
            limit = min(max(limit, forced + 1), self._num_positions)
            longest.append(limit)
            minimum = int(config.min_length_ratio * (size - 1)) + config.min_length_offset + 1
            shortest.append(min(minimum, limit))
        device = self._device
        max_lengths = torch.tensor(longest, device=device)
        fewest = [part.fewest_tokens for part in parts]
        constraints: list[Constraint] = []
        if forced_prefixes.shape[1]:
            constraints.append(ForcedPrefixes(forced_prefixes))
        if max(shortest) > 1:
            constraints.append(ShortestLengths(torch.tensor(shortest, device=device)))
        if config.ban_unknown:
            constraints.append(BannedToken(UNK_ID))
        if config.no_repeat_ngram:
            constraints.append(NoRepeatedNgrams(config.no_repeat_ngram))
        form = self._form.constraint(fewest, max_lengths) if self._form else None
        if form is not None:
            constraints.append(form)
        return max_lengths, Constraints(constraints, max_lengths) if constraints else None


def _spaced(text: str) -> str:
    """Return text as one line."""
    return text.replace("\n", " ")


def _padded(sequences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return sequences of ids as (B, P), padded with NO_TOKEN."""
    longest = max(map(len, sequences))
    rows = [[*ids, *[NO_TOKEN] * (longest - len(ids))] for ids in sequences]
    return torch.tensor(rows, dtype=torch.int64, device=device)
