"""The translation of a text file into another file, and how it continues.

Settings, models, shortlist and input are recorded at the beginning, and compared when the same
command continues. Torch is loaded when all that can be checked before has been checked.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from nmtkit.config.problems import shown
from nmtkit.config.schema import TranslateRecipe, fields_of, values_of
from nmtkit.data import shortlist as shortlists
from nmtkit.decoding.answers import BatchResult, Chunk, Request
from nmtkit.decoding.formats import (
    INPUT_FORMATS,
    answered,
    make_writer,
    read_requests,
)
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import QUICK_ITEMS, Counting, WorkReporter
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.growing_file import GrowingFile, growing_file
from nmtkit.storage.manifest import Json, hash_of_content
from nmtkit.storage.model_description import hashes_of
from nmtkit.storage.run_folder import find_model
from nmtkit.text.lines import TextFacts, facts_of, numbered_chunks, open_bytes, raw_lines
from nmtkit.units import counted

FREE_SETTINGS = (
    # Equal up to rounding.
    *("device", "threads", "devices", "max_tokens", "batch_size"),
    *("compile", "stream", "shortlist"),  # without effect; recorded by its hash
)
"""Settings that may differ when a translation continues."""

_DIGITS = 12  # of a hash: enough to distinguish what a user may confuse


@dataclass(frozen=True)
class CorpusFiles:
    """The files of a translation.

    Attributes:
        input: the input, a file.
        output: the output, which appears when it is complete.
        shard: number of the shard to translate, from 1, and number of shards, which consist of
            whole chunks.
        overwrite: replace an existing output, at the end.
    """

    input: Path
    output: Path
    shard: tuple[int, int] = (1, 1)
    overwrite: bool = False


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
        DamagedError: a model or the record of what was translated is missing or damaged.
        LostRankError: a process died.
        ResourceError: no space, no permission, a failing disk.
    """
    folders = [find_model(path) for path in models]
    work = _work(folders, recipe, files.shard)
    with _opened(files) as text, growing_file(files.output, overwrite=files.overwrite) as file:
        facts = _read(text, files, recipe, reporter)
        lines = _lines_of(files, facts.num_lines, recipe.translation.chunk_lines)
        recipe = _with_precision(recipe, file.work)
        work["--precision"] = recipe.translation.precision
        work["the input"] = f"{counted(facts.num_lines, 'lines')}, {facts.sha256[:_DIGITS]}"
        _check_same(file, work)
        num_done = len(lines) if file.is_complete else file.resume(partial(_ends, recipe, lines))
        rest = lines[num_done:]
        if num_done:
            reporter.message(f"continuing after line {rest.start:,} of {lines.stop:,}")
        elif lines:
            what = f"translating {counted(len(lines), 'lines')} of {files.input}"
            reporter.message(f"{what}; if it is interrupted, the same command continues")
        if rest or file.work is None:
            from nmtkit.decoding.workers import open_translator

            translator = open_translator(folders, recipe, warn, reporter.message, reads_ahead=True)
            gc.freeze()  # torch's million objects stay to the end; scanning them halves the speed
            file.begin(work)
            text.seek(0)
            name, first = str(files.input), rest.start + 1
            requests = read_requests(text, recipe.output.input_format, name, warn, first)
            with reporter.counting("translated", "lines", len(lines), num_done) as counting:
                answer_all = translator.answer_all
                repair_counts = _write(answer_all, requests, rest, recipe, file, counting)
            if summary := translator.summarize(repair_counts):
                reporter.message(summary)
        file.publish()
    reporter.message(f"translated {counted(len(lines), 'lines')} into {files.output}")


def _opened(files: CorpusFiles) -> BinaryIO:
    """Open the input, a file that is not the output."""
    path, output = files.input, files.output
    with disk_errors(path):
        if path.exists() and not path.is_file():
            raise ConfigError(
                f"{path}: not a file, and only the translation of a file can be continued; give a "
                "file, or use standard input and output"
            )
        if path.exists() and output.exists() and path.samefile(output):
            raise ConfigError(f"{path}: is both input and output; give another --output")
    return open_bytes(path)


def _read(
    text: BinaryIO, files: CorpusFiles, recipe: TranslateRecipe, reporter: WorkReporter
) -> TextFacts:
    """Read the input once; DataError for a line that is too long or not of the format."""
    name, input_format = str(files.input), INPUT_FORMATS[recipe.output.input_format]

    def checked(lines: Iterable[bytes]) -> Iterator[bytes]:
        for number, line in enumerate(lines, 1):
            input_format.request(line.decode("utf-8", "replace"), f"{name}:{number}")
            yield line

    raw = raw_lines(text, name, input_format.max_bytes)
    with reporter.track(raw, "read", "lines", every=QUICK_ITEMS) as lines:
        return facts_of(checked(lines) if input_format.can_be_malformed else lines)


def _lines_of(files: CorpusFiles, num_lines: int, chunk_lines: int) -> range:
    """Return the indices of the lines of a shard, which consists of whole chunks."""
    number, count = files.shard
    num_chunks = max(1, -(-num_lines // chunk_lines))
    if count > num_chunks:
        raise ConfigError(
            f"--shard {number}/{count}: {files.input} has {num_chunks:,} chunks of {chunk_lines:,} "
            f"lines; give at most {num_chunks:,} shards, or smaller --chunk-lines"
        )
    begin, end = (num_chunks * place // count * chunk_lines for place in (number - 1, number))
    return range(num_lines)[begin:end]


def _with_precision(recipe: TranslateRecipe, begun: Mapping[str, Json] | None) -> TranslateRecipe:
    """Replace `--precision auto` by the precision of what has been translated, or of the device."""
    if recipe.translation.precision != "auto":
        return recipe
    if begun is not None:
        precision = str(begun["--precision"])
    else:
        from nmtkit.runtime.devices import precision_of_inference

        precision = precision_of_inference(recipe.runtime)
    return replace(recipe, translation=replace(recipe.translation, precision=precision))


def _work(
    models: Iterable[Path], recipe: TranslateRecipe, shard: tuple[int, int]
) -> dict[str, Json]:
    """Return what determines translations, except the input, by its name in messages."""
    shortlist = recipe.translation.shortlist
    if shortlist:
        manifest = read_manifest(Path(shortlist), shortlists.FORMAT, shortlists.VERSION)
        shortlist = hash_of_content(manifest)[:_DIGITS]
    return {
        "the model": " and ".join(hash_of_content(hashes_of(one))[:_DIGITS] for one in models),
        "--shortlist": shortlist,
        "--shard": "{}/{}".format(*shard),
        **_by_flag(values_of(recipe)),
    }


def _by_flag(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Return the settings that determine translations, by their flags."""
    fields = fields_of(TranslateRecipe)
    return {fields[name].flag: one for name, one in settings.items() if name not in FREE_SETTINGS}


def _check_same(file: GrowingFile, work: Mapping[str, Json]) -> None:
    """Raise ConfigError if a file was begun by another translation; it names every difference."""
    # A setting that the version which began it did not have is as by default.
    defaults = {name: one.default for name, one in fields_of(TranslateRecipe).items()}
    begun = {**_by_flag(defaults), **(work if file.work is None else file.work)}
    if begun["--on-too-long"] == "error":  # no line that was translated so far was too long
        begun["--on-too-long"] = work["--on-too-long"]
    if different := [name for name in work if begun.get(name) != work[name]]:
        found = (f"{one} was {shown(begun.get(one))}, now {shown(work[one])}" for one in different)
        raise ConfigError(
            f"{file.partial}: belongs to another translation: {'; '.join(found)}; run the "
            f"command that began it, or delete {file.partial.name} and {file.manifest.name}"
        )


def _ends(recipe: TranslateRecipe, lines: range, output: Iterable[bytes]) -> dict[int, int]:
    """Return the ends of whole chunks in lines of output: numbers of input lines, and of bytes."""
    ends = lines[:: recipe.translation.chunk_lines]
    found = answered(recipe.output, output, lines.start)
    return {end - lines.start: at for end, at in found if end in ends or end == lines.stop}


def _write(
    answer_all: Callable[[Iterable[Chunk]], Iterable[BatchResult]],
    requests: Iterable[Request],
    lines: range,
    recipe: TranslateRecipe,
    file: GrowingFile,
    counting: Counting,
) -> Counter[bool | None]:
    """Translate lines, and write each chunk when it is complete; return counts of repairs."""
    size, numbers, rows = recipe.translation.chunk_lines, iter(lines), list[str]()
    write, repair_counts = make_writer(recipe.output), Counter[bool | None]()
    chunks = numbered_chunks(islice(requests, len(lines)), size)
    for result in answer_all((lines.start + number, chunk) for number, chunk in chunks):
        for answer, number in zip(result.answers, numbers, strict=False):
            rows += write(answer, number)
            repair_counts[answer.translation.is_repaired] += 1
            if number + 1 in lines[::size] or number == lines[-1]:
                file.append(rows)
                rows.clear()
        counting.add(result.num_lines, result.num_tokens)
    if (missing := next(numbers, None)) is not None:
        raise DataError(
            f"line {missing + 1:,} of the input was there when this command began, and is not any "
            "more; restore it, and run the command again"
        )
    return repair_counts
