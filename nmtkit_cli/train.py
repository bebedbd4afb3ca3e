"""`nmtkit train`."""

from pathlib import Path

import click

from nmtkit.config.schema import TrainRecipe
from nmtkit_cli.command import FOLDER, PATH, Session
from nmtkit_cli.options import recipe_command
from nmtkit_cli.text_paths import read_dataset
from nmtkit_cli.training import begin_training, inherited, parent_options, rank_flags

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


@recipe_command("train", TrainRecipe, {}, EXAMPLES, optional=("parent",), inherit=inherited)
@click.argument("data", type=PATH, callback=read_dataset, metavar="DATA", required=False)
@click.option("--out", type=FOLDER, metavar="FOLDER", help="Folder of the run.  [required]")
@parent_options
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
        debug = ["--debug"] if context.ensure_object(Session).shows_tracebacks else []
        settings = [f"--out={out}", f"--config={in_memory(recipe)}"]
        flags = [*debug, *settings, *rank_flags(parent, update_vocabulary)]
        context.exit(launch(["train", *flags, "--", str(data)], processes, out, report))


command.handles_signals = True
