"""`nmtkit train`."""

import os
from pathlib import Path

import click

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps
from nmtkit_cli.command import FOLDER, Session
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import say

EXAMPLES = """\
nmtkit train data/ --out run/ --preset base

# on all GPUs of this machine, or of several machines under torchrun
nmtkit train data/ --out run/ --preset big --devices auto
torchrun --nnodes 2 --nproc-per-node 8 ... -m nmtkit_cli train data/ --out run/ --preset big

# all settings in a file, to edit and train from
nmtkit train --preset small --dropout 0.2 --print-config > recipe.toml
nmtkit train data/ --out run/ --config recipe.toml --max-minutes 30"""


@recipe_command("train", TrainRecipe, {}, EXAMPLES)
@click.argument("data", type=FOLDER, metavar="DATA", required=False)
@click.option("--out", type=FOLDER, metavar="FOLDER", help="Folder of the run.  [required]")
def command(recipe: TrainRecipe, data: Path, out: Path) -> None:
    """Train a model on the dataset DATA, or resume training.

    Writes checkpoints to the folder of the run; each one is a complete model. The same command
    resumes a run that was stopped; settings that define the model cannot change then.
    """
    from nmtkit.interop.conversion import describe_exports
    from nmtkit.training.launch import launch, num_processes
    from nmtkit.training.run import train

    if (processes := num_processes(recipe)) == 1:
        train(recipe, data, out, describe=describe_exports)
    else:
        context = click.get_current_context()
        debug = ["--debug"] if context.ensure_object(Session).shows_tracebacks else []
        settings = [f"--out={out}", f"--config={_in_memory(dumps(recipe))}"]
        context.exit(launch(["train", *debug, *settings, "--", str(data)], processes, out, say))


command.handles_signals = True


def _in_memory(text: str) -> str:
    """Return the path of a file in memory, for processes that this one starts.

    All ranks and restarts have the same recipe, even if --config is a pipe or a file that changes.
    """
    descriptor = os.memfd_create("recipe")  # until the process ends
    os.write(descriptor, text.encode())
    return f"/proc/{os.getpid()}/fd/{descriptor}"
