"""The commands of `nmtkit trees` that show trees."""

import click

from nmtkit_cli.command import Command
from nmtkit_cli.tree_streams import input_trees, skip_option, stream_lines


@click.command("info", cls=Command, epilog="nmtkit trees info < train.trees")
@skip_option
def info(skip_bad: bool) -> None:
    """Count trees, words, constituents, labels and tags."""
    from nmtkit.parsing.tree_counts import tree_counts

    stream_lines(tree_counts(input_trees(skip_bad)))


@click.command("draw", cls=Command, epilog="nmtkit trees draw --svg < test.trees > test.svg")
@click.option(
    "--svg", "is_svg", is_flag=True, help="One SVG picture of all trees instead of outlines."
)
@skip_option
def draw(is_svg: bool, skip_bad: bool) -> None:
    """Draw trees: as outlines for the terminal, each with a blank line behind, or as SVG."""
    from nmtkit.parsing.tree_drawing import outline, svg

    trees = input_trees(skip_bad)
    if is_svg:
        stream_lines([svg(trees)])
    else:
        stream_lines(line for tree in trees for line in (*outline(tree), ""))
