"""Steps of `nmtkit train`: its start, and a run that begins with another model's weights."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from nmtkit.config.fields import Values
from nmtkit.signals import ended_by_interrupt
from nmtkit_cli.command import refuse_without_effect

_OPTIONS = (
    click.option(
        "--from",
        "parent",
        type=click.Path(path_type=Path),
        metavar="MODEL",
        help="Begin with the weights and the shape of a model folder, run or checkpoint.",
    ),
    click.option(
        "--update-vocabulary",
        is_flag=True,
        help="With --from, allow data of another vocabulary or of other languages.",
    ),
)


@contextmanager
def begin_training(data: Path, out: Path) -> Iterator[Callable[[str], None]]:
    """Report what begins, once for all ranks; yield a function that reports a line.

    A dataset that cannot be opened is an error before torch is imported.

    Within the context, which imports torch, Ctrl-C ends the process immediately; but ranks end
    together, when they have joined each other.
    """
    from nmtkit.progress.reporter import make_reporter
    from nmtkit.runtime.parent_process import is_launched, speaks_for_all_ranks
    from nmtkit.storage.durable import read_manifest
    from nmtkit.storage.run_folder import RunFolder

    report = make_reporter(sys.stderr).message
    if speaks_for_all_ranks():
        is_resumed = RunFolder(out).newest_model() is not None
        report(f"{'continuing' if is_resumed else 'training'} {out} on {data} (loading PyTorch)")
    from nmtkit.data.binary import FORMAT, VERSION

    read_manifest(data, FORMAT, VERSION)
    with nullcontext() if is_launched() else ended_by_interrupt(_end):
        yield report


def _end() -> None:
    from nmtkit_cli.command_line import report

    os._exit(report(KeyboardInterrupt()))


def parent_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --from and --update-vocabulary to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def inherited(parameters: Mapping[str, Any]) -> Values:
    """Return the [model] settings of --from."""
    if parameters["parent"] is None:
        flags = ["--update-vocabulary"] if parameters["update_vocabulary"] else []
        refuse_without_effect(flags, "without --from")
        return {}
    from nmtkit.storage.model_description import shape_from

    return vars(shape_from(parameters["parent"], parameters["out"]))


def rank_flags(parent: Path | None, update_vocabulary: bool) -> list[str]:
    """Return the options for the ranks that a command starts."""
    return [f"--from={parent}", *["--update-vocabulary"] * update_vocabulary] if parent else []
