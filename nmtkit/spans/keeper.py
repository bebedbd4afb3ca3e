"""What must survive the translation of a line: found in the source, demanded, and written back.

A model that has learnt it writes marks (nmtkit/spans/marked_lines.py). Without them:

Markup leaves the line before it is translated, and returns by word alignment. A placeholder must be
in the translation as often as in the source, and a term at least as often. A free search comes
first: most lines have all that they need. The others are searched again, with required phrases
that begin where the free search attended to their source. What a search cannot write, because the
vocabulary or the longest length does not permit it, is inserted after the translation of the word
before it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Protocol

import torch
from torch import Tensor

from nmtkit.config.training_rules import ANNOTATIONS, PLACEHOLDERS, TAGS, TERMS
from nmtkit.config.translation import ConstraintsConfig
from nmtkit.decoding.answers import Answer, PlacedSpan, Request, Translation
from nmtkit.decoding.constraints import BannedToken, Constraint
from nmtkit.errors import DataError
from nmtkit.spans.edges import Span, respaced, words_within
from nmtkit.spans.mark_search import WellFormedMarks
from nmtkit.spans.marked_lines import MarkedLines, Marking, glued_ids
from nmtkit.spans.markup import MarkedLine, read_markup
from nmtkit.spans.phrases import RequiredPhrases, Requirement, WordEdges
from nmtkit.spans.required import Finder, Required
from nmtkit.spans.tags import ROOT, Element
from nmtkit.spans.writing import write_markup
from nmtkit.symbols import UNK_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.links import words_of_pieces
from nmtkit.text.translations import SPAN_KEYS
from nmtkit.text.words import word_spans, words_of

_ATTENDED = 0.5
"""Part of the largest attention to a phrase that a position has at least where it is translated."""


class Entries(Protocol):
    """The entries of the target vocabulary that a search knows, and their places."""

    def of(self, values: Tensor) -> Tensor:
        """Return those of values (V,) that are of the entries."""

    def places_of(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the places of ids among the entries, which have them."""


@dataclass(frozen=True, kw_only=True)
class SpanRequest(Request):
    """A request whose source is the plain text of a line.

    Attributes:
        original: the request as it was read.
        marked: the plain text and its markup.
        required: what the translation must have, in order.
        demanded: the part of it that the search must write as text.
        marking: the line with marks; None = it has none.
    """

    original: Request
    marked: MarkedLine
    required: tuple[Required, ...]
    demanded: tuple[Required, ...]
    marking: Marking | None = None


class SpanKeeper:
    """Keeps markup, placeholders and terms."""

    def __init__(
        self,
        config: ConstraintsConfig,
        codec: TextCodec,
        learnt: Collection[str],
        warn: Callable[[str], None],
        *,
        is_sampled: bool,
    ) -> None:
        """Read the glossary, if there is one.

        Args:
            config: what is kept.
            codec: the codec of the models.
            learnt: what the models write with marks, of `ANNOTATIONS`.
            warn: takes one-line warnings.
            is_sampled: translations are drawn, and nothing can be demanded of them.

        Raises:
            ConfigError: a pattern is not valid, or the glossary cannot be opened.
            DataError: the glossary is malformed.
        """
        self._markup = config.markup
        self._mode = config.glossary_mode
        self._codec = codec
        self._learnt = frozenset(learnt)
        self._lines = MarkedLines(codec.source, codec.target) if learnt else None
        self._warn = warn
        self._warned: set[str] = set()
        self._has_demands = codec.target_type == "text" and not is_sampled
        self._finder = Finder(config, codec.target.normalize)

    def read(self, request: Request, number: int) -> Request:
        """Return the request of a line's plain text; the same request if there is nothing to keep.

        Args:
            request: as it was read; its keys `spans` and `terms` name further parts.
            number: of its line, for messages.

        Raises:
            DataError: the line is a document; a key is malformed.
        """
        where, line = f"line {number}", request.line
        if not self._has_demands and request.others.keys() & SPAN_KEYS:
            raise DataError(
                f"{where}: spans and terms are for beam search by a model that writes text; leave "
                "them out, or rename keys of your own"
            )
        marked = MarkedLine(line, (), (), is_escaped=False)
        if self._markup != "none":
            try:
                marked = read_markup(line, self._markup)
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
        required = self._finder.in_line(marked, request, where)
        if not required and not marked.is_escaped:
            return request
        return SpanRequest(
            source=marked.text,
            target_prefix=request.target_prefix,
            others=request.others,
            target_lang=request.target_lang,
            whole=tuple((one.start, one.end) for one in required),
            original=request,
            marked=marked,
            required=tuple(required),
            demanded=tuple(required),
        )

    def mark(
        self, request: Request, longest_source: int, longest_target: int, *, is_whole: bool
    ) -> SpanRequest | None:
        """Return the request of a line with marks; None if it has none.

        Args:
            request: a request that `read` returned.
            longest_source, longest_target: tokens that the model reads, and may write.
            is_whole: the line is one part, and complete.
        """
        if not isinstance(request, SpanRequest):
            return None
        terms = [one for one in request.required if one.kind == "term" and self._mode != "hard"]
        exact = [one for one in request.required if one.is_exact]
        needed = {TAGS: request.marked.elements, PLACEHOLDERS: exact, TERMS: terms}
        missing = [name for name in ANNOTATIONS if needed[name] and name not in self._learnt]
        # Most models have learnt no marks at all, which is no news.
        if missing and (self._learnt or self._mode == "soft"):
            self._warn_once(f"no marks of {' and '.join(missing)} are used with this model")
        replaced = exact if PLACEHOLDERS in self._learnt else []
        terms = terms if TERMS in self._learnt else []
        is_changed = not replaced and any(one.texts != (one.raw,) for one in exact)
        is_used = request.marked.elements or replaced or terms
        if self._lines is None or TAGS in missing or is_changed or not is_used:
            return None
        marking = self._lines.write(
            request.marked,
            [(one.start, one.end) for one in replaced],
            {(one.start, one.end): one.texts[0] for one in terms},
        )
        is_short = marking and len(marking.ids) <= longest_source
        if not (is_whole and marking and is_short and marking.num_tokens < longest_target):
            self._warn_once(
                "a line has more tags than marks, has one in a placeholder, or is too long"
            )
            return None
        written = [*replaced, *(terms if self._mode == "soft" else [])]
        demanded = tuple(one for one in request.required if one not in written)
        return replace(request, demanded=demanded, marking=marking)

    def _warn_once(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            self._warn(f"{reason}; tags return by word alignment, other parts are searched for")

    def requirements(
        self, required: Sequence[Required], text: str, ids: Sequence[int], weights: Tensor
    ) -> list[Requirement]:
        """Return what a search must write.

        Args:
            required: parts of `text`, whose characters they count.
            text: the source.
            ids: its ids, the end symbol last.
            weights: (T, S), the attention of a free translation.
        """
        if marks := self._codec.source.marks:
            own_places = [*marks.places_of_text(ids)]
            ids, weights = [ids[place] for place in own_places], weights[:, own_places]
        words = word_spans(text)
        ranges = words_of_pieces(self._codec.source, ids[:-1], words_of(text), text)
        pieces = [(one.start, one.stop) for one in ranges]
        groups: dict[tuple[bool, tuple[str, ...]], list[Required]] = {}
        for one in required:
            groups.setdefault((one.is_exact, one.texts), []).append(one)
        found = []
        for (is_exact, texts), own in groups.items():
            phrases = tuple(phrase for one in texts for phrase in self._phrases(one))
            if phrases:
                parts = (words_within(words, one.start, one.end) for one in own)
                attended = (words_within(pieces, part.start, part.stop) for part in parts)
                places = sorted(_attended(weights, one) for one in attended)
                mean_length = max(1, round(sum(n for _, n in places) / len(own)))
                starts = tuple(start for start, _ in places)
                longer = min(map(len, phrases)) - mean_length
                before, after = map(any, zip(*(one.is_glued for one in own), strict=True))
                found.append(Requirement(phrases, starts, longer, is_exact, (before, after)))
        return [self._with_inner(one, found) for one in found]

    def constraint(
        self,
        requirements: Sequence[Sequence[Requirement]],
        max_lengths: Tensor,
        width: int,
        entries: Entries,
    ) -> RequiredPhrases:
        """Return the constraint on a batch.

        Args:
            requirements: of each of B sentences.
            max_lengths: (B,) int64, the longest hypotheses permitted, end symbols counted.
            width: rows per sentence.
            entries: the entries of the vocabulary that the search knows.
        """
        own = [
            [
                replace(one, phrases=tuple(map(entries.places_of, one.phrases)))
                for one in of_sentence
            ]
            for of_sentence in requirements
        ]
        edges = self._edges_of(entries, max_lengths.device)
        return RequiredPhrases(own, edges, max_lengths, width)

    def marks_constraint(
        self, requests: Sequence[Request], max_lengths: Tensor, entries: Entries
    ) -> Constraint | None:
        """Return the constraint on the marks of a batch; None if the vocabulary has none.

        Other arguments are as for `constraint`.
        """
        marks = self._codec.target.marks
        if marks is None:
            return None
        is_mark = torch.zeros(self._codec.target.size, dtype=torch.bool, device=max_lengths.device)
        is_mark[sorted(marks.ids)] = True
        known = entries.of(is_mark).nonzero().squeeze(1)
        items = [one.items if (one := _marking(request)) else () for request in requests]
        if not any(items):
            return BannedToken(known)
        tokens = [[entries.places_of(ids) for ids in self.marks_of(one)] for one in requests]
        edges = self._edges_of(entries, max_lengths.device)
        return WellFormedMarks(items, tokens, known, edges, max_lengths)

    def marks_of(self, request: Request) -> list[tuple[int, ...]]:
        """Return the ids of the marks of each tag and placeholder that a translation must have."""
        marking = _marking(request)
        return self._lines.tokens_of(marking) if marking and self._lines else []

    def _edges_of(self, entries: Entries, device: torch.device) -> WordEdges:
        """Return the edges of the entries that a search knows."""
        return WordEdges(*(entries.of(one.to(device)) for one in self._edges))

    @cached_property
    def _edges(self) -> WordEdges:
        """The edges of the whole target vocabulary."""
        return WordEdges.of(self._codec.target)

    def is_met(self, required: Sequence[Required], text: str) -> bool:
        """Return whether a translation has what is required, and placeholders not more often."""
        return self._finder.in_translation(required, text).is_met

    def required_of(self, request: Request, start: int, text: str) -> list[Required]:
        """Return what a part of a line must have, in characters of the part.

        Args:
            request: of the line.
            start: where the part begins.
            text: of the part.
        """
        if not isinstance(request, SpanRequest):
            return []
        return [
            replace(one, start=one.start - start, end=one.end - start)
            for one in request.demanded
            if start <= one.start < start + len(text)
        ]

    def needs_links(self, request: Request) -> bool:
        """Return whether a line has markup to put back by its links."""
        is_marked = _marking(request) is not None
        return isinstance(request, SpanRequest) and bool(request.marked.elements) and not is_marked

    def write(self, answer: Answer, ids: Sequence[Sequence[int]], *, keep_links: bool) -> Answer:
        """Write markup and placeholders into the translations of an answer.

        Args:
            answer: of a request that `read` returned.
            ids: of each translation of a line that is one part, the end symbol last.
            keep_links: leave alignment and attention, which are of the plain text.
        """
        request = answer.request
        if not isinstance(request, SpanRequest):
            return answer
        if request.marking is None:
            best, *others = (self._written(request, one) for one in answer.translation.n_best)
        else:
            pairs = zip(answer.translation.n_best, ids, strict=True)
            best, *others = (self._read(request, request.marking, *pair) for pair in pairs)
        if not keep_links:
            best, *others = (
                replace(
                    one,
                    alignment=(),
                    attention=(),
                    source_tokens=one.source_tokens if one.token_log_probs else (),
                )
                for one in (best, *others)
            )
        best = replace(best, alternatives=tuple(others))
        return replace(answer, request=request.original, translation=best)

    def _phrases(self, text: str) -> tuple[tuple[int, ...], ...]:
        """Return the ids of a text after a space, and without it, if they write it exactly."""
        vocabulary = self._codec.target
        found = (tuple(vocabulary.encode(text)), tuple(glued_ids(text, vocabulary)))
        return tuple(
            dict.fromkeys(
                one
                for one in found
                if one and UNK_ID not in one and vocabulary.decode(one).strip() == text
            )
        )

    def _with_inner(self, one: Requirement, others: Sequence[Requirement]) -> Requirement:
        """Return a requirement that a search also finds within others, such as `12` in `12,5`."""
        around = [other for other in others if other is not one and _contains(other, one)]
        starts = [*one.starts]
        for other in around:
            starts += other.starts * min(self._count(one, phrase) for phrase in other.phrases)
        is_exact = one.is_exact and not around
        return replace(one, starts=tuple(sorted(starts)), is_exact=is_exact)

    def _count(self, one: Requirement, ids: Sequence[int]) -> int:
        """Return how often a search finds a requirement in ids; see `RequiredPhrases`."""
        before, after = (self._edges[2 * is_glued :][:2] for is_glued in one.is_glued)
        found = set()
        for phrase, start in _places(one, ids):
            stop = start + len(phrase)
            grows_before = start > 0 and before[1][ids[start - 1]] and before[0][phrase[0]]
            grows_after = stop < len(ids) and after[0][ids[stop]] and after[1][phrase[-1]]
            if not (grows_before or grows_after):
                found.add(stop)
        return len(found)

    def _read(
        self, request: SpanRequest, marking: Marking, translation: Translation, ids: Sequence[int]
    ) -> Translation:
        """Return a translation with the tags and placeholders of its marks."""
        assert self._lines is not None
        marked = request.marked
        reading = self._lines.read(marking, ids[:-1], marked)
        text, own = reading.text, reading.places
        others = [one for one in request.required if (one.start, one.end) not in own]
        found = self._finder.in_translation(others, text).places
        pairs = [*zip(others, found, strict=True)]
        own |= {(one.start, one.end): place for one, place in pairs if place is not None}
        missing = [one for one, place in pairs if one.is_exact and place is None]
        spans = [*reading.spans, *[(len(text), len(text))] * len(missing)]
        has_tags = marked.is_escaped or missing
        line = _with_marks(marked, missing)
        written = write_markup(line, text, (), own, spans) if has_tags else text
        if marked.is_escaped and not missing:
            plain = read_markup(written, self._markup).text
            own = {source: respaced(one, text, plain) for source, one in own.items()}
        places = [own.get((one.start, one.end)) for one in request.required]
        return replace(translation, text=written, placed=_placed(request.required, places))

    def _written(self, request: SpanRequest, translation: Translation) -> Translation:
        required, marked = request.required, request.marked
        if marked.elements and not marked.text.strip():
            return replace(translation, text=request.original.line)
        places = self._finder.in_translation(required, translation.text).places
        text, places = _with_raw(translation.text, required, places)
        pairs = [*zip(required, places, strict=True)]
        missing = [one for one, place in pairs if place is None and one.kind == "placeholder"]
        if marked.is_escaped or missing:
            spans = {(one.start, one.end): place for one, place in pairs if place}
            text = write_markup(_with_marks(marked, missing), text, translation.alignment, spans)
            plain = read_markup(text, self._markup).text if marked.is_escaped else text
            own = [
                replace(one, texts=(marked.text[one.start : one.end],)) if one.is_exact else one
                for one in required
            ]
            now = self._finder.in_translation(own, plain).places
            places = tuple(new if old else None for new, old in zip(now, places, strict=True))
        return replace(translation, text=text, placed=_placed(required, places))


def _placed(required: Sequence[Required], places: Sequence[Span | None]) -> tuple[PlacedSpan, ...]:
    pairs = zip(required, places, strict=True)
    return tuple(PlacedSpan(one.kind, (one.start, one.end), place) for one, place in pairs)


def _marking(request: Request) -> Marking | None:
    return request.marking if isinstance(request, SpanRequest) else None


def _attended(weights: Tensor, pieces: range) -> tuple[int, int]:
    """Return where the attention to pieces of the source begins, and for how many positions."""
    rows = weights[:-1, pieces.start : pieces.stop].sum(1).tolist() or [0.0]
    first = last = rows.index(max(rows))
    threshold = rows[first] * _ATTENDED
    while first > 0 and rows[first - 1] >= threshold:
        first -= 1
    while last + 1 < len(rows) and rows[last + 1] >= threshold:
        last += 1
    return first, last + 1 - first


def _contains(other: Requirement, one: Requirement) -> bool:
    """Return whether a phrase of another requirement has one of a requirement as its part."""
    return any(True for ids in other.phrases for _ in _places(one, ids))


def _places(one: Requirement, ids: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the phrases of a requirement in ids, each with its beginning."""
    for phrase in one.phrases:
        if {*phrase} <= {*ids}:
            for start in range(len(ids) - len(phrase) + 1):
                if tuple(ids[start : start + len(phrase)]) == phrase:
                    yield phrase, start


def _with_raw(
    text: str, required: Sequence[Required], places: Sequence[Span | None]
) -> tuple[str, tuple[Span | None, ...]]:
    """Write placeholders as in the source; return the text, and where each part is now."""
    parts, end, shift = [], 0, 0
    moved = [*places]
    by_place = sorted((place, index) for index, place in enumerate(places) if place is not None)
    for (start, stop), index in by_place:
        one = required[index]
        own = text[start:stop] if one.raw is None or one.kind == "element" else one.raw
        parts += [text[end:start], own]
        moved[index] = (start + shift, start + shift + len(own))
        end, shift = stop, shift + len(own) - (stop - start)
    return "".join([*parts, text[end:]]), tuple(moved)


def _with_marks(marked: MarkedLine, missing: Sequence[Required]) -> MarkedLine:
    """Return a line with marks in the place of placeholders."""
    elements = list(marked.elements)
    for one in missing:
        assert one.raw is not None
        around = [
            (element.end - element.start, index)
            for index, element in enumerate(marked.elements)
            if element.closing and element.start <= one.start and one.end <= element.end
        ]
        mark = Element(
            opening=escape(one.raw, quote=False) if marked.is_escaped else one.raw,
            closing="",
            kept="",
            start=one.start,
            end=one.start,
            parent=min(around)[1] if around else ROOT,
            has_space_before=one.start == 0 or marked.text[one.start - 1].isspace(),
            has_space_after=one.end == len(marked.text) or marked.text[one.end].isspace(),
            is_break=False,
        )
        elements.append(mark)
    return replace(marked, elements=tuple(elements))
