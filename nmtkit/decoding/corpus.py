"""The translation or alignment of text files into another file, and how it continues.

Settings, models, shortlist and input are recorded at the beginning, and compared when the same
command continues. Torch is loaded when all that can be checked before has been checked.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import accumulate, islice, starmap
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from nmtkit.config.model import LARGEST_DEPTH
from nmtkit.config.problems import shown
from nmtkit.config.schema import AlignRecipe, TranslateRecipe, fields_of, recipe_of, values_of
from nmtkit.data import shortlist as shortlists
from nmtkit.decoding.answers import Answer, Pair, Results, Tally
from nmtkit.decoding.formats import (
    INPUT_FORMATS,
    answered,
    make_links_writer,
    make_writer,
    read_requests,
    summarize,
)
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import QUICK_ITEMS, Counting, WorkReporter
from nmtkit.storage.disk import disk_errors
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.growing_file import GrowingFile, growing_file
from nmtkit.storage.json_data import encode
from nmtkit.storage.manifest import Json, hash_of_content
from nmtkit.storage.model_description import CALIBRATION, hashes_of, stored_aligning_attention
from nmtkit.storage.run_folder import find_model
from nmtkit.text.lines import (
    MAX_LINE_BYTES,
    decode_lines,
    facts_of,
    numbered_chunks,
    open_bytes,
    pair_lines,
    raw_lines,
    read_list,
)
from nmtkit.units import counted

FREE_SETTINGS = (
    # Equal up to rounding.
    *("device", "threads", "devices", "max_tokens", "batch_size"),
    *("stream", "shortlist"),  # without effect; recorded by its hash
)
"""Settings that may differ when the work continues."""

_DIGITS = 12  # of a hash: enough to distinguish what a user may confuse


AnyRecipe = TypeVar("AnyRecipe", TranslateRecipe, AlignRecipe)


@dataclass(frozen=True)
class CorpusFiles:
    """The files of a translation or an alignment.

    Attributes:
        inputs: the input, a file; of an alignment, those of source and target.
        output: the output, which appears when it is complete.
        shard: number of the shard to process, from 1, and number of shards, which consist of
            whole chunks.
        overwrite: replace an existing output, at the end.
    """

    inputs: tuple[Path, ...]
    output: Path
    shard: tuple[int, int] = (1, 1)
    overwrite: bool = False

    @property
    def input_name(self) -> str:
        """The name of the input in messages."""
        return " and ".join(map(str, self.inputs))


class Answerer(Protocol):
    """Answers chunks of requests: a translator, an aligner, or several in processes."""

    def answer_all(self, chunks: Iterable[tuple[int, Any]]) -> Iterator[Results[Any]]:
        """Answer chunks of lines; yield the result of each batch, with answers in order."""


@dataclass(frozen=True, kw_only=True)
class Task(Generic[AnyRecipe]):
    """What a command does with each line of its input.

    Attributes:
        noun, doing, done: names of the work in messages.
        recipe: all settings.
        chunk_lines: lines that are read ahead.
        given: what determines the output besides settings and input, by its name in messages.
        raw_lines: yields the lines of the input, and checks their format.
        requests: yields the requests of the input, given the number of the first one, from 1.
        open: loads the models, given the recipe with its precision.
        write: returns output lines of an answer, given its line's number from 0.
        ends: yields how far lines of output reach, given the first line's number; see `answered`.
        summary: returns a line about the answers so far; "" = nothing to report.
    """

    noun: str
    doing: str
    done: str
    recipe: AnyRecipe
    chunk_lines: int
    given: Mapping[str, Json]
    raw_lines: Callable[[], Iterator[bytes]]
    requests: Callable[[int], Iterator[Any]]
    open: Callable[[AnyRecipe], Answerer]
    write: Callable[[Any, int], list[str]]
    ends: Callable[[Iterable[bytes], int], Iterator[tuple[int, int]]]
    summary: Callable[[], str] = str


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
    given = _dependencies(folders, recipe)
    name, input_format = files.input_name, INPUT_FORMATS[recipe.output.input_format]
    write, tally = make_writer(recipe.output), Tally()
    translators = []

    def checked_lines(stream: BinaryIO) -> Iterator[bytes]:
        for number, line in enumerate(raw_lines(stream, name, input_format.max_bytes), 1):
            if input_format.can_be_malformed:
                input_format.request(line.decode("utf-8", "replace"), f"{name}:{number}")
            yield line

    def open_models(recipe: TranslateRecipe) -> Answerer:
        from nmtkit.decoding.workers import open_translator

        translator = open_translator(folders, recipe, warn, reporter.message, reads_ahead=True)
        translators.append(translator)
        return translator

    def count_and_write(answer: Answer, number: int) -> list[str]:
        tally.add(answer)
        return write(answer, number)

    with _opened(files) as (stream,):
        task = Task(
            noun="translation",
            doing="translating",
            done="translated",
            recipe=recipe,
            chunk_lines=recipe.translation.chunk_lines,
            given=given,
            raw_lines=partial(checked_lines, stream),
            requests=partial(read_requests, stream, recipe.output.input_format, name, warn),
            open=open_models,
            write=count_and_write,
            ends=partial(answered, recipe.output),
            summary=lambda: summarize(tally, translators[0].target_kind),
        )
        _write_file(task, [stream], files, reporter)


def _dependencies(folders: Sequence[Path], recipe: TranslateRecipe) -> dict[str, Json]:
    """Return what translations depend on besides their recipe and input, by name."""
    shortlist = recipe.translation.shortlist
    if shortlist:
        manifest = read_manifest(Path(shortlist), shortlists.FORMAT, shortlists.VERSION)
        shortlist = hash_of_content(manifest)[:_DIGITS]
    given: dict[str, Json] = {
        "the model": " and ".join(map(_hash, folders)),
        "--shortlist": shortlist,
    }
    if glossary := recipe.constraints.glossary:
        terms = "\n".join(read_list(Path(glossary)))
        given["--glossary"] = sha256(terms.encode()).hexdigest()[:_DIGITS]
    stored = [stored_aligning_attention(folder, LARGEST_DEPTH) for folder in folders]
    if (recipe.output.alignments or recipe.output.attention) and any(stored):
        given["the stored layer"] = " and ".join(one.place if one else "none" for one in stored)
    if recipe.output.quality and (calibration := CALIBRATION.read(folders[0])):
        given["the calibration"] = hash_of_content(calibration)[:_DIGITS]
    return given


def align_files(
    models: Sequence[Path],
    recipe: AlignRecipe,
    files: CorpusFiles,
    reporter: WorkReporter,
    warn: Callable[[str], None],
) -> None:
    """Align the lines of two files; write their links into a third; continue what was begun.

    Args:
        models: source to target; and target to source, if there are two.
        recipe, files, reporter, warn: see `translate_file`.

    Raises:
        NmtkitError: as `translate_file` and `load_aligner`.
    """
    folders = [find_model(path) for path in models]
    names = str(files.inputs[0]), str(files.inputs[1])
    given: dict[str, Json] = {"--reverse": ""}
    for name, folder in zip(("the model", "--reverse"), folders, strict=False):
        given[name] = _hash(folder)
        stored = stored_aligning_attention(folder, LARGEST_DEPTH)
        given[f"the stored layer of {name}"] = None if stored is None else stored.place

    def both_lines(streams: Sequence[BinaryIO]) -> Iterator[bytes]:
        source, target = map(raw_lines, streams, names, [MAX_LINE_BYTES] * 2)
        return (b"\t".join(pair) for pair in pair_lines(source, target, names))

    def requests(streams: Sequence[BinaryIO], first: int) -> Iterator[Any]:
        decode = partial(decode_lines, warn_of_invalid=warn, first_line=first)
        source, target = map(decode, streams, names)
        return starmap(Pair, pair_lines(source, target, names))

    def open_models(recipe: AlignRecipe) -> Answerer:
        from nmtkit.decoding.workers import open_aligner

        return open_aligner(folders, recipe, warn, reporter.message, reads_ahead=True)

    with _opened(files) as streams:
        task = Task(
            noun="alignment",
            doing="aligning",
            done="aligned",
            recipe=recipe,
            chunk_lines=recipe.aligning.chunk_lines,
            given=given,
            raw_lines=partial(both_lines, streams),
            requests=partial(requests, streams),
            open=open_models,
            write=make_links_writer(recipe.links),
            ends=lambda output, first: enumerate(accumulate(map(len, output), initial=0), first),
        )
        _write_file(task, streams, files, reporter)


def _write_file(
    task: Task[AnyRecipe], streams: Sequence[BinaryIO], files: CorpusFiles, reporter: WorkReporter
) -> None:
    """Write the output of a task, or continue it.

    Args:
        task: what to do.
        streams: the input, which can be read twice.
        files: input and output.
        reporter: takes messages and progress.
    """
    with growing_file(files.output, overwrite=files.overwrite) as file:
        with reporter.track(task.raw_lines(), "read", "lines", every=QUICK_ITEMS) as raw:
            facts = facts_of(raw)
        lines = _lines_of(files, facts.num_lines, task.chunk_lines)
        recipe = _with_precision(task.recipe, file.work)
        work = {
            **task.given,
            "--shard": "{}/{}".format(*files.shard),
            **_by_flag(recipe),
            **task.given,  # a hash in the place of a path
            "the input": f"{counted(facts.num_lines, 'lines')}, {facts.sha256[:_DIGITS]}",
        }
        _check_same(file, work, task)
        num_done = len(lines) if file.is_complete else file.resume(partial(_ends, task, lines))
        rest = lines[num_done:]
        if num_done:
            reporter.message(f"continuing after line {rest.start:,} of {lines.stop:,}")
        elif lines:
            what = f"{task.doing} {counted(len(lines), 'lines')} of {files.input_name}"
            reporter.message(f"{what}; if it is interrupted, the same command continues")
        if rest or file.work is None:
            answerer = task.open(recipe)
            gc.freeze()  # torch's million objects stay to the end; scanning them halves the speed
            file.begin(work)
            for stream in streams:
                stream.seek(0)
            with reporter.counting(task.done, "lines", len(lines), num_done) as counting:
                _write(task, answerer, rest, file, counting)
            if summary := task.summary():
                reporter.message(summary)
        file.publish()
    reporter.message(f"{task.done} {counted(len(lines), 'lines')} into {files.output}")


@contextmanager
def _opened(files: CorpusFiles) -> Iterator[list[BinaryIO]]:
    """Open the inputs, files that are not the output."""
    for path in files.inputs:
        with disk_errors(path):
            if path.exists() and not path.is_file():
                raise ConfigError(
                    f"{path}: not a file, and only the work on a file can be continued; give a "
                    "file, or use standard input and output"
                )
            if path.exists() and files.output.exists() and path.samefile(files.output):
                raise ConfigError(f"{path}: is both input and output; give another --output")
    with ExitStack() as opened:
        yield [opened.enter_context(open_bytes(path)) for path in files.inputs]


def _lines_of(files: CorpusFiles, num_lines: int, chunk_lines: int) -> range:
    """Return the indices of the lines of a shard, which consists of whole chunks."""
    number, count = files.shard
    num_chunks = max(1, -(-num_lines // chunk_lines))
    if count > num_chunks:
        raise ConfigError(
            f"--shard {number}/{count}: {files.input_name} has {num_chunks:,} chunks of "
            f"{chunk_lines:,} lines; give at most {num_chunks:,} shards, or smaller --chunk-lines"
        )
    begin, end = (num_chunks * place // count * chunk_lines for place in (number - 1, number))
    return range(num_lines)[begin:end]


def _with_precision(recipe: AnyRecipe, begun: Mapping[str, Json] | None) -> AnyRecipe:
    """Replace `--precision auto` by the precision of what has been written, or of the device."""
    values = values_of(recipe)
    if values["precision"] != "auto":
        return recipe
    if begun is not None:
        precision = str(begun["--precision"])
    else:
        from nmtkit.runtime.devices import precision_of_inference

        precision = precision_of_inference(recipe.runtime)
    return recipe_of(type(recipe), {**values, "precision": precision})


def _hash(folder: Path) -> str:
    """Return digits of the hash of a model's weights and codec."""
    return hash_of_content(hashes_of(folder))[:_DIGITS]


def _by_flag(recipe: TranslateRecipe | AlignRecipe) -> dict[str, Json]:
    """Return the settings that determine the output, by their flags."""
    fields = fields_of(type(recipe))
    values = values_of(recipe)
    values = {name: one for name, one in values.items() if name not in FREE_SETTINGS}
    return {fields[name].flag: encode(one) for name, one in values.items()}


def _check_same(file: GrowingFile, work: Mapping[str, Json], task: Task[AnyRecipe]) -> None:
    """Raise ConfigError if a file was begun by other work; it names every difference."""
    # A setting that the version which began it did not have is as by default.
    defaults = _by_flag(recipe_of(type(task.recipe), {}))
    begun = {**defaults, **(work if file.work is None else file.work)}
    if begun.get("--on-too-long") == "error":  # no line that was translated so far was too long
        begun["--on-too-long"] = work.get("--on-too-long")
    if different := [name for name in work if begun.get(name) != work[name]]:
        found = (f"{one} was {shown(begun.get(one))}, now {shown(work[one])}" for one in different)
        raise ConfigError(
            f"{file.partial}: belongs to another {task.noun}: {'; '.join(found)}; run the "
            f"command that began it, or delete {file.partial.name} and {file.manifest.name}"
        )


def _ends(task: Task[AnyRecipe], lines: range, output: Iterable[bytes]) -> dict[int, int]:
    """Return the ends of whole chunks in lines of output: numbers of input lines, and of bytes."""
    ends = lines[:: task.chunk_lines]
    found = task.ends(output, lines.start)
    return {end - lines.start: at for end, at in found if end in ends or end == lines.stop}


def _write(
    task: Task[AnyRecipe], answerer: Answerer, lines: range, file: GrowingFile, counting: Counting
) -> None:
    """Answer lines, and write each chunk when it is complete."""
    size, numbers, rows = task.chunk_lines, iter(lines), list[str]()
    requests = islice(task.requests(lines.start + 1), len(lines))
    chunks = numbered_chunks(requests, size)
    for result in answerer.answer_all((lines.start + number, chunk) for number, chunk in chunks):
        for answer, number in zip(result.answers, numbers, strict=False):
            rows += task.write(answer, number)
            if number + 1 in lines[::size] or number == lines[-1]:
                file.append(rows)
                rows.clear()
        counting.add(result.num_lines, result.num_tokens)
    if (missing := next(numbers, None)) is not None:
        raise DataError(
            f"line {missing + 1:,} of the input was there when this command began, and is not any "
            "more; restore it, and run the command again"
        )
