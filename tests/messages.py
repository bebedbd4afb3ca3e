"""What tests ask of a message: its class, what it names and what it advises; never its words.

The words of all messages stand in one file, which people review: tests/golden/messages.txt. Tests
record the messages that they provoke. At the end of a run, a message that the file lacks is an
error: `--write-messages add` adds it, and `make messages` replaces the file. Numbers and temporary
paths are no words.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click
import pytest

from examples.wmt14.errors import FetchError
from nmtkit.errors import NmtkitError
from tests.shared_data import DATA, ROOT

SNAPSHOT = ROOT / "tests" / "golden" / "messages.txt"
HEADER = "# All messages that tests provoke, by exit code. `make messages` writes this file.\n"
PREFIX = "nmtkit: error: "

OPTION = "--write-messages"
_RECORDED = "nmtkit_messages"
_recorded: set[str] = set()
_unknown = pytest.StashKey[str]()

Refusal = TypeVar("Refusal", bound=NmtkitError | FetchError | click.ClickException)


@contextmanager
def refuses(
    kind: type[Refusal], keys: str | Path, recorded: bool = True
) -> Iterator[pytest.ExceptionInfo[Refusal]]:
    """Check that an error is raised, and what its message names: "heads 6 model_size 512; 4 8".

    Args:
        kind: its class, which has the exit code.
        keys: settings, options, files, values, separated by spaces: what the message names, and
            after ";" what it advises, each in any order.
        recorded: whether its words are in the snapshot; not those of libraries or of random input.
    """
    with pytest.raises(kind) as caught:
        yield caught
    check_message(str(caught.value), caught.value.exit_code, str(keys), recorded)


def refused(
    done: subprocess.CompletedProcess[bytes] | subprocess.CompletedProcess[str],
    code: int,
    keys: str,
    recorded: bool = True,
) -> None:
    """Check how a command ended: its exit code, and its message, the last line of its errors."""
    errors = done.stderr if isinstance(done.stderr, str) else done.stderr.decode()
    assert done.returncode == code, errors
    check_errors(errors, code, keys, recorded)


def check_errors(errors: str, code: int, keys: str, recorded: bool = True) -> None:
    """Check the last line of a command's standard error, the message of an exit code."""
    line = errors.removesuffix("\n").rpartition("\n")[2]
    assert line.startswith(PREFIX), errors
    check_message(line.removeprefix(PREFIX), code, keys, recorded)


def check_message(message: str, code: int, keys: str, recorded: bool = True) -> None:
    """Check the message of an error with an exit code, as `refuses` does."""
    assert len(message.splitlines()) == 1, repr(message)
    where, _, how = keys.partition(";")
    assert where.strip(), "a test asks at least for what a message names"
    advice = message.partition("; ")[2]
    for words, text in ((where, message), (how, advice)):
        missing = [word for word in words.split() if not has_word(text, word)]
        assert not missing, f"not named: {' '.join(missing)}\n{message}"
    if recorded:
        _recorded.add(f"{code}: {without_chance(message)}")


def has_word(text: str, word: str) -> bool:
    """Return whether a word is in a text, and not as part of a longer word or number."""
    before = r"(?<!\w)" if re.match(r"\w", word) else ""
    after = r"(?!-?\w)" if re.search(r"\w$", word) else ""
    return bool(re.search(before + re.escape(word) + after, text))


_CHANCE = (
    (re.escape(str(DATA)), "DATA"),
    (re.escape(str(ROOT)), "ROOT"),
    (r"[^\s'\"(=]*/pytest-of-[^/]+/pytest-\d+/(?:popen-gw\d+/)?[^\s/:;,'\")]+", "TMP"),
    (r"/\S*/tmp\w{8}\b", "TMP"),
    (r"(process \d+ on )[^;]+", r"\1HOST"),
    (r"(\w)\1{19,}", r"\1..."),
    (r"\b([0-9a-f]{64}|[0-9a-f]{12})\b", "DIGEST"),
    # What a library says of damaged text or files.
    (r"(TOML: )[^;]+", r"\1REASON"),
    (r"(JSON \(|damaged \(|gzip file \(|SentencePiece: )[^;]+?(?=\)(;|$))", r"\1REASON"),
    # A number: not a part of a name such as UTF-8, and not in a formula.
    (
        r"(?<![\w*.-])-?(0x[0-9a-f]+|\d+([.,]\d+)*(e[+-]?\d+)?(\+\w+)?)((?=[KMG]iB\b)|(?![\w*]))",
        "N",
    ),
)
"""Patterns, and what stands for them."""


def without_chance(message: str) -> str:
    """Return a message without what differs by machine, version or input."""
    for pattern, instead in _CHANCE:
        message = re.sub(pattern, instead, message)
    return message.encode("utf-8", "backslashreplace").decode()


def read_snapshot() -> set[str]:
    lines = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


def write_snapshot(messages: Iterable[str]) -> None:
    SNAPSHOT.write_text(HEADER + "".join(f"{line}\n" for line in sorted(messages)), "utf-8")


# The hooks of pytest. With pytest-xdist each worker sends what it recorded.


def pytest_addoption(parser: pytest.Parser) -> None:
    how = "add to tests/golden/messages.txt what it lacks, or replace it, if all tests pass"
    parser.addoption(OPTION, choices=("add", "replace"), help=how)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    _recorded.update(getattr(node, "workeroutput", {}).get(_RECORDED, ()))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_RECORDED] = sorted(_recorded)
    elif session.config.getoption(OPTION) == "add":
        write_snapshot(_recorded | read_snapshot())
    elif session.config.getoption(OPTION) == "replace":
        if exitstatus == pytest.ExitCode.OK:
            write_snapshot(_recorded)
    elif unknown := sorted(_recorded - read_snapshot()):
        session.config.stash[_unknown] = "\n".join(unknown)
        session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if unknown := terminalreporter.config.stash.get(_unknown, ""):
        terminalreporter.section("messages not in tests/golden/messages.txt", "=", red=True)
        terminalreporter.write_line(unknown)
        terminalreporter.write_line(
            f"Review them; add them with {OPTION} add, or run `make messages`."
        )
