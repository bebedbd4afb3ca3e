"""Paths of text and datasets on the command line, and what to write instead of wrong ones."""

import glob
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

import click

from nmtkit.errors import DamagedError

_CODEC = "codec"
"""Folder of a dataset, which is left where its manifest is lost."""

_GIVE_ITS_DATASET = "give the dataset that it was trained on"


def read_dataset(
    context: click.Context, _argument: click.Parameter, path: Path | None
) -> Path | None:
    """Check that a path is not text, a run, a model, or another folder; it may be missing."""
    if path is None:
        return None
    with suppress(OSError):  # the library reports a path that cannot be read
        problem = _why_no_dataset(path, is_trained_on=context.command.name == "train")
        if problem:
            raise click.BadParameter(f"{path} is {problem}")
    return path


def _why_no_dataset(path: Path, *, is_trained_on: bool) -> str:
    """Return what a path is instead of a dataset, and what to write; "" if it may be one."""
    from nmtkit.storage import model_description
    from nmtkit.storage.manifest import MANIFEST, load
    from nmtkit.storage.run_folder import is_run

    if not path.exists():
        files = filter(Path.is_file, path.parent.glob(f"{glob.escape(path.name)}.*"))
        is_prefix = len([*files]) > 1  # one per language
        return (
            f"text, not a dataset; `nmtkit preprocess --train {quote(str(path))}` makes one"
            * is_prefix
        )
    if path.is_file():
        prefix = path.with_name(path.name.removesuffix(".gz")).with_suffix("")
        return f"text, not a dataset; `nmtkit preprocess --train {quote(str(prefix))}` makes one"
    if is_run(path):
        remedy = f"to resume it, give its dataset and --out {quote(str(path))}"
        return f"a run, not a dataset; {remedy if is_trained_on else _GIVE_ITS_DATASET}"
    if not (path / MANIFEST).exists() and not (path / _CODEC).exists():
        return f"not a dataset, it has no {MANIFEST}; `nmtkit preprocess --out` makes one from text"
    with suppress(DamagedError):  # the library reports it
        if load(path).get("format") == model_description.FORMAT:
            remedy = f"give the dataset, and --from {quote(str(path))} to begin with it"
            return f"a model, not a dataset; {remedy if is_trained_on else _GIVE_ITS_DATASET}"
    return ""


def prefix_of(arguments: Sequence[str]) -> str:
    """Return what to write instead of the names of text files."""
    names = [name.removesuffix(".gz").rpartition(".") for name in arguments]
    prefixes = {prefix for prefix, _, _ in names}
    if len(names) == 2 and len(prefixes) == 1 and "" not in prefixes:
        (source, target), (prefix,) = (name[2] for name in names), prefixes
        options = f"-s {source} -t {target} --train {quote(prefix)}"
        return f"give the common prefix of the files: {options}"
    return "give the common prefix of the two files to --train, and their suffixes to -s and -t"
