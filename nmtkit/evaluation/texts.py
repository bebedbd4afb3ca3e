"""The texts that are compared: translations of one or more systems, and references.

References may be those of a test set that sacreBLEU knows, and fetches when it is needed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError, DataError, ResourceError
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


def read_test_set(test_set: str, language_pair: str) -> list[Text]:
    """Read the references of a test set.

    sacreBLEU keeps what it has fetched in the folder that the environment's SACREBLEU names, or
    else in ~/.sacrebleu.

    Args:
        test_set: sacreBLEU's name of it, such as wmt17.
        language_pair: such as en-de.

    Returns:
        The references, one or more, each of as many lines.

    Raises:
        ConfigError: there is no such test set, or not for these languages.
        ResourceError: it is not here, and cannot be fetched.
    """
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
        paths: list[str] = DATASETS[test_set].get_reference_files(language_pair)
    # sacreBLEU exits where a certificate or a check sum is wrong.
    except (OSError, SystemExit) as error:
        raise ResourceError(
            f"test set {test_set} cannot be fetched ({error}); "
            "try again with a network, or give its files as --reference"
        ) from error
    return [replace(read_text(Path(path)), name=test_set) for path in paths]
