"""`nmtkit score`."""

import json
from pathlib import Path

import click

from nmtkit.errors import DataError
from nmtkit_cli.command import FILE, Command
from nmtkit_cli.streams import standard_input, warn, write_lines

EXAMPLES = """\
nmtkit score --reference test.de < translations.de
nmtkit translate model/ < test.en | nmtkit score --reference test.de --metric bleu,chrf,ter"""


@click.command("score", cls=Command, epilog=EXAMPLES)
@click.option(
    "--reference",
    type=FILE,
    metavar="FILE",
    required=True,
    help="What the translations should have been, line by line; may be gzipped.",
)
@click.option(
    "--metric",
    default="bleu",
    metavar="LIST",
    help="Metrics, separated by commas: bleu, chrf, ter.  [default: bleu]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(reference: Path, metric: str, as_json: bool) -> None:
    """Score translations on standard input against a reference, through sacreBLEU.

    Prints a line for each metric: name, score and signature, which names the settings that the
    score depends on. BLEU and chrF range from 0 to 100, higher is better; of TER, lower is.
    """
    from nmtkit.evaluation.metrics import parse_metrics, score_corpus
    from nmtkit.text.lines import decode_lines, open_bytes

    metrics = parse_metrics(metric)
    translations = list(decode_lines(standard_input(), "standard input", "error", warn))
    with open_bytes(reference) as stream:
        references = list(decode_lines(stream, str(reference), "error", warn))
    if len(translations) != len(references):
        raise DataError(
            f"standard input has {len(translations)} lines and {reference} has "
            f"{len(references)}; give one translation a reference, in the same order"
        )
    scores = score_corpus(metrics, translations, references)
    if as_json:
        table = {one.name: {"score": one.score, "signature": one.signature} for one in scores}
        write_lines([json.dumps(table)])
    else:
        write_lines(f"{one.name} = {one.score:.2f}  {one.signature}" for one in scores)
