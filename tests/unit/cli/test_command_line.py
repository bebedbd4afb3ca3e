import errno
import os

import click
import pytest

from nmtkit import errors
from nmtkit_cli import command_line
from tests.messages import check_errors
from tests.ranks import from_launcher

KINDS = [
    kind
    for kind in errors.NmtkitError.__subclasses__()
    if kind not in (errors.ReportedElsewhereError, errors.InterruptedByUserError)
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
    ("error", "code", "keys"),
    [
        (MemoryError(), 5, "memory"),
        (OutOfMemoryError("CUDA out of memory. Tried"), 5, "memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 5, "memory"),
        (OSError(errno.ENOSPC, "No space left on device"), 5, "standard output"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "x"), 5, "files; ulimit"),
        (RuntimeError(f"shm: {os.strerror(errno.EMFILE)} (24)"), 5, "files; ulimit"),
        (errors.ConfigError(f"x: {os.strerror(errno.ENFILE)}; give a file"), 5, "files; ulimit"),
        (OSError(errno.EIO, "Input/output error", "x"), 5, "x"),
        (KeyError("x"), 1, "KeyError x; nmtkit --debug"),
        (OSError(errno.ENOENT, "No such file"), 1, "FileNotFoundError; nmtkit --debug"),
        (click.UsageError("Missing it."), 2, "nmtkit --help"),
    ],
)
def test_another_error_is_one_line_with_the_exit_code_of_its_kind(
    error: Exception, code: int, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.report(error) == code
    errors = capsys.readouterr().err
    check_errors(errors, code, keys, recorded="--help" not in keys)
    assert errors.count("\n") == 1


def test_an_interrupt_is_reported_but_not_called_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command_line.report(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "nmtkit: interrupted\n"
    assert (
        command_line.report(errors.InterruptedByUserError("stopped by SIGINT after update 3"))
        == 130
    )
    assert capsys.readouterr().err == "nmtkit: stopped by SIGINT after update 3\n"
    assert command_line.report(errors.StoppedError("stopped by SIGTERM after update 3")) == 75
    assert capsys.readouterr().err == "nmtkit: error: stopped by SIGTERM after update 3\n"


@pytest.mark.parametrize(("rank", "message"), [("0", "nmtkit: interrupted\n"), ("1", "")])
def test_an_interrupt_of_ranks_is_reported_once(
    rank: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in from_launcher(RANK=rank).items():
        monkeypatch.setenv(name, value)
    assert command_line.report(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == message


def test_a_closed_pipe_ends_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.report(BrokenPipeError()) == 141
    assert capsys.readouterr() == ("", "")


def test_only_debug_shows_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["score", "--reference", "none", "--metric", "x"]
    assert command_line.run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err
    for with_debug in (["--debug", *arguments], [*arguments, "--debug"]):
        assert command_line.run(with_debug) == 2
        text = capsys.readouterr().err
        assert text.startswith("Traceback")
        check_errors(text, 2, "x; bleu")


def test_every_listed_command_has_its_name() -> None:
    context = click.Context(command_line.group, **command_line.group.context_settings)
    for name in command_line.COMMANDS:
        command = command_line.group.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("nmtkit 0.")
