"""Texts to score: translations of one or more systems, and references from files or test sets.

sacreBLEU knows the test sets and downloads them at first use.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError, DataError, ResourceError
from nmtkit.text.lines import read_lines
from nmtkit.text.translations import read_translations

if TYPE_CHECKING:
    from sacrebleu.dataset.base import Dataset


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


def read_test_set(test_set: str, language_pair: str) -> list[Text]:
    """Read the references of a test set.

    sacreBLEU caches downloads in the folder of the environment variable SACREBLEU, by default
    ~/.sacrebleu.

    Args:
        test_set: sacreBLEU's name of the test set, such as wmt17.
        language_pair: such as en-de.

    Returns:
        One or more references with the same number of lines.

    Raises:
        ConfigError: the test set does not exist, or lacks these languages.
        ResourceError: it is not cached and cannot be downloaded.
    """
    return _read_parts(test_set, language_pair, lambda known, pair: known.get_reference_files(pair))


def read_test_source(test_set: str, language_pair: str) -> Text:
    """Read the source of a test set; see `read_test_set`."""
    (source,) = _read_parts(
        test_set, language_pair, lambda known, pair: [known.get_source_file(pair)]
    )
    return source


def _read_parts(
    test_set: str, language_pair: str, files_of: "Callable[[Dataset, str], list[str]]"
) -> list[Text]:
    """Read files of a test set, given a function from sacreBLEU's object and the languages."""
    from sacrebleu.dataset import DATASETS

    if test_set not in DATASETS:
        raise ConfigError(
            f"no test set {test_set!r}; {suggestion(test_set, DATASETS)} [metrics.test_set]"
        )
    pairs = DATASETS[test_set].langpairs
    if language_pair not in pairs:
        raise ConfigError(
            f"test set {test_set} has no languages {language_pair!r}; "
            f"{suggestion(language_pair, pairs)} [metrics.language_pair]"
        )
    try:
        paths = files_of(DATASETS[test_set], language_pair)
    # sacreBLEU exits if a certificate or a check sum is wrong.
    except (OSError, SystemExit) as error:
        raise ResourceError(
            f"test set {test_set} cannot be downloaded ({error}); "
            "try again with a network, or give its files as --reference"
        ) from error
    return [replace(read_text(Path(path)), name=test_set) for path in paths]
