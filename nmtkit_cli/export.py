"""`nmtkit export`."""

from pathlib import Path

import click

from nmtkit_cli.command import FOLDER, Command
from nmtkit_cli.streams import say

EXAMPLES = """\
nmtkit export model/ ctranslate2 model.ct2/

# for Hugging Face's MarianMTModel
nmtkit export model/ marian model.hf/"""


@click.command("export", cls=Command, epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("format", type=click.Choice(["ctranslate2", "marian"]), metavar="FORMAT")
@click.argument("out", type=FOLDER, metavar="OUT")
@click.option("--overwrite", is_flag=True, help="Replace the folder OUT if it exists.")
def command(model: Path, format: str, out: Path, overwrite: bool) -> None:
    """Write a model in the format of another library.

    FORMAT is ctranslate2, or marian for Hugging Face's transformers. The library must be
    installed: it computes the scores of sample sentences with what was written, and if they are
    not those of nmtkit, OUT does not appear. The largest difference is printed.
    """
    from nmtkit.interop.conversion import export

    export(model, format, out, overwrite, say)
