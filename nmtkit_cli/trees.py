"""`nmtkit trees`: a group of commands."""

import click

from nmtkit_cli.command import write_examples
from nmtkit_cli.tree_commands import clean, draw, info, linearize, restore, tokenize, words

EXAMPLES = """\
# a treebank as training text of a parser
nmtkit trees clean < wsj.mrg > train.trees
nmtkit trees words < train.trees > train.words

# a parse of raw text, drawn
echo 'He sleeps.' | nmtkit trees tokenize | nmtkit translate parser/ | nmtkit trees draw"""


class Trees(click.Group):
    """Commands in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of use."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write examples as they are typed."""
        write_examples(EXAMPLES, formatter)


@click.group("trees", cls=Trees)
def command() -> None:
    """Prepare, restore and draw bracketed trees, from standard input to standard output.

    Trees are read as the Penn Treebank has them, over several lines, or one on each; they are
    written one on each. An opening bracket in the first column begins a tree.
    """


for _part in (clean, words, linearize, restore, tokenize, info, draw):
    command.add_command(_part)
