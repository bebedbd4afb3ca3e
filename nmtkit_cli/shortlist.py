"""`nmtkit shortlist`."""

from pathlib import Path

import click

from nmtkit.units import counted
from nmtkit_cli.command import FOLDER, PATH, Command, count_option
from nmtkit_cli.streams import say
from nmtkit_cli.text_paths import read_dataset

EXAMPLES = """\
nmtkit shortlist data/ --out shortlist/
nmtkit translate model/ --shortlist shortlist/ < test.en > test.de"""


@click.command("shortlist", cls=Command, epilog=EXAMPLES)
@click.argument("data", type=PATH, callback=read_dataset, metavar="DATA")
@click.option(
    "--out", type=FOLDER, metavar="FOLDER", required=True, help="Folder of the shortlist."
)
@count_option("--candidates", "Target tokens per source token.", default=100)
@count_option("--frequent", "Most frequent target tokens, which are always allowed.", default=200)
@count_option("--pairs", "Training pairs to learn from, about.", default=200_000)
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
def command(
    data: Path, out: Path, candidates: int, frequent: int, pairs: int, overwrite: bool
) -> None:
    """Learn a shortlist of target tokens per source token.

    With a shortlist, `nmtkit translate` computes only a part of the vocabulary, which saves time
    if the vocabulary is large. DATA is the dataset that the model was trained on.
    """
    from nmtkit.data.binary import Dataset
    from nmtkit.data.shortlist import Shortlist

    dataset = Dataset.open(data)
    Shortlist.learn(dataset, candidates, frequent, pairs).save(out, overwrite)
    say(f"learnt from {counted(min(pairs, dataset.num_train_pairs), 'pairs')}: {out}")
