"""The plan of a translation from file to file, and what makes two of them the same.

Without torch: all of this is checked before models are loaded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.problems import shown
from nmtkit.config.schema import TranslateRecipe
from nmtkit.data import shortlist as shortlists
from nmtkit.decoding.input_formats import INPUT_FORMATS, InputFormat
from nmtkit.errors import ConfigError
from nmtkit.progress.counting import QUICK_ITEMS, WorkReporter
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.manifest import Json, hash_of_content
from nmtkit.text.lines import TextFacts, facts_of, open_bytes, raw_lines

FREE_SETTINGS = (
    # Equal up to rounding.
    *("device", "threads", "devices", "max_tokens", "batch_size"),
    *("compile", "stream", "shortlist"),  # without effect; recorded by its hash
)
"""Settings that may differ when a translation continues."""


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


@dataclass(frozen=True)
class Plan:
    """The lines of a corpus, or of a shard of it, and all that determines their translations.

    Attributes:
        input: name of the input.
        text: number and hash of its lines.
        first_line: number of the first line to translate, from 1.
        num_lines: number of lines to translate.
        shard: number of the shard, from 1, and number of shards.
        recipe: settings.
        models: hashes of the models.
        shortlist: hash of the shortlist; None = none.
    """

    input: str
    text: TextFacts
    first_line: int
    num_lines: int
    shard: tuple[int, int]
    recipe: TranslateRecipe
    models: Sequence[Mapping[str, Json]]
    shortlist: str | None

    @property
    def last_line(self) -> int:
        """Number of the last line to translate; one less than the first if there is none."""
        return self.first_line + self.num_lines - 1

    @property
    def chunk_lines(self) -> int:
        """Lines of each chunk but the last."""
        return self.recipe.translation.chunk_lines

    def determined_by(self) -> dict[str, Json]:
        """Return what the output is determined by, as fields of a manifest."""
        return {
            "models": [{**model} for model in self.models],
            "shortlist": self.shortlist,
            "shard": "{}/{}".format(*self.shard),
            "settings": {
                name: value
                for name, value in values_of(self.recipe).items()
                if name not in FREE_SETTINGS
            },
            "input": vars(self.text),
        }


def open_input(files: CorpusFiles) -> BinaryIO:
    """Open the input for reading, plain or compressed.

    Raises:
        ConfigError: it is missing, is not a file, or is the output too.
    """
    path, output = files.input, files.output
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


def read_input(
    text: BinaryIO, files: CorpusFiles, recipe: TranslateRecipe, reporter: WorkReporter
) -> TextFacts:
    """Read the input once, and check its format.

    Raises:
        DataError: a line is too long, or is not of the format; a damaged gzip file.
    """
    name = str(files.input)
    input_format = INPUT_FORMATS[recipe.output.input_format]
    raw = raw_lines(text, name, input_format.max_bytes)
    with reporter.track(raw, "read", "lines", every=QUICK_ITEMS) as lines:
        return facts_of(_checked(lines, input_format, name))


def _checked(lines: Iterable[bytes], input_format: InputFormat, name: str) -> Iterable[bytes]:
    """Return the same lines; DataError, when it is read, for one that is not of the format."""
    if not input_format.can_be_malformed:
        return lines

    def check() -> Iterator[bytes]:
        for number, line in enumerate(lines, 1):
            input_format.request(line.decode("utf-8", "replace"), f"{name}:{number}")
            yield line

    return check()


def plan_of(
    models: Sequence[Mapping[str, Json]],
    shortlist: str | None,
    recipe: TranslateRecipe,
    files: CorpusFiles,
    facts: TextFacts,
) -> Plan:
    """Return the plan of a translation.

    Args:
        models: hashes of the models.
        shortlist: hash of the shortlist; None = none.
        recipe: settings of the translation.
        files: input and output.
        facts: what `read_input` returned.

    Raises:
        ConfigError: there are more shards than chunks.
    """
    size, (number, count) = recipe.translation.chunk_lines, files.shard
    num_chunks = max(1, -(-facts.num_lines // size))
    if count > num_chunks:
        raise ConfigError(
            f"--shard {number}/{count}: {files.input} has {num_chunks:,} chunks of {size:,} "
            f"lines; give at most {num_chunks:,} shards, or smaller --chunk-lines"
        )
    begin, end = (
        min(num_chunks * place // count * size, facts.num_lines) for place in (number - 1, number)
    )
    return Plan(
        input=str(files.input),
        text=facts,
        first_line=begin + 1,
        num_lines=end - begin,
        shard=files.shard,
        recipe=recipe,
        models=models,
        shortlist=shortlist,
    )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two translations, in words."""
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


def shortlist_hash(folder: str) -> str | None:
    """Return the hash of a shortlist, None for ""; DamagedError if it is missing or damaged."""
    if not folder:
        return None
    return hash_of_content(read_manifest(Path(folder), shortlists.FORMAT, shortlists.VERSION))


def _names(models: Sequence[Mapping[str, str]]) -> str:
    """Return the beginnings of the models' hashes."""
    return " and ".join(model["weights"][:8] for model in models)
