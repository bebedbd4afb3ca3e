"""`nmtkit import`."""

from pathlib import Path

import click

from nmtkit_cli.command import FOLDER, Command
from nmtkit_cli.streams import say

EXAMPLES = """\
# a folder with config.json, model.safetensors, source.spm, target.spm and vocab.json
nmtkit import marian opus-mt-en-de/ model/
nmtkit translate model/ < test.en > test.out.de"""


@click.command("import", cls=Command, epilog=EXAMPLES)
@click.argument("format", type=click.Choice(["marian"]), metavar="FORMAT")
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.argument("out", type=FOLDER, metavar="OUT")
@click.option("--overwrite", is_flag=True, help="Replace the folder OUT if it exists.")
def command(format: str, folder: Path, out: Path, overwrite: bool) -> None:  # noqa: ARG001
    """Import a model of another library, for `nmtkit translate`.

    FORMAT is marian: DIR is a folder of Hugging Face's MarianMTModel, such as an OPUS-MT model.
    transformers must be installed: it scores sample sentences with the model. OUT appears only if
    nmtkit's scores differ by at most 0.001; the largest difference is printed.
    """
    from nmtkit.interop.conversion import import_marian

    import_marian(folder, out, overwrite, say)
