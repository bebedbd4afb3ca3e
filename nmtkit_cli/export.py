"""`nmtkit export`."""

from pathlib import Path

import click

from nmtkit_cli.command import FOLDER, Command
from nmtkit_cli.streams import say

EXAMPLES = """\
nmtkit export model/ ctranslate2 model.ct2/

# weights of 8 bits
nmtkit export model/ ctranslate2 model.ct2/ --quantization int8

# for Hugging Face's MarianMTModel
nmtkit export model/ marian model.hf/"""


@click.command("export", cls=Command, epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("format", metavar="FORMAT")
@click.argument("out", type=FOLDER, metavar="OUT")
@click.option(
    "--quantization",
    type=click.Choice(["int8", "float16"]),
    help="Type of CTranslate2's weights, instead of float32.",
)
@click.option("--overwrite", is_flag=True, help="Replace the folder OUT if it exists.")
def command(
    model: Path,
    format: str,
    out: Path,
    quantization: str | None,
    overwrite: bool,
) -> None:
    """Export a model to the format of another library.

    FORMAT is ctranslate2, or marian for Hugging Face's transformers. The library must be
    installed: it scores sample sentences with the exported model. OUT appears only if its scores
    differ from nmtkit's by at most 0.001; the largest difference is printed.

    With --quantization, scores are compared in float32 first. The differences of the quantised
    model's log-probabilities are printed.
    """
    if quantization and format != "ctranslate2":
        raise click.UsageError(f"--quantization has no effect with {format}; leave it out")
    from nmtkit.interop.conversion import export

    export(model, format, out, overwrite, say, quantization)
