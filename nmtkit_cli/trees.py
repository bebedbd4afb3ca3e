"""`nmtkit trees`: a group of commands."""

import click

from nmtkit_cli.command import HELP_NAMES, Group, write_examples
from nmtkit_cli.tree_commands import clean, draw, info, linearize, restore, tokenize, words

EXAMPLES = """\
# a treebank as training text of a parser
nmtkit trees clean < wsj.mrg > train.trees
nmtkit trees words < train.trees > train.words

# parse raw text and draw the tree
echo 'He sleeps.' | nmtkit trees tokenize | nmtkit translate parser/ | nmtkit trees draw"""


class Trees(Group):
    """Commands in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of use."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples verbatim."""
        write_examples(EXAMPLES, formatter)


@click.group(
    "trees", cls=Trees, context_settings={"help_option_names": [*HELP_NAMES, "--help-all"]}
)
def command() -> None:
    """Prepare, restore and draw bracketed trees, from standard input to standard output.

    Input trees take one line or several, as in the Penn Treebank: an opening bracket in the first
    column begins a tree. Output trees take one line each.
    """


for _part in (clean, words, linearize, restore, tokenize, info, draw):
    command.add_command(_part)
