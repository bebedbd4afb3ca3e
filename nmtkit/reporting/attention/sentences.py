"""Sentences of `nmtkit attention`: lines of input, their tokens and words, and the weights.

As JSON, weights are lists of numbers for programs, or packed as base64 for the page; each head also
has a summary of four numbers.
"""

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nmtkit.config.model import AligningAttention
from nmtkit.config.schema import AttentionRecipe, SearchConfig
from nmtkit.decoding.alignment import all_attention_weights, pool_words, with_end
from nmtkit.decoding.forced import Ids
from nmtkit.decoding.search import beam_search, longest_translation
from nmtkit.errors import DataError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.text.json_lines import read_object
from nmtkit.text.language_symbols import SymbolWriter
from nmtkit.text.translations import check_schema
from nmtkit.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Pair:
    """A line of input.

    Attributes:
        source: the source text.
        target: its translation; None if the line has none.
        where: the name of the line in messages.
        target_lang: language of its translation; "" = that of all lines.
    """

    source: str
    target: str | None
    where: str
    target_lang: str = ""


def read_pairs(lines: Iterable[str], input_format: str, name: str) -> Iterator[Pair]:
    """Yield the pair of each line.

    Args:
        lines: `source` or `source<TAB>translation`; or JSON objects.
        input_format: "text" or "json".
        name: the name of the input in messages.

    Raises:
        DataError: a line is malformed, or there is no line.
    """
    read = _of_object if input_format == "json" else _of_text
    number = 0
    for number, line in enumerate(lines, 1):
        yield read(line, f"{name}:{number}")
    if number == 0:
        raise DataError(f"{name}: no lines; give a source per line")


def _of_text(line: str, where: str) -> Pair:
    source, *targets = line.split("\t")
    if len(targets) > 1:
        raise DataError(
            f"{where}: {len(targets)} tabs; write a source, or a source, one tab and its "
            "translation"
        )
    return Pair(source, targets[0] if targets else None, where)


def _of_object(line: str, where: str) -> Pair:
    values = read_object(line, ("source", "translation", "target_lang"), where)
    check_schema(values, where)
    language = values.get("target_lang", "")
    return Pair(values["source"], values.get("translation"), where, language)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a sequence and the words that they form.

    Attributes:
        pieces: the tokens as the vocabulary writes them.
        word_of: for each token, the index of its word; begin and end symbols are words too.
        words: the text of each word.
    """

    pieces: tuple[str, ...]
    word_of: tuple[int, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one of the three attentions in a sentence.

    Attributes:
        kind: "encoder", "decoder" or "memory".
        rows, columns: the tokens that attend, and those that are attended to.
        weights: (L, H, T, S) float32; each row sums to 1.
        aligning: of cross-attention, from where the model's alignments are read.
    """

    kind: str
    rows: Tokens
    columns: Tokens
    weights: Tensor
    aligning: AligningAttention | None = None

    @cached_property
    def joined(self) -> Tensor:
        """The weights between words: (L, H, words of `rows`, words of `columns`)."""
        rows, columns = (
            [range(word, word + 1) for word in tokens.word_of]
            for tokens in (self.rows, self.columns)
        )
        return pool_words(self.weights, rows, columns)


@dataclass(frozen=True)
class Sentence:
    """A source, its translation or None, and the attention weights between their tokens.

    The attentions are the encoder's and, with a translation, the decoder's and cross-attention.
    """

    source: str
    target: str | None
    attentions: tuple[AttentionMap, ...]

    @property
    def num_weights(self) -> int:
        """Number of weights of all attentions, layers and heads."""
        return sum(attention.weights.numel() for attention in self.attentions)


class AttentionExtractor:
    """Computes the attention weights of a model."""

    def __init__(
        self, loaded: LoadedModel, recipe: AttentionRecipe, warn: Callable[[str], None]
    ) -> None:
        """Use a loaded model with the settings of a recipe; `warn` takes one-line warnings."""
        self._model, self._codec = loaded.model, loaded.codec
        self._search, self._view = recipe.search, recipe.view
        languages = recipe.view.source_lang, recipe.view.target_lang
        self._symbols = SymbolWriter(loaded.codec, *languages, warn)

    def extract(self, pair: Pair) -> Sentence:
        """Compute the attention weights of a pair; translate its source first with --translate.

        Raises:
            DataError: a side is too long, or the pair has a translation despite --translate.
            DamagedError: the model computes values that are not finite.
        """
        try:
            tagged = self._symbols.write(pair.source, target_lang=pair.target_lang)
            source = self._codec.encode_source(tagged.text)
        except DataError as error:
            raise DataError(f"{pair.where}: {error}") from None
        self._check_size(pair, source, None)
        target, text = self._target(pair, source)
        self._check_size(pair, source, target)
        weights = all_attention_weights(self._model, source, target)
        words = with_end(self._codec.source.word_ranges(source[:-1]))
        source_tokens = _tokens(self._codec.source, source, _whole(words))
        attentions = [AttentionMap("encoder", source_tokens, source_tokens, weights.encoder)]
        if target is not None and weights.decoder is not None and weights.memory is not None:
            vocabulary = self._codec.target
            word_of = _whole(with_end(vocabulary.word_ranges(target[:-1])))
            # The decoder reads its output shifted by one position.
            read = _tokens(vocabulary, [BOS_ID, *target[:-1]], [0, *(1 + w for w in word_of[:-1])])
            attentions.append(AttentionMap("decoder", read, read, weights.decoder))
            written = _tokens(vocabulary, target, word_of)
            aligning = self._model.aligning_attention
            memory = AttentionMap("memory", written, source_tokens, weights.memory, aligning)
            attentions.append(memory)
        return Sentence(pair.source, text, tuple(attentions))

    def _target(self, pair: Pair, source: Ids) -> tuple[list[int] | None, str | None]:
        """Return the ids and the text of the translation, given or found; both may be None."""
        if not self._view.translate:
            given = None if pair.target is None else self._codec.encode_target(pair.target)
            return given, pair.target
        if pair.target is not None:
            raise DataError(
                f"{pair.where}: already has a translation; remove it, or leave out --translate"
            )
        target = _translate(self._model, source, self._search)
        return target, self._codec.decode_target(target)

    def _check_size(self, pair: Pair, source: Ids, target: Ids | None) -> None:
        """Raise DataError if the model cannot read a side, or there are more than --max-weights."""
        config = self._model.config
        num_source, num_target = len(source), len(target or ())
        longest = config.longest_sequence
        if max(num_source, num_target) > longest:
            raise DataError(
                f"{pair.where}: {max(num_source, num_target)} tokens, more than the model's "
                f"{longest} learned positions; shorten the line"
            )
        of_encoder = config.encoder_layers * num_source**2
        of_decoder = config.decoder_layers * num_target * (num_target + num_source)
        num_weights = config.heads * (of_encoder + of_decoder)
        if num_weights > self._view.max_weights:
            raise DataError(
                f"{pair.where}: {num_source + num_target} tokens have {num_weights:,} attention "
                f"weights, more than {self._view.max_weights:,}; shorten the line, or raise "
                "--max-weights"
            )


@torch.inference_mode()
def _translate(model: Transformer, source: Ids, search: SearchConfig) -> list[int]:
    """Return the ids of the best translation; a blank line stays blank."""
    if list(source) == [EOS_ID]:
        return [EOS_ID]
    memory = model.encode(pack_sequences([source], model.output_weight.device))
    longest = min(longest_translation(search, len(source)), model.config.longest_sequence)
    limits = torch.tensor([longest], device=memory.values.device)
    ((best,),) = beam_search(model.step, model.start(memory), limits, search, n_best=1)
    return list(best.ids)


def _whole(words: Sequence[range]) -> list[int]:
    """Number the words of tokens so that each token has one: its words, with others', are one."""
    numbers, end = [-1], 0
    for own in words:
        numbers.append(numbers[-1] + (own.start >= end))
        end = own.stop
    return numbers[1:]


def _tokens(vocabulary: Vocabulary, ids: Ids, word_of: Sequence[int]) -> Tokens:
    pieces = tuple(map(vocabulary.piece, ids))
    words = []
    for word in range(max(word_of) + 1):
        own = [place for place, number in enumerate(word_of) if number == word]
        text = vocabulary.decode([ids[place] for place in own]).strip()
        words.append(text or "".join(pieces[place] for place in own))
    return Tokens(pieces, tuple(word_of), tuple(words))


_DIGITS = 6
"""Decimal places; float32 has about this precision."""

_ONE = 2**16 - 1
"""The number that stands for weight 1 in the page."""


SUMMARY = ("entropy", "distance", "diagonal", "symbol")
"""The figures of a head, each a mean over the tokens that attend.

entropy: entropy of the weights, in bits; 0 if one token gets all weight. distance: mean distance
from the own position to the attended one, in tokens. diagonal: weight of the own position. symbol:
weight of the end symbol, or of the begin symbol in the decoder. A token's own position is its index
or, in a sequence of another length, the proportional one.
"""


def json_line(sentence: Sentence) -> str:
    """Return a sentence as a line of JSON."""
    return json.dumps(as_object(sentence, _as_lists), ensure_ascii=False)


def as_object(sentence: Sentence, written: Callable[[Tensor], Any]) -> dict[str, Any]:
    """Return a sentence as a JSON object.

    Args:
        sentence: the sentence.
        written: converts weights (L, H, T, S) to a JSON value.
    """
    return {
        "source": sentence.source,
        "translation": sentence.target,
        "attentions": [_attention(attention, written) for attention in sentence.attentions],
    }


def packed(weights: Tensor) -> str:
    """Return weights as base64 of 16-bit little-endian numbers; 65535 means 1."""
    numbers = (weights * _ONE).round().to(torch.int32).numpy().astype("<u2")
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def summarize(weights: Tensor, symbol: int) -> Tensor:
    """Return the figures of `SUMMARY` of each head: (L, H, 4).

    Args:
        weights: (L, H, T, S).
        symbol: the column of the end symbol, or of the begin symbol.
    """
    num_rows, num_columns = weights.shape[2:]
    positions = torch.arange(num_rows) * (num_columns - 1) / max(1, num_rows - 1)  # (T,)
    distances = (torch.arange(num_columns) - positions[:, None]).abs()  # (T, S)
    diagonal = torch.nn.functional.one_hot(positions.round().long(), num_columns)
    figures = torch.stack(
        [
            torch.special.entr(weights).sum(-1) / math.log(2),
            (weights * distances).sum(-1),
            (weights * diagonal).sum(-1),
            weights[..., symbol],
        ],
        dim=-1,
    )  # (L, H, T, 4)
    return figures.mean(2)


def _attention(attention: AttentionMap, written: Callable[[Tensor], Any]) -> dict[str, Any]:
    symbol = 0 if attention.kind == "decoder" else len(attention.columns.pieces) - 1
    summaries = _as_lists(summarize(attention.weights, symbol))
    return {
        "kind": attention.kind,
        "rows": asdict(attention.rows),
        "columns": asdict(attention.columns),
        "summary": [
            [dict(zip(SUMMARY, head, strict=True)) for head in layer] for layer in summaries
        ],
        "weights": written(attention.weights),
    }


def _as_lists(weights: Tensor) -> Any:
    # Rounded as float64: json would write all digits of a rounded float32.
    return torch.round(weights.double(), decimals=_DIGITS).tolist()
