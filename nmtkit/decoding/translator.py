"""Translator: translates chunks of lines in batches, and answers in order.

Each input line has exactly one answer. The caller reads chunks, and writes files and formats.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from nmtkit.decoding.quality import Calibration
from nmtkit.decoding.sampling import SamplingSpec, sample
from nmtkit.decoding.scorer import Scorer
from nmtkit.decoding.search import Hypothesis, beam_search, longest_translation
from nmtkit.decoding.stepper import Stepper
from nmtkit.errors import ConfigError, DataError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import batches_by_length
from nmtkit.parsing.well_formed import TreeForm
from nmtkit.spans.keeper import SpanKeeper
from nmtkit.spans.phrases import Requirement
from nmtkit.symbols import UNK_ID
from nmtkit.text.codec import TextCodec

BATCH_SIZES = {"cpu": 64, "cuda": 1024}
"""Limit of a batch if --batch-size is 0, by device type.

On a GPU the host is what limits a step: on an H200 a step of 1 024 sentences takes 1.7 times as
long as one of 256.
"""

_USUAL_WIDTH = 4
"""Hypotheses per sentence for which batch limits are meant; wider beams get smaller batches."""


_DEMANDED_TOKENS = 8192
"""Tokens of required phrases per batch: their candidates are compared with all of them."""


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
        learnt: Collection[str] = (),
        calibration: Calibration | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            models: in evaluation mode, on the device to use; several are an ensemble.
            codec: the codec that the models were trained with.
            recipe: settings of search, output and long lines.
            warn: takes one-line warnings of `answer_all`.
            shortlist: candidates for each source token; None = the whole vocabulary.
            learnt: what the models write with marks; see `ANNOTATIONS`.
            calibration: predicts the quality of translations; None = it is not asked for.

        Raises:
            ConfigError: the shortlist or a setting does not fit the models.
        """
        self._models = models
        self._stepper = Stepper(models, shortlist)
        self._codec = codec
        self._recipe = recipe
        self._calibration = calibration
        self._warn = warn
        self._num_positions = min(model.config.longest_sequence for model in models)
        self._device = models[0].output_weight.device
        self._form = form = output_form(codec, recipe.constraints, self._device)
        self._shows_links = recipe.output.alignments or recipe.output.attention
        # Alignments, attention and scores of tokens are those of the text without marks.
        used = () if self._shows_links or recipe.output.token_scores else learnt
        self._keeper = SpanKeeper(
            recipe.constraints, codec, used, warn, is_sampled=recipe.sampling.sample
        )
        self._splitter = LineSplitter(
            codec,
            recipe.translation,
            self._num_positions,
            recipe.constraints.max_output_length,
            form.no_prefix if form else "",
            warn,
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
            self._encoded(self._keeper.read(request, number), number)
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
        return Scorer(self._models, self._codec, config, self._warn)

    @property
    def target_kind(self) -> str:
        """Kind of the target vocabulary, a key of `KINDS`."""
        return self._codec.target.kind

    @property
    def width(self) -> int:
        """Rows per sentence that a step of the models reads."""
        recipe = self._recipe
        return recipe.output.n_best if recipe.sampling.sample else recipe.search.beam

    def _final_answers(self, lines: deque[list[SourcePart]]) -> list[Answer]:
        """Remove the first lines if they are translated; return the answers to them."""
        answers = []
        while lines and all(part.hypotheses for part in lines[0]):
            parts = lines.popleft()
            ids = [one.ids for one in parts[0].hypotheses]
            answer = answer_of(self._codec, parts)
            answer = self._keeper.write(answer, ids, keep_links=self._shows_links)
            answers.append(self._calibration.rated(answer) if self._calibration else answer)
        return answers

    def _encoded(self, request: Request, number: int) -> list[SourcePart]:
        """Return the parts of a line as ids, with the marks of its tags, placeholders and terms."""
        parts = self._splitter.encode(request, number)
        first = parts[0]
        if not first.ids:
            return parts
        added = first.text[: max(0, -first.start)]
        symbols = self._codec.source.encode(added) if added else []
        longest = self._num_positions
        if most := self._recipe.constraints.max_output_length:
            longest = min(longest, most + 1)
        marked = self._keeper.mark(
            request,
            self._num_positions - len(symbols),
            longest - len(first.forced_prefix),
            is_whole=len(parts) == 1 and not first.warning,
        )
        if marked and marked.marking:
            first.request, first.ids = marked, [*symbols, *marked.marking.ids]
        return parts

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
        memories = self._stepper.encode([part.ids for part in parts])
        for part, of_part in zip(parts, memories, strict=True):
            part.memories = of_part
        self._search(parts, [()] * len(parts))
        unmet = [] if self._recipe.sampling.sample else self._unmet(parts)
        if unmet:
            self._search_again(unmet)
            unmet = self._unmet(unmet)
        self._annotate(parts, unmet)
        for part in parts:
            part.memories = ()

    def _search(
        self, parts: Sequence[SourcePart], requirements: Sequence[Sequence[Requirement]]
    ) -> None:
        """Find the hypotheses of a batch; parts with requirements may keep those that they have."""
        recipe, stepper, device = self._recipe, self._stepper, self._device
        prefixes = [part.forced_prefix for part in parts]
        marks = [self._keeper.marks_of(part.request) for part in parts]
        num_marks = [sum(map(len, own)) for own in marks]
        demanded = [
            [i for ids in (*of_marks, *(ids for one in own for ids in one.phrases)) for i in ids]
            for own, of_marks in zip(requirements, marks, strict=True)
        ]
        forced = [[*prefix, *ids] for prefix, ids in zip(prefixes, demanded, strict=True)]
        sources, memories = zip(*((part.ids, part.memories) for part in parts), strict=True)
        state = stepper.start(sources, memories, _padded(forced, device))
        num_required = [
            sum(one.num_tokens for one in own) + num
            for own, num in zip(requirements, num_marks, strict=True)
        ]
        max_lengths = self._max_lengths(parts, num_required, num_marks)
        constraints = self._constraints(
            parts, max_lengths, state.indices(_padded(prefixes, device))
        )
        if any(requirements):
            constraints.append(
                self._keeper.constraint(
                    requirements,
                    max_lengths - torch.tensor(num_marks, device=device),
                    recipe.search.beam,
                    state,
                )
            )
        requests = [part.request for part in parts]
        if of_marks := self._keeper.marks_constraint(requests, max_lengths, state):
            constraints.append(of_marks)
        together = Constraints(constraints, max_lengths) if constraints else None
        if recipe.sampling.sample:
            keys = torch.tensor([(part.line, part.index) for part in parts], device=device)
            spec = SamplingSpec(recipe.sampling, keys, recipe.output.n_best)
            found = sample(stepper.step, state, max_lengths, spec, recipe.search, together)
        else:
            found = beam_search(
                stepper.step, state, max_lengths, recipe.search, together, recipe.output.n_best
            )
        for part, hypotheses in zip(parts, found, strict=True):
            if not (hypotheses or part.hypotheses):
                raise DataError(
                    f"line {part.line}: no translation satisfies --min-length-offset, "
                    "--no-repeat-ngram and the other constraints; loosen them"
                )
            part.hypotheses = state.with_token_ids(hypotheses) or part.hypotheses

    def _unmet(self, parts: Sequence[SourcePart]) -> list[SourcePart]:
        """Return the parts one of whose translations lacks what it must have."""
        decode, keeper = self._codec.decode_target, self._keeper
        return [
            part
            for part in parts
            if (required := keeper.required_of(part.request, part.start, part.text))
            and not all(keeper.is_met(required, decode(one.ids)) for one in part.hypotheses)
        ]

    def _search_again(self, parts: Sequence[SourcePart]) -> None:
        """Find hypotheses with what they must have, near where the present ones attend to it."""
        attention = self._attention([(part, part.hypotheses[0]) for part in parts])
        keeper = self._keeper
        requirements = [
            keeper.requirements(
                keeper.required_of(part.request, part.start, part.text),
                part.text,
                part.ids,
                weights,
            )
            for part, weights in zip(parts, attention, strict=True)
        ]
        demanding = [pair for pair in zip(parts, requirements, strict=True) if pair[1]]
        sizes = [sum(len(ids) for one in own for ids in one.phrases) for _, own in demanding]
        for batch in batches_by_length(sizes, _DEMANDED_TOKENS, len(parts)):
            self._search(*zip(*(demanding[index] for index in batch), strict=True))

    def _annotate(self, parts: Sequence[SourcePart], unmet: Sequence[SourcePart]) -> None:
        """Read the hypotheses again, which is cheap compared with the search, as requested.

        Args:
            parts: of a batch.
            unmet: those whose links are needed, because something may be missing.
        """
        if self._recipe.output.token_scores:
            max_tokens = max_tokens_of(self._recipe.translation, self._device)
            pairs = [(part.ids, one.ids) for part in parts for one in part.hypotheses]
            log_probs = iter(score_by_ensemble(self._models, pairs, max_tokens))
            for part in parts:
                part.token_log_probs = [next(log_probs) for _ in part.hypotheses]
        if not self._shows_links:
            own = {id(part) for part in unmet}
            needs_links = self._keeper.needs_links
            parts = [one for one in parts if id(one) in own or needs_links(one.request)]
        attention = iter(
            self._attention([(part, one) for part in parts for one in part.hypotheses])
        )
        for part in parts:
            part.attention = [next(attention) for _ in part.hypotheses]

    def _attention(self, found: Sequence[tuple[SourcePart, Hypothesis]]) -> list[Tensor]:
        """Return the attention (T, S) of hypotheses to their sources."""
        pairs = [(part.ids, one.ids) for part, one in found]
        memories = [part.memories for part, _ in found]
        max_tokens = max_tokens_of(self._recipe.translation, self._device)
        return attention_by_ensemble(self._models, pairs, memories, max_tokens)

    def _max_lengths(
        self, parts: Sequence[SourcePart], num_required: Sequence[int], num_marks: Sequence[int]
    ) -> Tensor:
        """Return the largest lengths of hypotheses (B,), end symbols counted."""
        search, config = self._recipe.search, self._recipe.constraints
        longest = []
        for part, num_tokens, num in zip(parts, num_required, num_marks, strict=True):
            limit = longest_translation(search, len(part.ids)) + num_tokens
            limit = max(limit, self._fewest_tokens(part))
            if config.max_output_length:
                limit = min(limit, config.max_output_length + 1)
            fewest = len(part.forced_prefix) + num + 1
            longest.append(min(max(limit, fewest), self._num_positions))
        return torch.tensor(longest, device=self._device)

    def _constraints(
        self, parts: Sequence[SourcePart], max_lengths: Tensor, forced_prefixes: Tensor
    ) -> list[Constraint]:
        """Return the constraints on hypotheses except those on their largest length."""
        config, form = self._recipe.constraints, self._form
        minima = [
            int(config.min_length_ratio * (len(part.ids) - 1)) + config.min_length_offset + 1
            for part in parts
        ]
        constraints: list[Constraint] = []
        if forced_prefixes.shape[1]:
            constraints.append(ForcedPrefixes(forced_prefixes))
        if max(minima) > 1:
            shortest = torch.tensor(minima, device=self._device).minimum(max_lengths)
            constraints.append(ShortestLengths(shortest))
        if config.ban_unknown:
            constraints.append(BannedToken(UNK_ID))
        if config.no_repeat_ngram:
            constraints.append(NoRepeatedNgrams(config.no_repeat_ngram))
        if form is not None:
            fewest = [self._fewest_tokens(part) for part in parts]
            if (of_form := form.constraint(fewest, max_lengths)) is not None:
                constraints.append(of_form)
        return constraints

    def _fewest_tokens(self, part: SourcePart) -> int:
        """Return the length of the shortest output of a part, its end symbol counted."""
        form = self._form
        return 1 if form is None else form.fewest_tokens(part.ids, part.request.line)


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
