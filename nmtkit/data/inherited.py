"""The codec of a model, for a dataset on which the model is trained further."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from nmtkit.config.preprocessing import CorpusConfig, directions_of
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import PairCounts, unknown_name
from nmtkit.data.vocabulary import check_first_words, read_whole_tokens
from nmtkit.errors import ConfigError, DataError
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.run_folder import find_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.vocabulary import Vocabulary

_MOST_UNKNOWN = 0.05
"""Share of unknown tokens above which a warning is printed.

Bytes and `<unk>` are below 0.1 % of the text that a vocabulary was learnt from.
"""

_CAUSES = {
    "bytes": "whose characters are of another language or script",
    "unknown": "of another language or script, or segmented in another way",
}
"""The usual causes of unknown tokens, by their names in the table of counts."""


def inherited_codec(recipe: PreprocessRecipe, report: Callable[[str], None]) -> TextCodec | None:
    """Return the codec of the model of --vocabulary-of with further tokens; None without the model.

    Args:
        recipe: settings of `nmtkit preprocess`.
        report: receives a line about the tokens that are added to each vocabulary.

    Raises:
        DamagedError: there is no model, or it is damaged.
        ConfigError: the model is of other languages, the file of tokens cannot be read, or a tag
            is no entry, or the vocabularies take no marks.
        DataError: a token cannot be an entry.
    """
    config = recipe.vocabulary
    if not config.vocabulary_of:
        return None
    path = Path(config.vocabulary_of)
    codec = _in_languages(describe_model(find_model(path)).codec, recipe.corpus, path)
    if config.whole_tokens:
        tokens = read_whole_tokens(config)
        try:
            codec = _with_tokens(codec, tokens, report)
        except DataError as error:
            raise DataError(f"{config.whole_tokens}: {error}") from error
    if config.marks:
        codec = codec.with_marks(config.marks)
    check_first_words(recipe.corpus, codec)
    return codec


def fit_warnings(codec: TextCodec, counts: PairCounts) -> Iterator[str]:
    """Yield a warning for each side of the training text that the vocabulary does not fit."""
    sides = (("source", codec.source, counts.source), ("target", codec.target, counts.target))
    for side, vocabulary, found in sides:
        if found.unknown > _MOST_UNKNOWN * found.tokens:
            name = unknown_name(vocabulary.segmentation)
            yield (
                f"warning: {found.unknown / found.tokens:.1%} of the {side}'s tokens are {name}, "
                f"above {_MOST_UNKNOWN:.0%}: the model's vocabulary does not fit a text "
                f"{_CAUSES[name]}; check the files and --{side}-lang, or learn a vocabulary for "
                "a new model"
            )


def _in_languages(codec: TextCodec, config: CorpusConfig, path: Path) -> TextCodec:
    """Return a model's codec for a text, which must be of the model's languages."""
    directions = directions_of(config)
    if bool(directions) != bool(codec.directions):
        raise ConfigError(
            f"{path}: the model has no language symbols; learn a vocabulary without "
            "--vocabulary-of, and train with --from and --update-vocabulary"
            if directions
            else f"{path}: the model has several directions, {', '.join(codec.directions)}; name "
            "that of each text, as in --train ted:en-sv, instead of -s and -t"
        )
    if directions:
        if config.source_symbols != codec.has_source_symbols:
            has, remedy = ("one", "give") if codec.has_source_symbols else ("no", "leave out")
            raise ConfigError(
                f"{path}: source lines have {has} symbol of their own language; {remedy} "
                "--source-symbols [corpus.source_symbols]"
            )
        return codec.with_directions(directions, codec.has_source_symbols)
    wanted = config.source_lang, config.target_lang
    found = codec.source_lang, codec.target_lang
    if codec.accepts_languages(*wanted):
        return replace(codec, source_lang=wanted[0], target_lang=wanted[1])
    source, target = found
    remedy = (
        "or a model of the other direction"
        if wanted == (target, source)
        else f"with files PREFIX.{source} and PREFIX.{target} (rename or link those of the text)"
    )
    raise ConfigError(
        f"{path}: the model translates {source} to {target}, and the text is {wanted[0]} to "
        f"{wanted[1]}; give -s {source} -t {target}, {remedy} [vocabulary.vocabulary_of]"
    )


def _with_tokens(
    codec: TextCodec, tokens: Sequence[str], report: Callable[[str], None]
) -> TextCodec:
    """Return a codec with further tokens in its vocabularies of text, not in others."""
    source = _extended(codec.source, tokens)
    target = source if codec.target is codec.source else _extended(codec.target, tokens)
    changes = {"shared" if codec.is_shared else "source": (codec.source, source)}
    if not codec.is_shared:
        changes["target"] = codec.target, target
    for name, (old, new) in changes.items():
        if old.target_type == "text":
            added = new.size - old.size
            known = len(tokens) - added
            report(
                f"added {added} of {len(tokens)} whole tokens to the {name} vocabulary; "
                f"{known} {'was an entry' if known == 1 else 'were entries'} already"
            )
    return replace(codec, source=source, target=target)


def _extended(vocabulary: Vocabulary, tokens: Sequence[str]) -> Vocabulary:
    return vocabulary.with_tokens(tokens) if vocabulary.target_type == "text" else vocabulary
