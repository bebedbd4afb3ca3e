"""The translation of a text file into another file, and how it continues.

Without torch, until all that can be checked before has been checked.
"""

import gc
import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.corpus_plan import (
    CorpusFiles,
    Plan,
    differences,
    open_input,
    plan_of,
    read_input,
    shortlist_hash,
)
from nmtkit.decoding.input_formats import read_requests
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import WorkReporter
from nmtkit.signals import EndedBySignal, block_stop_signals
from nmtkit.storage.growing_file import GrowingFile, growing_file
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import hashes_of
from nmtkit.storage.model_path import find_model
from nmtkit.text.lines import Item, numbered_chunks
from nmtkit.units import counted

if TYPE_CHECKING:
    from nmtkit.decoding.answers import Answer

FORMAT = "nmtkit-partial-translation"
VERSION = 1

_COMPRESSION_LEVEL = 6


def translate_file(
    models: Sequence[Path],
    recipe: TranslateRecipe,
    files: CorpusFiles,
    reporter: WorkReporter,
    warn: Callable[[str], None],
) -> None:
    """Translate a file, or a shard of it, into another one; continue what was begun before.

    Args:
        models: paths of models, checkpoints or runs; several are an ensemble.
        recipe: settings.
        files: input and output.
        reporter: takes messages and progress.
        warn: takes one-line warnings.

    Raises:
        ConfigError: input or output cannot be used, another translation has been begun there, or
            there are more shards than chunks; as `load_translator`.
        DataError: the input is malformed, or has lost lines since it was read first.
        DamagedError: a model or what was translated before is missing or damaged.
        LostRankError: a process died.
        ResourceError: no space, no permission, a failing disk.
    """
    folders = [find_model(path) for path in models]
    hashes = [hashes_of(folder) for folder in folders]
    shortlist = shortlist_hash(recipe.translation.shortlist)
    with (
        open_input(files) as text,
        growing_file(files.output, FORMAT, VERSION, overwrite=files.overwrite) as file,
    ):
        facts = read_input(text, files, recipe, reporter)
        plan = plan_of(hashes, shortlist, recipe, files, facts)
        if plan.num_lines and file.fields is None:
            reporter.message(f"translating {counted(plan.num_lines, 'lines')} of {files.input}")
        corpus = CorpusTranslation(replace(plan, recipe=_with_precision(recipe, file)), file)
        if corpus.num_lines_done:
            reporter.message(
                f"continuing after line {corpus.next_line - 1:,} of {plan.last_line:,}"
            )
        try:
            if corpus.num_lines_done < corpus.num_lines:
                _translate_rest(folders, corpus, text, reporter, warn)
        except KeyboardInterrupt as stop:
            if corpus.num_lines_done and not isinstance(stop, EndedBySignal):
                reporter.message(f"the same command continues after line {corpus.next_line - 1:,}")
            raise
        corpus.finish()
    reporter.message(f"translated {counted(corpus.num_lines, 'lines')} into {files.output}")


def _translate_rest(
    models: Sequence[Path],
    corpus: "CorpusTranslation",
    text: BinaryIO,
    reporter: WorkReporter,
    warn: Callable[[str], None],
) -> None:
    """Translate the lines of a corpus that have no translation yet."""
    from nmtkit.decoding.output_formats import make_writer
    from nmtkit.decoding.workers import open_translator

    recipe = corpus.plan.recipe
    translator = open_translator(models, recipe, warn, reporter.message, reads_ahead=True)
    write = make_writer(recipe.output)
    gc.freeze()  # torch's million objects stay to the end; scanning them halves the speed of lines
    corpus.begin()
    text.seek(0)
    requests = read_requests(
        text, recipe.output.input_format, corpus.plan.input, warn, corpus.next_line
    )
    total, done = corpus.num_lines, corpus.num_lines_done
    with reporter.counting("translated", "lines", total, done) as counting:
        for result in translator.answer_all(corpus.chunks(requests)):
            corpus.add(result.answers, write)
            counting.add(result.num_lines, result.num_tokens)
    if summary := translator.summarize(corpus.repair_counts):
        reporter.message(summary)


def _with_precision(recipe: TranslateRecipe, file: GrowingFile) -> TranslateRecipe:
    """Replace `--precision auto` by the precision of what has been translated, or of the device."""
    if recipe.translation.precision != "auto":
        return recipe
    if file.fields is not None:
        precision = file.fields["work"]["settings"]["precision"]
    else:
        from nmtkit.runtime.devices import precision_of_inference

        precision = precision_of_inference(recipe.runtime)
    return replace(recipe, translation=replace(recipe.translation, precision=precision))


class CorpusTranslation:
    """The translation of a corpus into a file, new or continued.

    Attributes:
        plan: what is translated.
        repair_counts: number of translations for each value of `Translation.is_repaired`; those
            of an earlier call have no None.
    """

    def __init__(self, plan: Plan, file: GrowingFile) -> None:
        """Find out how much has been done.

        Raises:
            ConfigError: the file holds another translation.
            DamagedError: the file is damaged.
        """
        self.repair_counts: Counter[bool | None] = Counter()
        self.plan, self._file = plan, file
        self._num_done = 0
        self._lines: list[str] = []
        self._num_answers = 0
        if file.fields is not None:
            _check_same(file, plan)
            file.resume()
            done = file.fields["done"]
            self._num_done = done["chunks"]
            self.repair_counts.update({True: done["repaired"], False: done["not_repaired"]})

    @property
    def num_lines(self) -> int:
        """Number of lines to translate in all."""
        return self.plan.num_lines

    @property
    def num_lines_done(self) -> int:
        """Number of lines whose translations have been recorded."""
        return min(self._num_done * self.plan.chunk_lines, self.plan.num_lines)

    @property
    def next_line(self) -> int:
        """Number of the first line without a recorded translation, from 1."""
        return self.plan.first_line + self.num_lines_done

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
        num_missing = self.plan.num_lines - self.num_lines_done
        wanted = islice(items, num_missing)
        for number, chunk in numbered_chunks(wanted, self.plan.chunk_lines):
            yield first + number - 1, chunk
            num_missing -= len(chunk)
        if num_missing:
            raise DataError(
                f"{self.plan.input}: has fewer lines than the {self.plan.text.num_lines:,} that "
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
        num_left = self.plan.num_lines - self.num_lines_done
        if self._num_answers and self._num_answers == min(num_left, self.plan.chunk_lines):
            self._write_chunk()

    def finish(self) -> None:
        """Let the output appear under its name."""
        if not self.plan.num_lines and not self._num_done:
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
            "lines": min(num_chunks * self.plan.chunk_lines, self.plan.num_lines),
            "repaired": self.repair_counts[True],
            "not_repaired": self.repair_counts[False],
        }
        return {"work": self.plan.determined_by(), "done": done}


def _check_same(file: GrowingFile, plan: Plan) -> None:
    """Raise ConfigError if a file was begun by another translation; it names every difference."""
    assert file.fields is not None, "nothing has been written"
    if found := [*differences(file.fields["work"], plan.determined_by())]:
        raise ConfigError(
            f"{file.partial}: belongs to another translation: {'; '.join(found)}; run the "
            f"command that began it, or delete {file.partial.name} and {file.manifest.name}"
        )
