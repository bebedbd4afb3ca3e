"""Attention weights of a model in a sentence, with tokens and words."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nmtkit.config.schema import AttentionRecipe, SearchConfig
from nmtkit.decoding.attention import all_attention_weights, pool_words, with_end
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
    """

    kind: str
    rows: Tokens
    columns: Tokens
    weights: Tensor

    @cached_property
    def joined(self) -> Tensor:
        """The weights between words: (L, H, words of `rows`, words of `columns`)."""
        return pool_words(self.weights, self.rows.word_of, self.columns.word_of)


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

    def __init__(self, loaded: LoadedModel, recipe: AttentionRecipe) -> None:
        """Use a loaded model with the settings of a recipe."""
        self._model = loaded.model
        self._codec = loaded.codec
        self._search = recipe.search if recipe.view.translate else None
        self._max_weights = recipe.view.max_weights

    def extract(self, pair: Pair) -> Sentence:
        """Compute the attention weights of a pair; translate its source first with --translate.

        Raises:
            DataError: a side is too long, or the pair has a translation despite --translate.
            DamagedError: the model computes values that are not finite.
        """
        source = self._codec.encode_source(pair.source)
        self._check_size(pair, source, None)
        target, text = self._target(pair, source)
        self._check_size(pair, source, target)
        weights = all_attention_weights(self._model, source, target)
        words = self._codec.source.word_indices(source[:-1])
        source_tokens = _tokens(self._codec.source, source, with_end(words))
        attentions = [AttentionMap("encoder", source_tokens, source_tokens, weights.encoder)]
        if target is not None and weights.decoder is not None and weights.memory is not None:
            vocabulary = self._codec.target
            word_of = with_end(vocabulary.word_indices(target[:-1]))
            # The decoder reads its output shifted by one position.
            read = _tokens(vocabulary, [BOS_ID, *target[:-1]], [0, *(1 + w for w in word_of[:-1])])
            attentions.append(AttentionMap("decoder", read, read, weights.decoder))
            written = _tokens(vocabulary, target, word_of)
            attentions.append(AttentionMap("memory", written, source_tokens, weights.memory))
        return Sentence(pair.source, text, tuple(attentions))

    def _target(self, pair: Pair, source: Ids) -> tuple[list[int] | None, str | None]:
        """Return the ids and the text of the translation, given or found; both may be None."""
        if self._search is None:
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
        if num_weights > self._max_weights:
            raise DataError(
                f"{pair.where}: {num_source + num_target} tokens have {num_weights:,} attention "
                f"weights, more than {self._max_weights:,}; shorten the line, or raise "
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


def _tokens(vocabulary: Vocabulary, ids: Ids, word_of: Sequence[int]) -> Tokens:
    pieces = tuple(map(vocabulary.piece, ids))
    words = []
    for word in range(max(word_of) + 1):
        own = [place for place, number in enumerate(word_of) if number == word]
        text = vocabulary.decode([ids[place] for place in own]).strip()
        words.append(text or "".join(pieces[place] for place in own))
    return Tokens(pieces, tuple(word_of), tuple(words))
