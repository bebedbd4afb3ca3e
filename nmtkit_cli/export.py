"""`nmtkit export`."""

from pathlib import Path

import click

from nmtkit_cli.command import FILE, FOLDER, Command
from nmtkit_cli.streams import say

EXAMPLES = """\
nmtkit export model/ ctranslate2 model.ct2/

# weights of 8 bits, and what they cost on a test set
nmtkit export model/ ctranslate2 model.ct2/ --quantization int8 --source test.en --reference test.de

# for Hugging Face's MarianMTModel
nmtkit export model/ marian model.hf/"""


@click.command("export", cls=Command, epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("format", type=click.Choice(["ctranslate2", "marian"]), metavar="FORMAT")
@click.argument("out", type=FOLDER, metavar="OUT")
@click.option(
    "--quantization",
    type=click.Choice(["int8", "float16"]),
    help="Type of CTranslate2's weights, instead of float32. What it changes is reported.",
)
@click.option("--source", type=FILE, metavar="FILE", help="Text to try --quantization on.")
@click.option("--reference", type=FILE, metavar="FILE", help="Reference of --source.")
@click.option("--overwrite", is_flag=True, help="Replace the folder OUT if it exists.")
def command(
    model: Path,
    format: str,
    out: Path,
    quantization: str | None,
    source: Path | None,
    reference: Path | None,
    overwrite: bool,
) -> None:
    """Export a model to the format of another library.

    FORMAT is ctranslate2, or marian for Hugging Face's transformers. The library must be
    installed: it scores sample sentences with the exported model. OUT appears only if its scores
    differ from nmtkit's by at most 0.001; the largest difference is printed.

    With --quantization, weights are compared in float32 first. The differences of log-probabilities
    are printed, of drawn pairs or of --source and --reference, and then BLEU, too.
    """
    if quantization and format != "ctranslate2":
        raise click.UsageError(f"--quantization has no effect with {format}; leave it out")
    test_set = (source, reference) if source and reference else None
    if (source or reference) and not (test_set and quantization):
        raise click.UsageError(
            "--source and --reference are given together, with --quantization, to try it on them"
        )
    from nmtkit.interop.conversion import Quantization, export

    chosen = Quantization(quantization, test_set) if quantization else None
    export(model, format, out, overwrite, say, chosen)
