"""Texts to score: translations of one or more systems, and references from files or test sets.

sacreBLEU knows the test sets and downloads them at first use. Texts that look wrong, with subwords,
tokens or missing translations, are warnings.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar

from nmtkit.config.metrics import GENERAL_TOKENIZER, MetricsConfig, metric_names, tokenizer_of
from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError, DataError, ResourceError
from nmtkit.text.characters import has_punctuation, is_tokenized
from nmtkit.text.lines import read_lines
from nmtkit.text.links import Links, parse_links
from nmtkit.text.translations import read_translations
from nmtkit.text.words import is_spaceless

Item = TypeVar("Item")


@dataclass(frozen=True)
class Text:
    """The lines of a system or of a reference.

    Attributes:
        name: its name in messages and tables.
        lines: one per sentence.
    """

    name: str
    lines: Sequence[str]

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Put the name of this text before the message of a DataError in the context."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{self.name}: {error}") from error

    def each(self, read: Callable[[str], Item]) -> list[Item]:
        """Read each line; a DataError about it gets its number and the name of this text."""
        found = []
        for number, line in enumerate(self.lines, 1):
            try:
                found.append(read(line))
            except DataError as error:
                raise DataError(f"{self.name}:{number}: {error}") from error
        return found


@dataclass(frozen=True)
class Texts:
    """One or more systems and one or more references, all with the same number of lines.

    Attributes:
        systems: the translations.
        references: what they are compared with.
        source: what they translate; None = unknown.
    """

    systems: Sequence[Text]
    references: Sequence[Text]
    source: Text | None = None

    def check(self) -> None:
        """Raise DataError if there are no lines, or the numbers of lines differ."""
        others = [(one, "translation per reference") for one in self.references]
        others += [(self.source, "translation per source line")] if self.source else []
        for system in self.systems:
            for other, pairing in others:
                if len(system.lines) != len(other.lines):
                    raise DataError(
                        f"{system.name} has {len(system.lines)} lines and {other.name} has "
                        f"{len(other.lines)}; give one {pairing}, in the same order"
                    )
            if not system.lines:
                raise DataError(
                    f"{system.name} has no translations to score; give at least one line"
                )

    def only_system(self) -> Text:
        """Return the only system; ConfigError if there are several."""
        if len(self.systems) > 1:
            raise ConfigError(
                f"sentence scores need one system, not {len(self.systems)}; give one file "
                "[--sentence-level]"
            )
        return self.systems[0]

    def map(self, change: Callable[[str], str]) -> "Texts":
        """Apply a function to each line of systems and references."""
        return self._each(lambda lines: [change(line) for line in lines])

    def select(self, indices: Sequence[int]) -> "Texts":
        """Return the texts with only the lines of these indices."""

        def selected(lines: Sequence[str]) -> Sequence[str]:
            return [lines[index] for index in indices]

        source = self.source and replace(self.source, lines=selected(self.source.lines))
        return replace(self._each(selected), source=source)

    def _each(self, change: Callable[[Sequence[str]], Sequence[str]]) -> "Texts":
        def changed(texts: Sequence[Text]) -> list[Text]:
            return [replace(text, lines=change(text.lines)) for text in texts]

        return replace(self, systems=changed(self.systems), references=changed(self.references))


def read_text(path: Path) -> Text:
    """Read a file; its path becomes the text's name, with U+FFFD for what is not UTF-8.

    Raises:
        ConfigError, DataError: see `read_lines`.
    """
    name = os.fsencode(path).decode(errors="replace")
    return Text(name, list(read_lines(path)))


def read_translated(stream: BinaryIO, name: str) -> tuple[Text, Text]:
    """Read JSON lines of the schema `nmtkit-translations`; return sources and translations.

    Raises:
        DataError: see `read_translations`.
    """
    lines = list(read_translations(stream, name))
    return Text(name, [line.source for line in lines]), Text(
        name, [line.best.text for line in lines]
    )


def common_source(sources: Sequence[Text]) -> Text:
    """Return the only source of several systems; DataError if theirs differ."""
    first, *others = sources
    for other in others:
        lines = zip(first.lines, other.lines, strict=False)
        for number, (line, another) in enumerate(lines, 1):
            if line != another:
                raise DataError(
                    f"{other.name}:{number}: another source than {first.name}:{number}; give "
                    "translations of the same text"
                )
    return first


def read_test_set(test_set: str, language_pair: str) -> tuple[Text, list[Text]]:
    """Read the source and the references of a test set.

    sacreBLEU caches downloads in the folder of the environment variable SACREBLEU, by default
    ~/.sacrebleu.

    Args:
        test_set: sacreBLEU's name of the test set, such as wmt17.
        language_pair: such as en-de.

    Returns:
        The source, and one or more references with the same number of lines.

    Raises:
        ConfigError: the test set does not exist, or lacks these languages.
        ResourceError: it is not cached and cannot be downloaded.
    """
    from sacrebleu.dataset import DATASETS

    if test_set not in DATASETS:
        raise ConfigError(
            f"no test set {test_set!r}; {suggestion(test_set, DATASETS)} [metrics.test_set]"
        )
    known = DATASETS[test_set]
    if language_pair not in known.langpairs:
        raise ConfigError(
            f"test set {test_set} has no languages {language_pair!r}; "
            f"{suggestion(language_pair, known.langpairs)} [metrics.language_pair]"
        )
    try:
        paths = known.get_source_file(language_pair), *known.get_reference_files(language_pair)
    # sacreBLEU exits if a certificate or a check sum is wrong.
    except (OSError, SystemExit) as error:
        raise ResourceError(
            f"test set {test_set} cannot be downloaded ({error}); "
            "try again with a network, or give its files as --reference"
        ) from error
    source, *references = (replace(read_text(Path(path)), name=test_set) for path in paths)
    return source, references


_JOINED_BY_MARK = re.compile(r"@@(?: |$)")
_WORD_MARK = "\u2581"
"""SentencePiece's symbol for the space before a word."""
_FIRST = 1000
"""Lines at the beginning that show the script of a text."""
_MANY_LINKED = 50
"""Linked words among which one is the first of its line, surely."""
_MAX_SEPARATE = 0.5
"""A text with a larger share of lines with a space before punctuation is taken for tokenised."""


def input_warnings(texts: Texts, config: MetricsConfig) -> Iterator[str]:
    """Yield warnings about the translations of checked texts, to be scored with these settings."""
    reference = texts.references[0].lines
    is_general = tokenizer_of(config) == GENERAL_TOKENIZER
    if is_general and "bleu" in metric_names(config.metric) and is_spaceless(reference[:_FIRST]):
        yield (
            f"{texts.references[0].name} has no spaces between words, of which the tokenizer "
            f"{GENERAL_TOKENIZER} makes no words; give --language-pair, such as en-zh"
        )
    for system in texts.systems:
        yield from line_warnings(
            system,
            lambda line, _: bool(_JOINED_BY_MARK.search(line)),
            "'@@', a mark of subwords; join them before scoring: `sed -E 's/@@( |$)//g'`",
        )
        yield from line_warnings(
            system,
            lambda line, _: _WORD_MARK in line,
            "U+2581, SentencePiece's mark of words; decode the text before scoring",
        )
        if _is_tokenized(system.lines) and not _is_tokenized(reference):
            yield (
                f"{system.name} looks tokenised (spaces before punctuation) and the reference does "
                "not, which lowers scores; detokenise it: `sacremoses -l LANG detokenize`"
            )
        yield from untranslated_warnings(system, reference)


def untranslated_warnings(system: Text, reference: Sequence[str]) -> Iterator[str]:
    """Yield one warning if lines are blank whose reference is not, else nothing."""
    return line_warnings(
        system,
        lambda line, index: not line.strip() and bool(reference[index].strip()),
        "no translation, but the reference is not blank",
    )


def link_warnings(texts: Texts, gold_base: int) -> Iterator[str]:
    """Yield warnings about alignments that seem to count words from 1, and are read from 0.

    Raises:
        DataError: a line has something else than links, or one of a system has possible links.
    """
    for system in texts.systems:
        links_of_lines = system.each(parse_links)
        yield from _base_warnings(system, links_of_lines, "write links that count from 0")
        for number, links in enumerate(links_of_lines, 1):
            if links.possible != links.sure:
                raise DataError(
                    f"{system.name}:{number}: has possible links, as only gold alignments have; "
                    "give the alignments to score"
                )
    for reference in texts.references:
        links_of_lines = reference.each(lambda line: parse_links(line, gold_base))
        if gold_base == 0:
            yield from _base_warnings(reference, links_of_lines, "give --gold-base 1")


def _base_warnings(text: Text, links_of_lines: Sequence[Links], remedy: str) -> Iterator[str]:
    words = [word for links in links_of_lines for word in chain(*links.possible)]
    if len(words) >= _MANY_LINKED and min(words) > 0:
        yield (
            f"{text.name}: no link has a word 0, so it seems to count words from 1, which would "
            f"spoil the score; {remedy}"
        )


def line_warnings(
    system: Text, is_suspect: Callable[[str, int], bool], problem: str
) -> Iterator[str]:
    """Yield one warning with the first suspect line and the number of them, or nothing.

    Args:
        system: the checked text.
        is_suspect: decides by a line and its index, from 0.
        problem: noun phrase that continues "1 line has".
    """
    suspects = [index for index, line in enumerate(system.lines) if is_suspect(line, index)]
    if suspects:
        have = "1 line has" if len(suspects) == 1 else f"{len(suspects)} lines have"
        yield f"{system.name}:{suspects[0] + 1}: {have} {problem}"


def _is_tokenized(lines: Sequence[str]) -> bool:
    punctuated = [*filter(has_punctuation, lines)]
    return sum(map(is_tokenized, punctuated)) > _MAX_SEPARATE * len(punctuated)
