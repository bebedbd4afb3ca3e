"""Lines to ids, and the translations of ids to the answers of lines.

A line that is too long is split into parts, whose translations are joined, or it is truncated.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.alignment import links, word_attention
from nmtkit.decoding.answers import Answer, Request, Translation
from nmtkit.decoding.forced import TokenLogProbs
from nmtkit.decoding.search import Hypothesis
from nmtkit.errors import DataError
from nmtkit.symbols import EOS_ID, UNK_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.language_symbols import SymbolWriter
from nmtkit.text.lines import one_line
from nmtkit.text.links import words_of_pieces
from nmtkit.text.words import halves, word_spans, words_of

_BLANK = Hypothesis((), 0.0, 0.0)
"""The translation of a blank line."""


@dataclass
class SourcePart:
    """A sequence to translate, with its translations: a line, or a part of one that is too long.

    Attributes:
        request: the line's.
        line: number of the line, from 1.
        index: number of the part in the line, from 0.
        ids: source ids, the end symbol last; none of a blank line, which is translated already.
        text: its text, a language symbol included.
        warning: how the line is shortened; "" = it is one part, complete.
        start: where its text begins in the line, in characters; after a language symbol of its own,
            where it would begin if the symbol were there.
        words_before: number of words of the line that end before the part, which may begin within
            a word.
        num_symbols: number of language symbols with which each part begins.
        num_added: number of words of its text, all symbols, that the line does not have.
        forced_prefix: ids that its translations must begin with.
        memories: (S, D) of its source in each model, while its batch is translated.
        hypotheses: its translations, best first, or as they were drawn; none before the search.
        token_log_probs: of each of them, by forced decoding, if requested.
        attention: (T, S) of each of them, for alignments, if requested.
    """

    request: Request
    line: int
    index: int = 0
    ids: list[int] = field(default_factory=list)
    text: str = ""
    warning: str = ""
    start: int = 0
    words_before: int = 0
    num_symbols: int = 0
    num_added: int = 0
    forced_prefix: list[int] = field(default_factory=list)
    memories: Sequence[Tensor] = ()
    hypotheses: Sequence[Hypothesis] = ()
    token_log_probs: Sequence[TokenLogProbs] = ()
    attention: Sequence[Tensor] = ()

    def word_in_line(self, word: int) -> int:
        """Return the index in the line of a word of the part, which the line has."""
        words_before = 0 if word < self.num_symbols else self.words_before
        return word + words_before - self.num_added


class LineSplitter:
    """Encodes lines, and splits or truncates those that are too long."""

    def __init__(
        self,
        codec: TextCodec,
        config: TranslationConfig,
        num_positions: int,
        max_output_length: int,
        no_prefix: str,
        warn: Callable[[str], None],
    ) -> None:
        """Store the codec and the limits.

        Args:
            codec: the codec of the model.
            config: the longest source, and what to do with a longer one.
            num_positions: the longest sequence that the model can read.
            max_output_length: the longest translation; 0 = no limit.
            no_prefix: why forced prefixes are refused; "" = they are not.
            warn: takes one-line warnings about languages.

        Raises:
            ConfigError: the model does not have the languages.
        """
        self._codec = codec
        self._symbols = SymbolWriter(codec, config.source_lang, config.target_lang, warn)
        self._config = config
        self._num_positions = num_positions
        self._max_output_length = max_output_length
        self._no_prefix = no_prefix

    def encode(self, request: Request, number: int) -> list[SourcePart]:
        """Encode a line; return its parts, the first of which has the forced prefix.

        Language symbols, such as `<2sv>`, begin each part: those of the target language, or those
        at the beginning of the line.

        Args:
            request: the line.
            number: its number, for messages.

        Raises:
            DataError: the line is too long, and `on_too_long` is "error"; the prefix does not fit.
        """
        # The codec needs 10 times as long to find that an empty line is blank.
        parts = self._parts(request, number) if request.line else [_blank(request, number)]
        if request.target_prefix:
            parts[0].forced_prefix = self._forced_prefix(request, number, is_blank=not parts[0].ids)
        return parts

    def _parts(self, request: Request, number: int) -> list[SourcePart]:
        """Return the parts of a line that is not empty."""
        codec, line = self._codec, request.line
        try:
            tagged = self._symbols.write(line, target_lang=request.target_lang)
            ids = codec.encode_source(tagged.text)
        except DataError as error:
            raise DataError(f"line {number}: {error}") from None
        limit = min(self._config.max_source_length, self._num_positions)
        symbol = tagged.symbols
        text = line if tagged.added else line[len(symbol) :]
        num_symbols, num_added = len(symbol.split()), len(tagged.added.split())
        blank = codec.encode_source(symbol)
        whole = SourcePart(
            request,
            number,
            ids=ids,
            text=tagged.text,
            start=len(line) - len(tagged.text),
            num_symbols=num_symbols,
            num_added=num_added,
        )
        if len(ids) <= limit:
            return [_blank(request, number) if ids == blank else whole]
        warning = self._warning(len(ids), limit, number)
        if self._config.on_too_long == "truncate":
            ids = [*ids[: limit - 1], EOS_ID]
            if ids == blank:
                return [_blank(request, number, warning)]
            return [replace(whole, ids=ids, warning=warning)]

        def encode(part: str) -> list[int]:
            return codec.encode_source(f"{symbol} {part}".lstrip())

        def fits(part: str) -> bool:
            return len(encode(part)) <= limit

        parts: list[SourcePart] = []
        ends = [end for _, end in word_spans(text)]
        is_segmented = codec.source.is_segmented
        first = len(line) - len(text)
        shielded = _shielded(line, request.whole)[first:]
        for begin, end in _spans_of_parts(text, shielded, fits, at_spaces=is_segmented):
            if (ids := encode(text[begin:end])) != blank:
                own = f"{symbol} {text[begin:end]}".lstrip()
                start = first + end - len(own)
                where = (start, bisect_right(ends, begin), num_symbols, num_added)
                parts.append(SourcePart(request, number, len(parts), ids, own, warning, *where))
        return parts or [_blank(request, number, warning)]

    def _warning(self, num_tokens: int, limit: int, number: int) -> str:
        """Return the warning of a line that is too long; DataError if that is an error."""
        is_model_limit = limit < self._config.max_source_length
        name = "the model's learned positions" if is_model_limit else "--max-source-length"
        what = f"line {number}: {num_tokens} tokens, more than {limit} [{name}]"
        if self._config.on_too_long == "error":
            raise DataError(f"{what}; shorten the line, or choose --on-too-long split")
        is_split = self._config.on_too_long == "split"
        how = "it is translated in parts" if is_split else "its end is not translated"
        return f"{what}; {how} [--on-too-long {self._config.on_too_long}]"

    def _forced_prefix(self, request: Request, number: int, *, is_blank: bool) -> list[int]:
        """Return the ids of a prefix; DataError if it does not fit."""
        where = f"line {number}: target_prefix"
        if self._no_prefix:
            raise DataError(f"{where} {self._no_prefix}; leave it out")
        line = request.target_prefix.replace("\n", " ")
        ids = self._codec.encode_target(line)[:-1]
        if ids and is_blank:
            raise DataError(
                f"{where} for a blank source, whose translation is blank; give a source, or leave "
                "the prefix out"
            )
        if UNK_ID in ids:
            encode = self._codec.encode_target
            word = next((word for word in line.split() if UNK_ID in encode(word)), line)
            raise DataError(
                f"{where}: {word!r} is not in the vocabulary, not even in parts, so no translation "
                "begins with it; use another word"
            )
        if 0 < self._max_output_length < len(ids):
            raise DataError(
                f"{where} has {len(ids)} tokens, and a translation at most "
                f"{self._max_output_length}; shorten it, or raise --max-output-length"
            )
        if len(ids) >= self._num_positions:
            raise DataError(
                f"{where} has {len(ids)} tokens, and the model {self._num_positions} learned "
                "positions; shorten it"
            )
        return ids


def answer_of(codec: TextCodec, parts: Sequence[SourcePart]) -> Answer:
    """Join the translations of a line's parts, place by place of their n-best lists.

    Log-probabilities and scores are summed. A shorter list repeats its last translation.

    Args:
        codec: the codec of the models; it completes the texts.
        parts: all parts of the line, translated.
    """
    count = max(len(part.hypotheses) for part in parts)
    alternatives = tuple(_translation(codec, parts, place) for place in range(1, count))
    best = _translation(codec, parts, 0, alternatives)
    return Answer(parts[0].request, best, parts[0].warning)


def split_text(text: str, fits: Callable[[str], bool], *, at_spaces: bool = False) -> list[str]:
    """Split a text into parts that fit, by halving parts that do not.

    `halves` has the rules. What cannot be split is a part even if it does not fit.

    Args:
        text: not empty.
        fits: returns whether a part is short enough.
        at_spaces: see `halves`.
    """
    if fits(text) or not (both := halves(text, at_spaces=at_spaces)):
        return [text]
    return [part for half in both for part in split_text(half, fits, at_spaces=at_spaces)]


def _spans_of_parts(
    text: str, shielded: str, fits: Callable[[str], bool], *, at_spaces: bool
) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a text begin and end; `shielded` says where it can be split."""
    end = 0
    for part in split_text(shielded, fits, at_spaces=at_spaces):
        begin = shielded.index(part, end)
        end = begin + len(part)
        if text == shielded or fits(own := text[begin:end]):
            yield begin, end
        else:
            for first, last in _spans_of_parts(own, own, fits, at_spaces=at_spaces):
                yield begin + first, begin + last


def _shielded(line: str, whole: Sequence[tuple[int, int]]) -> str:
    """Return a line with letters in the place of all between which parts of it could be split."""
    parts, end = [], 0
    for start, stop in whole:
        inner = (one if one.isascii() and not one.isspace() else "x" for one in line[start:stop])
        parts += [line[end:start], *inner]
        end = stop
    return "".join([*parts, line[end:]])


def _blank(request: Request, number: int, warning: str = "") -> SourcePart:
    return SourcePart(request, number, warning=warning, hypotheses=[_BLANK])


def _translation(
    codec: TextCodec,
    parts: Sequence[SourcePart],
    place: int,
    alternatives: tuple[Translation, ...] = (),
) -> Translation:
    """Return the translation at a place of the n-best lists."""
    places = [min(place, len(part.hypotheses) - 1) for part in parts]
    found = [part.hypotheses[index] for part, index in zip(parts, places, strict=True)]
    texts = (one_line(codec.decode_target(one.ids)) for one in found if one.ids)
    text, is_repaired = codec.join_target(texts), None
    if source := parts[0].request.source:
        text, is_repaired = codec.complete(text, source)
    source_tokens: list[str] = []
    token_log_probs: list[float] = []
    alignment: list[tuple[int, int]] = []
    attention: list[array[float]] = []
    num_columns, num_words = sum(len(part.ids) for part in parts), 0
    for part, index in zip(parts, places, strict=True):
        if part.token_log_probs:
            token_log_probs += part.token_log_probs[index]
        if part.attention:
            weights, ids = part.attention[index], part.hypotheses[index].ids
            words = words_of(part.text)
            source_words = words_of_pieces(codec.source, part.ids[:-1], words, part.text)
            target_words = codec.target.word_ranges(ids[:-1])
            pairs = links(word_attention(weights, source_words, target_words), 0)
            own_pairs = [pair for pair in pairs if pair[0] >= part.num_added]
            alignment += [(part.word_in_line(s), t + num_words) for s, t in own_pairs]
            num_words += target_words[-1].stop if target_words else 0
            before = [0.0] * len(source_tokens)
            after = [0.0] * (num_columns - len(source_tokens) - len(part.ids))
            attention += [array("f", before + row + after) for row in weights.tolist()]
        if part.token_log_probs or part.attention:
            source_tokens += map(codec.source.piece, part.ids)
    return Translation(
        text,
        log_prob=sum(one.log_prob for one in found),
        score=sum(one.score for one in found),
        tokens=tuple(codec.target.piece(index) for one in found for index in one.ids),
        num_source_tokens=num_columns,
        is_repaired=is_repaired,
        source_tokens=tuple(source_tokens),
        token_log_probs=tuple(token_log_probs),
        alignment=tuple(alignment),
        attention=tuple(attention),
        alternatives=alternatives,
    )
