"""The translation of a text file into another file: its chunks, its shards, and how it continues.

Without torch: all of this is checked before models are loaded. The caller has the translator and
the format; this module passes on chunks of requests, and writes the lines of answers.
"""

import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.problems import shown
from nmtkit.config.schema import TranslateRecipe
from nmtkit.data import shortlist as shortlists
from nmtkit.data.binary import Part
from nmtkit.errors import ConfigError, DataError
from nmtkit.signals import block_stop_signals
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.growing_file import GrowingFile
from nmtkit.storage.manifest import Json, hash_of_content
from nmtkit.storage.model_description import hashes_of
from nmtkit.text.lines import LINE_BYTES, Item, numbered_chunks, open_bytes, read_facts

if TYPE_CHECKING:
    from nmtkit.decoding.requests import Answer

FORMAT = "nmtkit-partial-translation"
VERSION = 1

FREE_SETTINGS = (
    *("device", "threads", "devices", "max_tokens", "batch_size"),  # equal up to rounding
    *("stream", "shortlist"),  # without effect; recorded by its hash
)
"""Settings that may differ when a translation continues."""

_COMPRESSION_LEVEL = 6


@dataclass(frozen=True)
class Work:
    """The lines of a corpus, or of a shard of it, and all that determines their translations.

    Attributes:
        input: name of the input.
        num_input_lines: number of lines of the whole input.
        first_line: number of the first line to translate, from 1.
        num_lines: number of lines to translate.
        chunk_lines: lines of each chunk but the last; shards consist of whole chunks.
        identity: hashes and settings by which the same work is recognised, as in the manifest.
    """

    input: str
    num_input_lines: int
    first_line: int
    num_lines: int
    chunk_lines: int
    identity: Mapping[str, Json]


def open_input(path: Path, output: Path) -> BinaryIO:
    """Open the input for reading, plain or compressed.

    Raises:
        ConfigError: it is missing, is not a file, or is the output too.
    """
    with disk_errors(path):
        if path.exists() and not path.is_file():
            raise ConfigError(
                f"{path}: not a file, and only the translation of a file can be continued; give a "
                "file, or use standard input and output"
            )
    with disk_errors(output):
        if path.exists() and output.exists() and path.samefile(output):
            raise ConfigError(f"{path}: is both input and output; give another --output")
    return open_bytes(path)


def plan(
    models: Sequence[Path], recipe: TranslateRecipe, path: Path, text: BinaryIO, part: Part
) -> Work:
    """Read the input once, and return the work that a part of it is.

    Args:
        models: model folders.
        recipe: settings of the translation.
        path: the input, for messages.
        text: its content.
        part: the shard to translate: its number and the number of shards.

    Raises:
        ConfigError: there are more shards than chunks.
        DataError: the input has a line that is too long, or is a damaged gzip file.
        DamagedError: a model or the shortlist is missing or damaged.
    """
    size = recipe.translation.chunk_lines
    identity: dict[str, Json] = {
        "models": [hashes_of(folder) for folder in models],
        "shortlist": _shortlist_hash(recipe.translation.shortlist),
        "shard": f"{part.number}/{part.count}",
        "settings": {
            name: value for name, value in values_of(recipe).items() if name not in FREE_SETTINGS
        },
    }
    facts = read_facts(text, str(path), LINE_BYTES[recipe.output.input_format])
    num_chunks = max(1, -(-facts.num_lines // size))
    if part.count > num_chunks:
        raise ConfigError(
            f"--shard {part.number}/{part.count}: {path} has {num_chunks:,} chunks of {size:,} "
            f"lines; give at most {num_chunks:,} shards, or smaller --chunk-lines"
        )
    begin, end = (
        min(num_chunks * number // part.count * size, facts.num_lines)
        for number in (part.number - 1, part.number)
    )
    return Work(
        input=str(path),
        num_input_lines=facts.num_lines,
        first_line=begin + 1,
        num_lines=end - begin,
        chunk_lines=size,
        identity={**identity, "input": vars(facts)},
    )


class CorpusTranslation:
    """The translation of a corpus into a file, new or continued.

    Attributes:
        repair_counts: number of translations for each value of `Translation.is_repaired`; those
            of an earlier call have no None.
    """

    def __init__(self, work: Work, file: GrowingFile) -> None:
        """Find out how much of the work has been done.

        Raises:
            ConfigError: the file holds the result of other work.
            DamagedError: the file is damaged.
        """
        self.repair_counts: Counter[bool | None] = Counter()
        self._work, self._file = work, file
        self._num_done = 0
        self._lines: list[str] = []
        self._num_answers = 0
        if file.fields is not None:
            _check_same(file, work)
            file.resume()
            done = file.fields["done"]
            self._num_done = done["chunks"]
            self.repair_counts.update({True: done["repaired"], False: done["not_repaired"]})

    @property
    def num_lines(self) -> int:
        """Number of lines to translate in all."""
        return self._work.num_lines

    @property
    def num_lines_done(self) -> int:
        """Number of lines whose translations have been recorded."""
        return min(self._num_done * self._work.chunk_lines, self._work.num_lines)

    @property
    def next_line(self) -> int:
        """Number of the first line without a recorded translation, from 1."""
        return self._work.first_line + self.num_lines_done

    def begin(self) -> None:
        """Create the files, unless they have been created before."""
        if self._file.fields is None:
            self._file.begin(self._fields())

    def chunks(self, items: Iterable[Item]) -> Iterator[tuple[int, list[Item]]]:
        """Yield the chunks to translate, each with the number of its first line.

        Args:
            items: what the lines of the input are read as, from `next_line` on.

        Raises:
            DataError: the input has fewer lines than before.
        """
        first = self.next_line
        num_missing = self._work.num_lines - self.num_lines_done
        wanted = islice(items, num_missing)
        for number, chunk in numbered_chunks(wanted, self._work.chunk_lines):
            yield first + number - 1, chunk
            num_missing -= len(chunk)
        if num_missing:
            raise DataError(
                f"{self._work.input}: has fewer lines than the {self._work.num_input_lines:,} that "
                "it had when this command began; restore it, and run the command again"
            )

    def add(self, answers: "Sequence[Answer]", write: "Callable[[Answer, int], list[str]]") -> None:
        """Take answers in order; each complete chunk is written.

        Args:
            answers: the next answers, all of one chunk.
            write: turns an answer, and its line's number from 0, into lines of output.
        """
        first = self.next_line - 1 + self._num_answers
        for number, answer in enumerate(answers, first):
            self._lines += write(answer, number)
        self._num_answers += len(answers)
        self.repair_counts.update(answer.translations[0].is_repaired for answer in answers)
        num_left = self._work.num_lines - self.num_lines_done
        if self._num_answers and self._num_answers == min(num_left, self._work.chunk_lines):
            self._write_chunk()

    def finish(self) -> None:
        """Let the output appear under its name."""
        if not self._work.num_lines and not self._num_done:
            self.begin()
            self._write_chunk()
        assert self.num_lines_done == self.num_lines, self.num_lines_done
        self._file.publish()

    def _write_chunk(self) -> None:
        """Write the lines of a chunk, which are a gzip member of its own in a compressed file."""
        data = "".join(f"{line}\n" for line in self._lines).encode()
        if self._file.final.suffix == ".gz":
            data = gzip.compress(data, _COMPRESSION_LEVEL, mtime=0)
        self._lines, self._num_answers = [], 0
        with block_stop_signals():  # `next_line` is the first one that is not recorded
            self._file.append(data, self._fields(self._num_done + 1))
            self._num_done += 1

    def _fields(self, num_chunks: int = 0) -> dict[str, Json]:
        done: dict[str, Json] = {
            "chunks": num_chunks,
            "lines": min(num_chunks * self._work.chunk_lines, self._work.num_lines),
            "repaired": self.repair_counts[True],
            "not_repaired": self.repair_counts[False],
        }
        return {"work": self._work.identity, "done": done}


def _shortlist_hash(folder: str) -> str | None:
    if not folder:
        return None
    return hash_of_content(read_manifest(Path(folder), shortlists.FORMAT, shortlists.VERSION))


def _check_same(file: GrowingFile, work: Work) -> None:
    """Raise ConfigError if a file was begun by other work; it names every difference."""
    assert file.fields is not None, "nothing has been written"
    differences = [*_differences(file.fields["work"], work.identity)]
    if differences:
        raise ConfigError(
            f"{file.partial}: belongs to another translation: {'; '.join(differences)}; run the "
            f"command that began it, or delete {file.partial.name} and {file.manifest.name}"
        )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two works, in words."""
    if before["models"] != now["models"]:
        yield f"the model is another one ({_names(before['models'])}, now {_names(now['models'])})"
    if before["shortlist"] != now["shortlist"]:
        yield "--shortlist is another one"
    if before["shard"] != now["shard"]:
        yield f"--shard was {before['shard']}, now {now['shard']}"
    fields = fields_of(TranslateRecipe)
    for name, value in now["settings"].items():
        # A setting of a later version had the effect of its default.
        old = before["settings"].get(name, fields[name].default)
        # No line that was translated so far was too long.
        is_harmless = name == "on_too_long" and old == "error"
        if old != value and not is_harmless:
            yield f"--{name.replace('_', '-')} was {shown(old)}, now {shown(value)}"
    for name in before["settings"].keys() - fields.keys():
        yield f"--{name.replace('_', '-')} is a setting of a later nmtkit"
    if before["input"] != now["input"]:
        old_lines, num_lines = before["input"]["num_lines"], now["input"]["num_lines"]
        if old_lines != num_lines:
            yield f"the input has {num_lines:,} lines, and had {old_lines:,}"
        else:
            yield "the input has other lines"


def _names(models: Sequence[Mapping[str, str]]) -> str:
    """Return the beginnings of the models' hashes."""
    return " and ".join(model["weights"][:8] for model in models)
