"""`nmtkit train`."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from nmtkit.config.schema import TrainRecipe, Values
from nmtkit.signals import ended_by_interrupt
from nmtkit_cli.command import DEBUG, FOLDER, PATH, refuse_without_effect
from nmtkit_cli.options import recipe_command
from nmtkit_cli.text_paths import read_dataset

EXAMPLES = """\
nmtkit train data/ --out run/ --preset base

# on all GPUs of this machine, or of several machines under torchrun
nmtkit train data/ --out run/ --preset big --devices auto
torchrun --nnodes 2 --nproc-per-node 8 ... --no-python nmtkit train data/ --out run/ --preset big

# continue with other data, such as a model from `nmtkit import`
nmtkit train mine/ --out run-2/ --from run/ --preset fine-tune --freeze embeddings

# all settings in a file, to edit and train from
nmtkit train --preset small --dropout 0.2 --print-config > recipe.toml
nmtkit train data/ --out run/ --config recipe.toml --max-minutes 30"""


def inherited(parameters: Mapping[str, Any]) -> Values:
    """Return the [model] settings of --from."""
    if parameters["parent"] is None:
        given = {"--update-vocabulary": parameters["update_vocabulary"]}
        refuse_without_effect(given, "without --from")
        return {}
    from nmtkit.storage.model_description import shape_from

    return vars(shape_from(parameters["parent"], parameters["out"]))


@recipe_command("train", TrainRecipe, EXAMPLES, rare=("update_vocabulary",), inherit=inherited)
@click.argument("data", type=PATH, callback=read_dataset, metavar="DATA")
@click.option("--out", type=FOLDER, metavar="FOLDER", required=True, help="Folder of the run.")
@click.option(
    "--from",
    "parent",
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="Begin with the weights and the shape of a model folder, run or checkpoint.",
)
@click.option(
    "--update-vocabulary",
    is_flag=True,
    help="With --from, allow data of another vocabulary or of other languages.",
)
def command(
    recipe: TrainRecipe, data: Path, out: Path, parent: Path | None, update_vocabulary: bool
) -> None:
    """Train a model on the dataset DATA, or resume training.

    Writes checkpoints to the folder of the run; each one is a complete model. The same command
    resumes a run that was stopped; settings that define the model cannot change then.
    """
    with begin_training(data, out) as report:
        from nmtkit.interop.conversion import describe_exports
        from nmtkit.training.initialization import Parent
        from nmtkit.training.launch import in_memory, launch, num_processes
        from nmtkit.training.run import train

    origin = Parent(parent, update_vocabulary) if parent else None
    if (processes := num_processes(recipe)) == 1:
        train(recipe, data, out, describe=describe_exports, parent=origin)
    else:
        context = click.get_current_context()
        settings = [f"--out={out}", f"--config={in_memory(recipe)}"]
        debug = [DEBUG] if context.obj else []
        flags = [*debug, *settings, *rank_flags(parent, update_vocabulary)]
        context.exit(launch(["train", *flags, "--", str(data)], processes, out, report))


command.handles_signals = True


@contextmanager
def begin_training(data: Path, out: Path) -> Iterator[Callable[[str], None]]:
    """Report what begins, once for all ranks; yield a function that reports a line.

    A dataset that cannot be opened is an error before torch is imported.

    Within the context, which imports torch, Ctrl-C ends the process immediately; but ranks end
    together, when they have joined each other.
    """
    from nmtkit.progress.reporter import make_reporter
    from nmtkit.runtime.environment import is_launched, speaks_for_all_ranks
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


def rank_flags(parent: Path | None, update_vocabulary: bool) -> list[str]:
    """Return the options for the ranks that a command starts."""
    return [f"--from={parent}", *["--update-vocabulary"] * update_vocabulary] if parent else []
