import errno

import click
import pytest

from nmtkit import errors
from nmtkit_cli import command_line

KINDS = [
    kind
    for kind in errors.NmtkitError.__subclasses__()
    if kind is not errors.ReportedElsewhereError
]


class OutOfMemoryError(RuntimeError):
    """A stand-in for the error of torch with this name."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_nmtkit_error_is_one_line_with_its_exit_code(
    kind: type[errors.NmtkitError], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.report(kind("what is wrong:\nhow to fix it")) == kind.exit_code
    assert capsys.readouterr() == ("", "nmtkit: error: what is wrong: how to fix it\n")


def test_every_exit_code_is_explained_in_the_help() -> None:
    assert {kind.exit_code for kind in KINDS} < set(command_line.EXIT_CODES)


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (MemoryError(), 5, "out of memory; use smaller batches or a larger machine"),
        (OutOfMemoryError("CUDA out of memory. Tried"), 5, "out of memory; use smaller"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 5, "out of memory; use"),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            5,
            "standard output: No space left on device; free space, get the permission, or use "
            "another place",
        ),
        (OSError(errno.EIO, "Input/output error", "x"), 5, "x: Input/output error; free space"),
        (
            KeyError("x"),
            1,
            "a bug in nmtkit: KeyError: 'x'; `nmtkit --debug ...` shows where",
        ),
        (OSError(errno.ENOENT, "No such file"), 1, "a bug in nmtkit: FileNotFoundError: "),
        (click.UsageError("Missing it."), 2, "Missing it. (see `nmtkit --help`)"),
    ],
)
def test_another_error_is_one_line_with_the_exit_code_of_its_kind(
    error: Exception, code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.report(error) == code
    captured = capsys.readouterr()
    assert captured.err.startswith(f"nmtkit: error: {expected}")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)])
def test_an_interrupt_and_a_closed_pipe_end_quietly(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.report(error) == code
    assert capsys.readouterr() == ("", "")


def test_only_debug_shows_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["score", "--reference", "none", "--metric", "x"]
    assert command_line.run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err
    for with_debug in (["--debug", *arguments], [*arguments, "--debug"]):
        assert command_line.run(with_debug) == 2
        text = capsys.readouterr().err
        assert text.startswith("Traceback")
        assert text.splitlines()[-1].startswith("nmtkit: error: no metric 'x'; known are: bleu,")


def test_every_listed_command_has_its_name() -> None:
    context = click.Context(command_line.group, **command_line.group.context_settings)
    for name in command_line.COMMANDS:
        command = command_line.group.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("nmtkit 0.")
