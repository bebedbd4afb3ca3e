"""The codec that a recipe asks for: read from files, or learnt from the training text."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, cast

from nmtkit.config.schema import PreprocessRecipe, VocabularyConfig
from nmtkit.data.corpus import Corpus, sample
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.subword import Subword
from nmtkit.text.words import Words

_SOURCE, _TARGET = 0, 1


def make_codec(
    recipe: PreprocessRecipe, corpora: Sequence[Corpus], report: Callable[[str], None]
) -> TextCodec:
    """Read or learn the vocabularies.

    Args:
        recipe: says how.
        corpora: the training text.
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
        languages = (recipe.corpus.source_lang, recipe.corpus.target_lang)
        text = " and ".join(languages[side] for side in sides)
        return _learn(config, corpora, sides, text, report)

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


def _learn(
    config: VocabularyConfig,
    corpora: Sequence[Corpus],
    sides: Sequence[int],
    text: str,
    report: Callable[[str], None],
) -> Vocabulary:
    """Learn one vocabulary from one or both sides of the training text."""
    if config.segmentation == "words":
        report(f"counting the words of {text}")
        pairs = (pair for corpus in corpora for pair in corpus.pairs())
        lines = (pair[side] for pair in pairs for side in sides)
        return Words.count(lines, config.vocab_size, config.min_count)
    num_pairs = sum(corpus.num_pairs for corpus in corpora)
    num_wanted = min(max(config.sample_lines // len(sides), 1), num_pairs)
    report(
        f"learning {config.vocab_size} {config.segmentation} subwords from "
        f"{num_wanted * len(sides)} lines of {text}"
    )
    lines = (pair[side] for pair in sample(corpora, num_wanted) for side in sides)
    algorithm = cast(Literal["bpe", "unigram"], config.segmentation)
    return Subword.train(lines, algorithm, config.vocab_size, text)
