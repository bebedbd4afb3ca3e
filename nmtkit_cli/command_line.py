"""The `nmtkit` command: runs a subcommand and returns its exit code.

Subcommands are imported when they are invoked, which keeps --help fast.
"""

import errno
import importlib
import os
import signal
import traceback
from keyword import iskeyword

import click

from nmtkit.errors import (
    ConfigError,
    InterruptedByUserError,
    NmtkitError,
    ReportedElsewhereError,
    ResourceError,
    is_out_of_memory,
)
from nmtkit.signals import EndedBySignal
from nmtkit.version import __version__
from nmtkit_cli.command import DEBUG, HELP_NAMES, Group, debug_option
from nmtkit_cli.streams import say

COMMANDS = {
    "preprocess": "Turn parallel text into a dataset.",
    "info": "Describe a dataset or a model: parameters, operations, disk, memory.",
    "train": "Train a model on a dataset, or resume training.",
    "average-checkpoints": "Average checkpoints into one model.",
    "translate": "Translate lines from standard input, or a file.",
    "calibrate": "Learn to predict the chrF of a model's translations.",
    "align": "Link the words of sentences and their translations.",
    "shortlist": "Learn a shortlist of target tokens per source token.",
    "score": "Score translations against a reference or by a model.",
    "rerank": "Choose the best of several translations per line, by weighted features.",
    "attention": "Show the attention of a model in pages and pictures.",
    "trees": "Prepare and restore bracketed trees.",
    "report": "Compare training runs: results, cost, settings, curves.",
    "export": "Export a model to the format of another library.",
    "import": "Import a model of another library.",
}

EXAMPLES = """\
nmtkit preprocess -s en -t de --train train --valid valid --vocab-size 8000 --out data/
nmtkit train data/ --out run/ --preset small --max-minutes 30
nmtkit translate run/ < test.en > test.out.de
nmtkit score --reference test.de < test.out.de"""

EXIT_BUG = 1
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141
EXIT_SIGNAL = 128
"""Exit code of a command that a signal ended, less the number of the signal."""

EXIT_CODES = {
    0: "done",
    EXIT_BUG: "a bug in nmtkit; `nmtkit --debug ...` shows where",
    2: "wrong usage or configuration",
    3: "bad input text",
    4: "a damaged or incompatible dataset, checkpoint or model",
    5: "out of disk space or memory, or a place that is not writable or was replaced",
    6: "training diverged",
    7: "a process of distributed training died or does not answer; the same command resumes",
    8: "a program of --metric-command failed",
    75: "training was saved and stopped by SIGTERM, SIGUSR1 or SIGHUP; the same command resumes",
    EXIT_SIGNAL
    + signal.SIGHUP: "ended by SIGHUP; unfinished files were deleted, except those that `translate "
    "--output` and `align --output` continue (training ends with 75)",
    EXIT_INTERRUPTED: "interrupted, as 129; training was saved first, unless interrupted twice",
    EXIT_SIGNAL + signal.SIGUSR1: "ended by SIGUSR1, as 129",
    EXIT_READER_GONE: "the reader of standard output closed it",
    EXIT_SIGNAL + signal.SIGTERM: "ended by SIGTERM, as 129",
}

COMPLETION_VARIABLE = "_NMTKIT_COMPLETE"
RESOURCE_ERRNOS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.ENOMEM,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EBADF,  # standard output that is open for reading only
)


class LazyGroup(Group):
    """The commands by name; a command is imported when it is invoked."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, imported; None if the name is unknown."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"nmtkit_cli.{name}{'_' if iskeyword(name) else ''}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, without importing them, and the exit codes."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


@click.group(
    "nmtkit",
    cls=LazyGroup,
    epilog=EXAMPLES,
    params=[debug_option()],
    context_settings={"help_option_names": [*HELP_NAMES, "--help-all"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="nmtkit", message="%(prog)s %(version)s")
def group() -> None:
    """Train and run sequence-to-sequence Transformers.

    From parallel text to scored translations: preprocess, train, translate, score. COMMAND --help
    shows common options and an example, --help-all all options. Results go to standard output,
    messages to standard error.
    """


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; errors are printed to standard error."""
    is_debugged = DEBUG in arguments
    try:
        return _invoke(arguments, is_debugged)
    except (Exception, KeyboardInterrupt) as error:
        if is_debugged:
            traceback.print_exception(error)
        return report(error)


def report(error: BaseException) -> int:
    """Print an error in one line, unless it needs no message, and return its exit code."""
    if isinstance(error, EndedBySignal):
        say(f"nmtkit: error: ended by {error.signal.name}; run the same command again")
        return EXIT_SIGNAL + error.signal
    from nmtkit.runtime.environment import own_rank

    rank = own_rank()
    if isinstance(error, KeyboardInterrupt):
        if rank == "0":
            say("nmtkit: interrupted")
        return EXIT_INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return EXIT_READER_GONE
    reported = _as_nmtkit_error(error)
    if not isinstance(reported, ReportedElsewhereError):
        who = "nmtkit" if rank == "0" else f"nmtkit: rank {rank}"
        kind = "" if isinstance(reported, InterruptedByUserError) else "error: "
        say(f"{who}: {kind}" + str(reported).replace("\n", " "))
    return reported.exit_code


def _invoke(arguments: list[str], is_debugged: bool) -> int:
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(group, {}, "nmtkit", COMPLETION_VARIABLE, instruction)
    try:
        # Not group.main(): it gives broken pipes and interrupts its own exit codes.
        with group.make_context("nmtkit", arguments, obj=is_debugged) as context:
            group.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


def _as_nmtkit_error(error: BaseException) -> NmtkitError:
    """Return the error to print for an exception."""
    if os.strerror(errno.EMFILE) in str(error):  # whatever a library made of it
        return ResourceError("too many open files; raise the limit, such as by `ulimit -n 4096`")
    if isinstance(error, NmtkitError):
        return error
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "nmtkit"
        return ConfigError(f"{error.format_message()} (see `{command} --help`)")
    if is_out_of_memory(error):
        return ResourceError("out of memory; use smaller batches or a larger machine")
    if isinstance(error, OSError) and error.errno in RESOURCE_ERRNOS:
        # nmtkit.storage.durable names the files that it writes; only the streams remain here.
        where = error.filename or "standard output"
        return ResourceError(
            f"{where}: {error.strerror}; free space, get the permission, or use another place"
        )
    kind = type(error).__name__
    return NmtkitError(f"a bug in nmtkit: {kind}: {error}; `nmtkit --debug ...` shows where")
