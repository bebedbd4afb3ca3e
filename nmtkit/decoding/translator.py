"""Text to text: lines are read ahead in chunks, translated in batches, answered in order.

A line in is a line out, whatever the line holds. Reading and writing files, formats, and when
output is flushed, are the caller's business.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat

import torch
from torch import Tensor

from nmtkit.config.schema import TranslateRecipe
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.annotations import Details, look_at
from nmtkit.decoding.batching import batches_by_length, longest_translation, narrowed
from nmtkit.decoding.constraints import NO_TOKEN, Constraints
from nmtkit.decoding.forced import Ids
from nmtkit.decoding.long_lines import Cutter
from nmtkit.decoding.output_forms import output_form
from nmtkit.decoding.requests import Answer, Request, Translation, join_ranks
from nmtkit.decoding.sampling import Draws, sample
from nmtkit.decoding.search import Hypothesis, beam_search
from nmtkit.decoding.stepper import Stepper
from nmtkit.errors import ConfigError, DataError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import UNK_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import numbered_chunks, one_line

_MAX_PIECES = 2**20
"""No line is cut into as many pieces, so that a piece's key is one number."""


@dataclass(frozen=True)
class _Piece:
    """A sequence to translate: a line, or a part of one that is too long.

    Attributes:
        ids: of the source, the end symbol last.
        beginning: ids that its translations must begin with.
        key: a number that no other piece has.
        fewest_tokens: of its translations, the end symbol counted.
    """

    ids: list[int]
    beginning: list[int]
    key: int
    fewest_tokens: int


class Translator:
    """A model, or an ensemble, with its codec, ready to translate."""

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
            models: in evaluation mode, on the device to use; several decide together.
            codec: the one that the models were trained with.
            recipe: how to search, what to put out, and what to do with long lines.
            warn: takes a one-line warning, that of the first line that is too long.
            shortlist: of the codec's ids; None = all of the vocabulary is looked at.

        Raises:
            ConfigError: a shortlist or a setting that does not fit the type of the target.
        """
        self._models = models
        self._stepper = Stepper(models, shortlist)
        self._codec = codec
        self._recipe = recipe
        self._warn = warn
        self._num_positions = min(model.config.longest_sequence for model in models)
        self._cutter = self._make_cutter()
        device = models[0].output_weight.device
        self._form = output_form(codec, recipe.constraints, device)
        if shortlist is not None and self._form.no_shortlist:
            raise ConfigError(f"--shortlist: {self._form.no_shortlist}; leave it out")

    def translate(self, lines: Iterable[str]) -> Iterator[str]:
        """Translate lines lazily; exactly one line comes out for each line that goes in.

        Raises:
            ConfigError: the lines are one text, whose letters would be lines.
            DataError: a line is too long, and the configuration makes that an error.
        """
        if isinstance(lines, str):
            raise ConfigError("translate: takes lines, and was given one text; put it in a list")
        for chunk in self.answer_all(map(Request, lines)):
            for answer in chunk:
                yield answer.translations[0].text

    def answer_all(self, requests: Iterable[Request]) -> Iterator[list[Answer]]:
        """Answer requests in order, a chunk at a time.

        Nothing is read beyond a chunk before its answers are out.
        """
        self._cutter = self._make_cutter()
        config = self._recipe.translation
        size = 1 if config.stream else config.chunk_lines
        for first_number, chunk in numbered_chunks(requests, size):
            yield self.answer(chunk, first_number)

    @torch.inference_mode()
    def answer(self, requests: Sequence[Request], first_number: int) -> list[Answer]:
        """Translate lines together, in batches of sentences of similar length.

        Args:
            requests: any number of them.
            first_number: the number of the first line, for messages and for what is drawn.

        Returns:
            the n best translations of each; a blank line has one, which is blank.

        Raises:
            DataError: a line is too long, its prefix does not fit, or no translation is permitted.
        """
        assert not any(model.training for model in self._models), "evaluation mode is needed"
        pieces_of_lines = [
            self._pieces(request, number) for number, request in enumerate(requests, first_number)
        ]
        pieces = [piece for pieces_of_line in pieces_of_lines for piece in pieces_of_line]
        found: list[list[Translation]] = [[] for _ in pieces]
        config, width = self._recipe.translation, self._width()
        lengths = [max(len(piece.ids), len(piece.beginning)) for piece in pieces]
        limits = narrowed(config.max_tokens, width), narrowed(config.batch_size, width)
        for batch in batches_by_length(lengths, *limits):
            answers = self._translate([pieces[index] for index in batch])
            for index, translations in zip(batch, answers, strict=True):
                found[index] = translations
        remaining = iter(found)
        return [
            self._completed(request, join_ranks(list(islice(remaining, len(of_line)))))
            for request, of_line in zip(requests, pieces_of_lines, strict=True)
        ]

    def _completed(self, request: Request, found: list[Translation]) -> Answer:
        """Return the answer to a request, with the final texts of its translations."""
        translations = []
        for one in found:
            text, is_mended = self._codec.complete(one.text, request.source)
            translations.append(replace(one, text=text, is_mended=is_mended))
        return Answer(request, translations, self._codec.target_type)

    def _width(self) -> int:
        """Return how many translations of a sentence are made together."""
        recipe = self._recipe
        return recipe.output.n_best if recipe.sampling.sample else recipe.search.beam

    def _make_cutter(self) -> Cutter:
        config = self._recipe.translation
        return Cutter(self._codec, config, self._num_positions, self._warn)

    def _pieces(self, request: Request, number: int) -> list[_Piece]:
        """Encode a line as what is translated for it, the forced beginning with its first part."""
        line = request.source.replace("\n", " ")
        pieces = self._cutter.pieces(line, number)
        if request.target_prefix and self._form.no_prefix:
            raise DataError(f"line {number}: target_prefix {self._form.no_prefix}; leave it out")
        beginning = self._codec.encode_target(request.target_prefix.replace("\n", " "))[:-1]
        if beginning and not pieces:
            raise DataError(
                f"line {number}: target_prefix for a blank source, whose translation is blank; "
                "give a source, or leave the prefix out"
            )
        if len(beginning) >= self._num_positions:
            raise DataError(
                f"line {number}: target_prefix has {len(beginning)} tokens, and the model "
                f"{self._num_positions} learned positions; shorten it"
            )
        return [
            _Piece(
                ids=ids,
                beginning=[] if place else beginning,
                key=number * _MAX_PIECES + place,
                fewest_tokens=self._form.fewest_tokens(ids, line),
            )
            for place, ids in enumerate(pieces)
        ]

    def _translate(self, pieces: list[_Piece]) -> list[list[Translation]]:
        """Translate pieces together; returns the n best translations of each."""
        recipe, stepper = self._recipe, self._stepper
        device = self._models[0].output_weight.device
        sources = pack_sequences([piece.ids for piece in pieces], device)
        beginnings = _padded([piece.beginning for piece in pieces], device)
        state = stepper.start(sources, beginnings)
        longest, constraints = self._limits(pieces, state.places(beginnings))
        if recipe.sampling.sample:
            keys = torch.tensor([piece.key for piece in pieces], device=device)
            draws = Draws(recipe.sampling, recipe.seed.seed, keys, recipe.output.n_best)
            found = sample(stepper.step, state, longest, draws, recipe.search, constraints)
        else:
            found = beam_search(
                stepper.step, state, longest, recipe.search, constraints, recipe.output.n_best
            )
        for piece, hypotheses in zip(pieces, found, strict=True):
            if not hypotheses:
                raise DataError(
                    f"line {piece.key // _MAX_PIECES}: there is no translation that keeps to "
                    "--min-length, --no-repeat-ngram and the other constraints; loosen them"
                )
        found = [[replace(one, ids=state.tokens(one.ids)) for one in of_one] for of_one in found]
        pairs = [
            (piece.ids, one.ids)
            for piece, hypotheses in zip(pieces, found, strict=True)
            for one in hypotheses
        ]
        details = iter(self._details(pairs))
        return [[self._translation(one, next(details)) for one in of_one] for of_one in found]

    def _details(self, pairs: Sequence[tuple[Ids, Ids]]) -> Iterable[Details]:
        """Return what is asked for beside the text of each pair of source and translation."""
        output = self._recipe.output
        if not (output.token_scores or output.alignments or output.attention):
            return repeat(Details())
        return look_at(
            self._models,
            self._codec,
            pairs,
            self._recipe.translation.max_tokens,
            has_attention=output.alignments or output.attention,
        )

    def _translation(self, hypothesis: Hypothesis, details: Details) -> Translation:
        text = one_line(self._codec.decode_target(hypothesis.ids))
        ids, score = hypothesis.ids, hypothesis.score
        return Translation(text, hypothesis.log_prob, score, len(ids), details)

    def _limits(
        self, pieces: list[_Piece], beginnings: Tensor
    ) -> tuple[Tensor, Constraints | None]:
        """Return how long hypotheses may be at most (B,), and what else is asked of them."""
        search, config = self._recipe.search, self._recipe.constraints
        longest, shortest = [], []
        for piece in pieces:
            size, forced = len(piece.ids), len(piece.beginning)
            limit = max(longest_translation(search, size), piece.fewest_tokens)
            if config.max_output_length:
                limit = min(limit, config.max_output_length + 1)
            limit = min(max(limit, forced + 1), self._num_positions)
            longest.append(limit)
            wanted = int(config.min_length_ratio * (size - 1)) + config.min_length + 1
            shortest.append(min(wanted, limit))
        device = self._models[0].output_weight.device
        max_lengths = torch.tensor(longest, device=device)
        form = self._form.constraint([piece.fewest_tokens for piece in pieces], max_lengths)
        is_asked = config.no_repeat_ngram or config.ban_unknown or form is not None
        if not (max(shortest) > 1 or beginnings.shape[1] or is_asked):
            return max_lengths, None
        constraints = Constraints(
            torch.tensor(shortest, device=device),
            beginnings,
            (UNK_ID,) if config.ban_unknown else (),
            config.no_repeat_ngram,
            form,
        )
        return max_lengths, constraints


def _padded(sequences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return ids (B, P), behind the end of each NO_TOKEN."""
    longest = max(map(len, sequences))
    rows = [[*ids, *[NO_TOKEN] * (longest - len(ids))] for ids in sequences]
    return torch.tensor(rows, dtype=torch.int64, device=device)
