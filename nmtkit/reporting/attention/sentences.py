"""A sentence as a model attends to it: tokens, words, and the weights between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nmtkit.config.schema import AttentionRecipe, SearchConfig
from nmtkit.decoding.attention import all_weights, joined, with_end
from nmtkit.decoding.batching import longest_translation
from nmtkit.decoding.forced import Ids
from nmtkit.decoding.search import beam_search
from nmtkit.errors import DataError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.reporting.attention.pairs import Pair
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.text.codec import Vocabulary


@dataclass(frozen=True)
class Tokens:
    """A sequence as the model sees it, and the words that it spells.

    Attributes:
        pieces: the tokens as the vocabulary writes them.
        word_of: the word, from 0, that each is part of; begin and end symbol are words too.
        words: the text of each word.
    """

    pieces: tuple[str, ...]
    word_of: tuple[int, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """One of the three attentions, in a sentence.

    Attributes:
        kind: "encoder", "decoder" or "memory".
        rows, columns: what attends, and what is attended to.
        weights: (L, H, T, S) float32, rows of which sum to 1.
    """

    kind: str
    rows: Tokens
    columns: Tokens
    weights: Tensor

    @cached_property
    def joined(self) -> Tensor:
        """The weights between words: (L, H, words of the rows, words of the columns)."""
        return joined(self.weights, self.rows.word_of, self.columns.word_of)


@dataclass(frozen=True)
class Sentence:
    """A line of input: its source, its translation if there is one, and what attends to what."""

    source: str
    target: str | None
    views: tuple[View, ...]

    @property
    def num_weights(self) -> int:
        """How many weights there are, of all attentions, layers and heads."""
        return sum(view.weights.numel() for view in self.views)


class Observer:
    """A model with its codec, whose attention is looked at."""

    def __init__(self, loaded: LoadedModel, recipe: AttentionRecipe) -> None:
        """Take a model that is as it was loaded, and what to do with it."""
        self._model = loaded.model
        self._codec = loaded.codec
        self._search = recipe.search if recipe.view.translate else None
        self._max_weights = recipe.view.max_weights

    def observe(self, pair: Pair) -> Sentence:
        """Run the model over a pair, having it translate first if that is asked for.

        Raises:
            DataError: a side is too long; or there is a translation already, where one is to be
                found.
            DamagedError: the model computes no numbers.
        """
        source = self._codec.encode_source(pair.source)
        self._check_size(pair, source, None)
        target, text = self._target(pair, source)
        self._check_size(pair, source, target)
        weights = all_weights(self._model, source, target)
        words = self._codec.source.words(source[:-1])
        own = _tokens(self._codec.source, source, with_end(words))
        views = [View("encoder", own, own, weights.encoder)]
        if target is not None and weights.decoder is not None and weights.memory is not None:
            vocabulary = self._codec.target
            word_of = with_end(vocabulary.words(target[:-1]))
            # What the decoder reads is what it has written, one place later.
            read = _tokens(vocabulary, [BOS_ID, *target[:-1]], [0, *(1 + w for w in word_of[:-1])])
            views.append(View("decoder", read, read, weights.decoder))
            written = _tokens(vocabulary, target, word_of)
            views.append(View("memory", written, own, weights.memory))
        return Sentence(pair.source, text, tuple(views))

    def _target(self, pair: Pair, source: Ids) -> tuple[list[int] | None, str | None]:
        """Return the ids and the text of the translation, given or found."""
        if self._search is None:
            given = None if pair.target is None else self._codec.encode_target(pair.target)
            return given, pair.target
        if pair.target is not None:
            raise DataError(
                f"{pair.where}: has a translation already; leave it out, or leave out --translate"
            )
        found = _translate(self._model, source, self._search)
        return found, self._codec.decode_target(found)

    def _check_size(self, pair: Pair, source: Ids, target: Ids | None) -> None:
        """Refuse what the model cannot read, or what has more weights than are wanted."""
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
        if num_weights > self._max_weights:
            raise DataError(
                f"{pair.where}: {num_source + num_target} tokens have {num_weights:,} attention "
                f"weights, more than {self._max_weights:,}; shorten the line, or raise "
                "--max-weights"
            )


@torch.inference_mode()
def _translate(model: Transformer, source: Ids, search: SearchConfig) -> list[int]:
    """Return the ids of the best translation; a blank line's is blank."""
    if list(source) == [EOS_ID]:
        return [EOS_ID]
    memory = model.encode(pack_sequences([source], model.output_weight.device))
    longest = min(longest_translation(search, len(source)), model.config.longest_sequence)
    limits = torch.tensor([longest], device=memory.values.device)
    ((best,),) = beam_search(model.step, model.start(memory), limits, search, n_best=1)
    return list(best.ids)


def _tokens(vocabulary: Vocabulary, ids: Ids, word_of: Sequence[int]) -> Tokens:
    pieces = tuple(map(vocabulary.piece, ids))
    words = []
    for word in range(max(word_of) + 1):
        own = [place for place, number in enumerate(word_of) if number == word]
        text = vocabulary.decode([ids[place] for place in own]).strip()
        words.append(text or "".join(pieces[place] for place in own))
    return Tokens(pieces, tuple(word_of), tuple(words))
