"""The codec that a recipe asks for: read from files, or learnt from the training text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from nmtkit.config.preprocessing import TREES, VocabularyConfig, is_shared, segmentations
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.corpus import Corpus, sample
from nmtkit.data.parses import check_parses, read_parses
from nmtkit.errors import DataError
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import read_lines
from nmtkit.text.moses import Moses
from nmtkit.text.subword import SPACE_SYMBOL, Subword
from nmtkit.text.tokenised import Tokenised, tokenise
from nmtkit.text.tree_tokens import TreeTokens
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
        DataError: a list of words or tokens with a bad line; no text to learn from; a malformed
            tree.
        DamagedError: a file that is no SentencePiece model.
    """
    config = recipe.vocabulary
    languages = recipe.corpus.source_lang, recipe.corpus.target_lang
    tokenisers = [Moses(lang) for lang in languages] if config.tokenizer == "moses" else None

    def get(path: str, sides: Sequence[int]) -> Subword | Words:
        segmentation = segmentations(config)[sides[0]]
        if path:
            return Words.load(Path(path)) if segmentation == "words" else Subword.load(Path(path))
        symbols = tags if _SOURCE in sides else ()
        name = " and ".join(languages[side] for side in sides)
        text = _Text(corpora, sides, name, tokenisers)
        return _learn(config, segmentation, text, symbols, report)

    shared = is_shared(config)
    if segmentations(config)[_TARGET] in TREES:
        # Malformed trees are told before subwords are learnt.
        trees = _tree_tokens(config, corpora, report)
        return TextCodec(*languages, get(config.source_vocabulary, (_SOURCE,)), trees, shared)
    if shared:
        source = target = get(config.source_vocabulary, (_SOURCE, _TARGET))
    else:
        source = get(config.source_vocabulary, (_SOURCE,))
        target = get(config.target_vocabulary, (_TARGET,))
    return TextCodec(
        source_lang=languages[_SOURCE],
        target_lang=languages[_TARGET],
        source=Tokenised(source, languages[_SOURCE]) if tokenisers else source,
        target=Tokenised(target, languages[_TARGET]) if tokenisers else target,
        is_shared=shared,
    )


@dataclass(frozen=True)
class _Text:
    """What a vocabulary is learnt from: one or both sides of the training text.

    Attributes:
        corpora: all of the text.
        sides: which sides.
        name: what messages call it.
        tokenisers: tokenises each side, or None.
    """

    corpora: Sequence[Corpus]
    sides: Sequence[int]
    name: str
    tokenisers: Sequence[Moses] | None

    def lines(self) -> Iterator[str]:
        """Yield all lines."""
        return self._sides_of(pair for corpus in self.corpora for pair in corpus.pairs())

    def sample(self, num_pairs: int) -> Iterator[str]:
        """Yield the lines of so many pairs."""
        return self._sides_of(sample(self.corpora, num_pairs))

    def _sides_of(self, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
        for pair in pairs:
            for side in self.sides:
                line = pair[side]
                yield tokenise(self.tokenisers[side], line) if self.tokenisers else line


def _learn(
    config: VocabularyConfig,
    segmentation: str,
    text: _Text,
    symbols: Sequence[str],
    report: Callable[[str], None],
) -> Subword | Words:
    """Learn one vocabulary."""
    size, size_flag = config.vocab_size, "--vocab-size"
    if text.sides == (_TARGET,):
        size, size_flag = config.target_vocab_size or size, "--target-vocab-size"
    if segmentation == "words":
        report(f"counting the words of {text.name}")
        return Words.count(text.lines(), size, config.min_count, symbols)
    num_pairs = sum(corpus.num_pairs for corpus in text.corpora)
    num_wanted = min(max(config.sample_lines // len(text.sides), 1), num_pairs)
    report(
        f"learning {size} {segmentation} subwords from "
        f"{num_wanted * len(text.sides)} lines of {text.name}"
    )
    algorithm = cast(Literal["bpe", "unigram"], segmentation)
    lines = text.sample(num_wanted)
    symbols = [*symbols, *_whole_tokens(config)]
    return Subword.train(lines, algorithm, size, text.name, symbols, size_flag)


def _whole_tokens(config: VocabularyConfig) -> Iterable[str]:
    """Return the tokens that are an entry each, behind SentencePiece's symbol for a space."""
    if not config.whole_tokens:
        return ()
    path = Path(config.whole_tokens)
    tokens = [line.split() for line in read_lines(path)]
    for number, words in enumerate(tokens, 1):
        if len(words) > 1:
            raise DataError(
                f"{path}:{number}: {len(words)} tokens; give one a line, as by "
                "`tr ' ' '\\n' < text | sort -u`"
            )
    return dict.fromkeys(f"{SPACE_SYMBOL}{word}" for words in tokens for word in words)


def _tree_tokens(
    config: VocabularyConfig, corpora: Sequence[Corpus], report: Callable[[str], None]
) -> TreeTokens:
    """Read the tokens of parses, or count them."""
    if config.target_vocabulary:
        check_parses(corpora)
        return TreeTokens.load(Path(config.target_vocabulary))
    report("counting the labels of the target's trees")
    keeps_tags = config.target_segmentation == "tagged-trees"
    return TreeTokens.count(read_parses(corpora), keeps_tags)
