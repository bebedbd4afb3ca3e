"""The codec that a recipe asks for: read from files, or learnt from the training text."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.corpus import Corpus, sample
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.subword import Subword
from nmtkit.text.words import Words

_SOURCE, _TARGET = 0, 1


def make_codec(
    recipe: PreprocessRecipe,
    corpora: Sequence[Corpus],
    tags: Sequence[str],
    report: Callable[[str], None],
) -> TextCodec:
    """Read or learn the vocabularies.

    Args:
        recipe: says how.
        corpora: the training text.
        tags: tokens that the source vocabulary, where it is learnt, has as entries.
        report: takes a line about what is learnt.

    Raises:
        ConfigError: a vocabulary file that cannot be read; a size that the text does not allow.
        DataError: a list of words with a bad line; no text to learn from.
        DamagedError: a file that is no SentencePiece model.
    """
    config = recipe.vocabulary

    def get(path: str, sides: Sequence[int]) -> Vocabulary:
        if path:
            return _load(Path(path), config)
        symbols = tags if _SOURCE in sides else ()
        languages = (recipe.corpus.source_lang, recipe.corpus.target_lang)
        text = " and ".join(languages[side] for side in sides)
        return _learn(config, _Text(corpora, sides, text), symbols, report)

    is_shared = _is_shared(config)
    if is_shared:
        source = target = get(config.source_vocabulary, (_SOURCE, _TARGET))
    else:
        source = get(config.source_vocabulary, (_SOURCE,))
        target = get(config.target_vocabulary, (_TARGET,))
    return TextCodec(
        source_lang=recipe.corpus.source_lang,
        target_lang=recipe.corpus.target_lang,
        source=source,
        target=target,
        is_shared=is_shared,
    )


def _is_shared(config: VocabularyConfig) -> bool:
    source, target = config.source_vocabulary, config.target_vocabulary
    if source and target:
        return Path(source).resolve() == Path(target).resolve()
    assert config.separate_vocabularies or not (source or target), (source, target)
    return not config.separate_vocabularies


def _load(path: Path, config: VocabularyConfig) -> Vocabulary:
    return Words.load(path) if config.segmentation == "words" else Subword.load(path)


@dataclass(frozen=True)
class _Text:
    """What a vocabulary is learnt from: one or both sides of the training text.

    Attributes:
        corpora: all of the text.
        sides: which sides.
        name: what messages call it.
    """

    corpora: Sequence[Corpus]
    sides: Sequence[int]
    name: str

    def lines(self) -> Iterator[str]:
        """Yield all lines."""
        pairs = (pair for corpus in self.corpora for pair in corpus.pairs())
        return (pair[side] for pair in pairs for side in self.sides)

    def sample(self, num_pairs: int) -> Iterator[str]:
        """Yield the lines of so many pairs."""
        return (pair[side] for pair in sample(self.corpora, num_pairs) for side in self.sides)


def _learn(
    config: VocabularyConfig, text: _Text, symbols: Sequence[str], report: Callable[[str], None]
) -> Vocabulary:
    """Learn one vocabulary."""
    if config.segmentation == "words":
        report(f"counting the words of {text.name}")
        return Words.count(text.lines(), config.vocab_size, config.min_count, symbols)
    num_pairs = sum(corpus.num_pairs for corpus in text.corpora)
    num_wanted = min(max(config.sample_lines // len(text.sides), 1), num_pairs)
    report(
        f"learning {config.vocab_size} {config.segmentation} subwords from "
        f"{num_wanted * len(text.sides)} lines of {text.name}"
    )
    algorithm = cast(Literal["bpe", "unigram"], config.segmentation)
    lines = text.sample(num_wanted)
    return Subword.train(lines, algorithm, config.vocab_size, text.name, symbols)
