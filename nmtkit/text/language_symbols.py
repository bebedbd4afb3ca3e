"""Language symbols of source lines, by which a model of several directions knows the target.

The codec has the directions, and finds the symbols that a line has itself.
"""

from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError, DataError
from nmtkit.symbols import source_symbol, target_symbol
from nmtkit.text.codec import TextCodec, languages_of
from nmtkit.text.marian import MarianVocabulary

_NUM_SHOWN = 10
"""Number of languages in a message."""


def symbols_for(codec: TextCodec, source_lang: str, target_lang: str) -> str:
    """Return the language symbols that source lines of a direction begin with, or "".

    Args:
        codec: of the model.
        source_lang, target_lang: the languages; "" = not given. Without those that are needed,
            each line has to begin with its own symbols.

    Raises:
        ConfigError: the model does not have the language, needs it, or has only two.
    """
    known = codec.target_langs
    sources = {source for source, _ in map(languages_of, codec.directions)}
    for name, given, languages in (
        ("target_lang", target_lang, known),
        ("source_lang", source_lang, sources),
    ):
        if given and not languages:
            raise ConfigError(
                f"{name} ({given!r}) has no effect: the model translates {codec.source_lang} to "
                f"{codec.target_lang}, without language symbols; leave it out"
            )
        if given and given not in languages:
            raise ConfigError(
                f"{name} ({given!r}) is not a language of the model; "
                f"{suggestion(given, sorted(languages))}"
            )
    if isinstance(codec.source, MarianVocabulary):
        return codec.source.symbol_of(target_lang) if target_lang else ""
    target = target_lang or (known[0] if len(known) == 1 else "")
    if not (target and codec.has_source_symbols):
        return target_symbol(target) if target else ""
    source = source_lang or (next(iter(sources)) if len(sources) == 1 else "")
    if not source and not target_lang:
        return ""
    if not source:
        raise ConfigError(
            "source_lang is missing, as lines begin with the symbol of their own language, "
            f"too; give --source-lang, one of {', '.join(sorted(sources))}"
        )
    return f"{target_symbol(target)} {source_symbol(source)}"


def with_languages(codec: TextCodec, line: str, source_lang: str, target_lang: str) -> str:
    """Return a source line that begins with the symbols of its languages.

    Raises:
        DataError: the model does not have them, or see `with_symbols`.
    """
    try:
        symbols = symbols_for(codec, source_lang, target_lang)
    except ConfigError as error:
        raise DataError(f"{error}") from None
    return with_symbols(codec, line, symbols)


def is_trained(codec: TextCodec, source_lang: str, target_lang: str) -> bool:
    """Return whether a direction is one of the training, as far as languages are given."""
    return not codec.directions or any(
        source_lang in ("", source) and target_lang in ("", target)
        for source, target in map(languages_of, codec.directions)
    )


def with_symbols(codec: TextCodec, line: str, symbols: str) -> str:
    """Return a source line that begins with language symbols.

    A blank one is unchanged, and so is one that begins with these symbols.

    Args:
        codec: of the model.
        line: the line.
        symbols: by `symbols_for`; "" = the line begins with its own, if the model needs one.

    Raises:
        DataError: the line has no symbol, or another one.
    """
    languages = codec.target_langs
    if not languages or not line.strip():
        return line
    own, _ = codec.split_symbol(line)
    if own and symbols not in ("", own):
        raise DataError(f"begins with {own}, and its languages have {symbols}; leave one out")
    if not (own or symbols) and (codec.directions or len(languages) > 1):
        more = " and others" * (len(languages) > _NUM_SHOWN)
        raise DataError(
            "has no target language; give --target-lang, one of "
            f"{', '.join(languages[:_NUM_SHOWN])}{more}{_with_source(codec)}"
        )
    return line if own or not symbols else f"{symbols} {line}"


def _with_source(codec: TextCodec) -> str:
    return ", and --source-lang" if codec.has_source_symbols else ""
