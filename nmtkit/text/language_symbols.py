"""Language symbols of source lines, by which a model of several directions knows the target.

The codec has the directions, and finds the symbols that a line has itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError, DataError
from nmtkit.symbols import source_symbol, target_symbol
from nmtkit.text.codec import TextCodec, languages_of
from nmtkit.text.marian import MarianVocabulary

_NUM_SHOWN = 10
"""Number of languages in a message."""


@dataclass(frozen=True)
class TaggedLine:
    """A source line with its language symbols, as a model reads it.

    Attributes:
        text: the line, which begins with its symbols.
        symbols: these; "" = it has none.
        added: those that the line does not have itself: all of them, or none.
    """

    text: str
    symbols: str
    added: str


class SymbolWriter:
    """Begins source lines with their language symbols."""

    def __init__(
        self,
        codec: TextCodec,
        source_lang: str,
        target_lang: str,
        warn: Callable[[str], None],
    ) -> None:
        """Store the languages of lines that do not name their own.

        Args:
            codec, source_lang, target_lang: see `symbols_for`.
            warn: takes a one-line warning of each direction without training, once.

        Raises:
            ConfigError: see `symbols_for`.
        """
        self._codec = codec
        self._source_lang = source_lang
        self._target_lang = target_lang
        self._warn = warn
        self._known: dict[tuple[str, str], str] = {}
        self._symbols_of(source_lang, target_lang)

    def write(self, line: str, *, source_lang: str = "", target_lang: str = "") -> TaggedLine:
        """Return a line with its symbols; a blank one is unchanged.

        Args:
            line: the line, which may have its symbols already.
            source_lang, target_lang: its own languages; "" = those of all lines.

        Raises:
            DataError: the model does not have the language, or see `with_symbols`.
        """
        try:
            symbols = self._symbols_of(
                source_lang or self._source_lang, target_lang or self._target_lang
            )
        except ConfigError as error:
            raise DataError(f"{error}") from None
        text = with_symbols(self._codec, line, symbols)
        if text != line:
            return TaggedLine(text, symbols, symbols)
        return TaggedLine(line, self._codec.split_symbol(line)[0], "")

    def _symbols_of(self, source_lang: str, target_lang: str) -> str:
        """Return the symbols of a direction; warn if it is not trained."""
        direction = source_lang, target_lang
        if direction not in self._known:
            self._known[direction] = symbols_for(self._codec, *direction)
            if not is_trained(self._codec, *direction):
                self._warn(
                    f"{'-'.join(direction)} is not among the directions of the model's training"
                )
        return self._known[direction]


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


def needs_language(codec: TextCodec) -> bool:
    """Return whether each line has to begin with a symbol, of one of several languages."""
    return bool(codec.directions) or len(codec.target_langs) > 1


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
    if not (own or symbols) and needs_language(codec):
        raise DataError(
            "has no target language; give --target-lang, one of "
            f"{listed_languages(codec)}{_with_source(codec)}"
        )
    return line if own or not symbols else f"{symbols} {line}"


def listed_languages(codec: TextCodec) -> str:
    """Return the target languages of a model for a message, the first ones of many."""
    languages = codec.target_langs
    more = " and others" * (len(languages) > _NUM_SHOWN)
    return ", ".join(languages[:_NUM_SHOWN]) + more


def _with_source(codec: TextCodec) -> str:
    return ", and --source-lang" if codec.has_source_symbols else ""
