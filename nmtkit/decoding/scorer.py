"""Scorer: scores pairs of lines in batches of similar length, and answers in their order.

The scorer scores the tokens into which the codec segments a line. A search may generate the same
text from other tokens, and then reports another score.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from nmtkit.config.schema import ScoringConfig
from nmtkit.decoding.answers import ScoredLine
from nmtkit.decoding.forced import OnBatch, TokenLogProbs, max_tokens_of, score_by_ensemble
from nmtkit.errors import DataError
from nmtkit.model.transformer import Transformer
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.language_symbols import SymbolWriter
from nmtkit.text.words import words_of
from nmtkit.units import perplexity

CHUNK_LINES = 4096
"""Largest number of pairs that are read ahead and sorted by length."""

BLANK = ([EOS_ID], [EOS_ID])
"""The ids of a pair of blank lines."""


def line_names(first: int) -> Iterator[str]:
    """Yield the names of lines from a number on, without end."""
    return (f"line {number}" for number in count(first))


@dataclass
class Totals:
    """Sums over scored lines."""

    num_lines: int = 0
    num_tokens: int = 0
    num_words: int = 0
    log_prob: float = 0.0

    def add(self, lines: Iterable[ScoredLine]) -> None:
        """Add scored lines."""
        for line in lines:
            self.num_lines += 1
            self.num_tokens += len(line.tokens)
            self.num_words += line.num_words
            self.log_prob += line.log_prob

    @property
    def perplexity(self) -> float:
        """Perplexity per token, end symbols counted; 1 without tokens."""
        return perplexity(-self.log_prob / max(1, self.num_tokens))

    @property
    def word_perplexity(self) -> float:
        """Perplexity per word, comparable between vocabularies; 1 without words."""
        return perplexity(-self.log_prob / max(1, self.num_words))


class Scorer:
    """A model or ensemble with its codec, ready to score translations."""

    def __init__(
        self,
        models: Sequence[Transformer],
        codec: TextCodec,
        config: ScoringConfig,
        warn: Callable[[str], None],
    ) -> None:
        """Put the parts together.

        Args:
            models: in evaluation mode, on the device to use; several are an ensemble.
            codec: the codec that the models were trained with.
            config: batch size, longest line and languages.
            warn: takes one-line warnings about languages.

        Raises:
            ConfigError: the models do not have the languages.
        """
        self._models = models
        self._codec = codec
        self._symbols = SymbolWriter(codec, config.source_lang, config.target_lang, warn)
        self._config = config
        self._num_positions = min(model.config.longest_sequence for model in models)

    @property
    def codec(self) -> TextCodec:
        """The codec of the models."""
        return self._codec

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        names: Iterable[str],
        on_batch: OnBatch | None = None,
        target_langs: Sequence[str] = (),
    ) -> list[ScoredLine]:
        """Score pairs in batches of similar length.

        Args:
            pairs: any number of source lines with their translations.
            names: name of each pair in messages, such as those of `line_names`.
            on_batch: called after each batch with its numbers of pairs and target tokens; blank
                pairs are a batch of their own.
            target_langs: of each pair, "" = that of the settings; () = that for all.
        """
        encoded = list(map(self._encode, pairs, names, target_langs or [""] * len(pairs)))
        not_blank = [pair for pair in encoded if pair != BLANK]
        if on_batch:
            on_batch(len(pairs) - len(not_blank), 0)
        max_tokens = max_tokens_of(self._config, self._models[0].output_weight.device)
        scores = iter(score_by_ensemble(self._models, not_blank, max_tokens, on_batch))
        return [
            ScoredLine((), (), 0) if pair == BLANK else self._line(text, pair[1], next(scores))
            for (_, text), pair in zip(pairs, encoded, strict=True)
        ]

    def _line(self, text: str, ids: list[int], log_probs: TokenLogProbs) -> ScoredLine:
        tokens = tuple(map(self._codec.target.piece, ids))
        return ScoredLine(tokens, log_probs, len(words_of(text)) + 1)

    def _encode(
        self, pair: tuple[str, str], name: str, target_lang: str
    ) -> tuple[list[int], list[int]]:
        """Encode a pair of lines; DataError if one is too long."""
        source, target = pair
        try:
            source = self._symbols.write(source, target_lang=target_lang).text
            encoded = self._codec.encode_source(source), self._codec.encode_target(target)
        except DataError as error:  # a malformed target
            raise DataError(f"{name}: {error}") from None
        for side, ids in zip(("source", "translation"), encoded, strict=True):
            what = f"{name}: {len(ids)} tokens in the {side}, more than"
            if len(ids) > self._num_positions:
                raise DataError(
                    f"{what} the model's {self._num_positions} learned positions; leave the pair "
                    "out, or shorten it"
                )
            if len(ids) > self._config.max_length:
                raise DataError(
                    f"{what} {self._config.max_length}; leave the pair out, or raise --max-length"
                )
        return encoded
