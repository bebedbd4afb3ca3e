"""The texts that are compared: translations of one or more systems, and references."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from nmtkit.errors import ConfigError, DataError
from nmtkit.text.lines import read_lines


@dataclass(frozen=True)
class Text:
    """The lines of a system or of a reference.

    Attributes:
        name: what messages and tables call it.
        lines: one a sentence.
    """

    name: str
    lines: Sequence[str]

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Have errors in what is read say that it was this text."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{self.name}: {error}") from error


@dataclass(frozen=True)
class Texts:
    """Systems and what they are compared with: one or more of each, equally many lines in all."""

    systems: Sequence[Text]
    references: Sequence[Text]

    def check(self) -> None:
        """Raise DataError unless there are lines, and equally many."""
        for system in self.systems:
            for reference in self.references:
                if len(system.lines) != len(reference.lines):
                    raise DataError(
                        f"{system.name} has {len(system.lines)} lines and {reference.name} has "
                        f"{len(reference.lines)}; give one translation a reference, "
                        "in the same order"
                    )
            if not system.lines:
                raise DataError(f"{system.name} has no translations to score; give a line or more")

    def only_system(self) -> Text:
        """Return the system of scores of single sentences; ConfigError if there are several."""
        if len(self.systems) > 1:
            raise ConfigError(
                "sentence scores are of one system, and there are several; give one file "
                "[--sentence]"
            )
        return self.systems[0]

    def map(self, change: Callable[[str], str]) -> "Texts":
        """Change each line."""
        return self._each(lambda lines: [change(line) for line in lines])

    def select(self, indices: Sequence[int]) -> "Texts":
        """Return some of the lines."""
        return self._each(lambda lines: [lines[index] for index in indices])

    def _each(self, change: Callable[[Sequence[str]], Sequence[str]]) -> "Texts":
        def changed(texts: Sequence[Text]) -> list[Text]:
            return [replace(text, lines=change(text.lines)) for text in texts]

        return Texts(changed(self.systems), changed(self.references))


def read_text(path: Path) -> Text:
    """Read a file, which is called by its path.

    Raises:
        ConfigError, DataError: see `read_lines`.
    """
    return Text(str(path), list(read_lines(path)))
