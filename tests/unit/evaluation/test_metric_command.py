"""Programs as metrics: what they read, what they may write, and how they end."""

import errno
import os
import signal
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DataError, NmtkitError, ProgramError, ResourceError
from nmtkit.evaluation.metric_command import MAX_NUMBER_BYTES, Segment, run_metric_command
from nmtkit.signals import STOP_SIGNALS, ended_by_signals
from nmtkit.text.lines import one_line
from tests.messages import refuses
from tests.processes import has_ended

TWO = [("s", "t", "r"), ("s", "u", "r")]


def run(command: str, segments: Sequence[Segment] = TWO) -> list[float]:
    return run_metric_command("mine", command, segments)


def read_by_a_program(folder: Path, segments: Sequence[Segment]) -> bytes:
    path = folder / "read"
    run(f"tee '{path}' | sed 's/.*/0/'", segments)
    return path.read_bytes()


def test_a_program_reads_a_line_of_texts_per_segment_with_tabs_between(tmp_path: Path) -> None:
    segments = [
        ("one", "ein\ts", "eins", "1"),
        ("", "two\r\nlines\x85", ""),
        ("\u00df\u4f60", "", ""),
    ]
    assert read_by_a_program(tmp_path, segments) == (
        "one\tein s\teins\t1\n\ttwo  lines \t\n\u00df\u4f60\t\t\n".encode()
    )


def test_any_character_stays_in_its_column(tmp_path: Path) -> None:
    """All characters below U+3000, and some of later planes."""
    characters = [chr(code) for code in [*range(0x3000), 0xE000, 0xFFFF, 0x1F600, 0x10FFFF]]
    segments = [(f"a{one}", f"{one}b", f"c{one}d") for one in characters]
    lines = read_by_a_program(tmp_path, segments).decode().split("\n")
    assert lines.pop() == ""
    assert [line.split("\t") for line in lines] == [
        [f"a{one}", f"{one}b", f"c{one}d"]
        for one in (" " if one == "\t" else one_line(one) for one in characters)
    ]


@pytest.mark.parametrize(
    ("output", "scores"),
    [
        ("1\\n2\\n", [1, 2]),
        ("+.5\\n-2.5e-3", [0.5, -0.0025]),
        ("1.\\r\\n .5 \\r\\n", [1, 0.5]),
    ],
)
def test_scores_are_numbers_a_line_each(output: str, scores: list[float]) -> None:
    assert run(f"printf '{output}'") == scores


def test_large_texts_do_not_block_a_program_that_writes_while_it_reads() -> None:
    """Each direction has more bytes than a pipe holds."""
    segments = [("s" * 90, "t" * 90, "r" * 90)] * 20_000
    assert run("awk '{print NR}'", segments) == list(range(1, 20_001))


def test_a_program_need_not_read_its_input() -> None:
    segments = [("s" * 90, "t" * 90, "r" * 90)] * 5_000
    assert run("yes 1 | head -n 5000", segments) == [1.0] * 5_000


def test_without_segments_no_program_runs(tmp_path: Path) -> None:
    assert run(f"touch '{tmp_path}/ran'", []) == []
    assert not [*tmp_path.iterdir()]


def test_messages_of_a_program_go_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    run("echo hello >&2; echo 1; echo 2")
    assert capfd.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("command", "kind", "keys"),
    [
        ("no-such-program", ConfigError, "mine; PATH metrics.metric_command"),
        ("/etc/passwd", ConfigError, "mine; metrics.metric_command"),
        ("echo 1; echo 2; exit 3", ProgramError, "mine code 3"),
        ("exit 255", ProgramError, "mine code 255"),
        ("kill -9 $$", ProgramError, "mine SIGKILL"),
        ("exit 143", ProgramError, "mine SIGTERM"),
        ("echo 1", DataError, "mine 2 1"),
        ("cat >/dev/null", DataError, "mine 2 0"),
        ("yes 1", DataError, "mine 2"),
        *(
            (
                f"printf '1\\n{text}\\n'",
                DataError,
                f"mine line 2 {shown}; 1e30",
            )
            for text, shown in {
                "1e31": "'1e31'",
                "nan": "'nan'",
                "-inf": "'-inf'",
                "1e999": "'1e999'",
                "": "''",
                "1_0": "'1_0'",
                "0.5 0.6": "'0.5 0.6'",
                "\\351": "'\\ufffd'",
                "x" * 50: f"'{'x' * 40}'...",
            }.items()
        ),
        (
            f"head -c {2 * MAX_NUMBER_BYTES} /dev/zero | tr '\\0' 1",
            DataError,
            f"mine line 1 '{'1' * 40}'...",
        ),
    ],
)
def test_a_program_that_fails_is_an_error_of_one_line(
    command: str, kind: type[NmtkitError], keys: str
) -> None:
    with refuses(kind, keys):
        run(command)


@pytest.mark.parametrize("output", ["", ">/dev/null"])
def test_what_a_program_has_started_ends_with_it(output: str, tmp_path: Path) -> None:
    """Also where it holds the pipe of the output."""
    command = f"sleep 60 {output} & echo $! > '{tmp_path}/pid'; echo 1; echo 2"
    assert run(command) == [1.0, 2.0]
    assert has_ended(int((tmp_path / "pid").read_text("ascii")))


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_ends_the_program_and_what_it_has_started(
    number: signal.Signals, tmp_path: Path
) -> None:
    """The program sends the signal itself, when it runs."""
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        run(
            f"sleep 60 & echo $! $$ > '{tmp_path}/pids'; "
            f"kill -{int(number)} {os.getpid()}; wait; sleep 60"
        )
    for pid in (tmp_path / "pids").read_text("ascii").split():
        assert has_ended(int(pid))


def test_a_program_is_asked_to_end_before_it_is_killed(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        run(f"trap 'touch \"{tmp_path}/asked\"; exit' TERM; yes 1 & wait")
    assert (tmp_path / "asked").exists()


def test_a_program_that_does_not_end_when_asked_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("nmtkit.evaluation.metric_command.END_TIMEOUT_S", 0.0)
    with pytest.raises(DataError):
        run(f"trap '' TERM; echo $$ > '{tmp_path}/pid'; echo 1; echo 2; echo 3; sleep 60")
    assert has_ended(int((tmp_path / "pid").read_text("ascii")))


def test_signals_are_not_blocked_in_a_program_and_handled_as_in_any_shell() -> None:
    """A program may use timeout(1), and end by SIGPIPE."""
    assert run("yes 1 | head -n 1; (sleep 60 & kill $!; wait $! || echo 2)") == [1, 2]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    run("echo 1; echo 2")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_programs_run_in_threads_too() -> None:
    scores: list[list[float]] = []
    thread = threading.Thread(target=lambda: scores.append(run("echo 1; echo 2")))
    thread.start()
    thread.join()
    assert scores == [[1, 2]]


def test_a_shell_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "posix_spawn", fail)
    with refuses(ResourceError, "mine /bin/sh"):
        run("echo 1; echo 2")


def test_a_full_disk_is_an_error_that_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "w+b"))  # noqa: SIM115, PTH123
    with refuses(ResourceError, "mine; TMPDIR"):
        run("echo 1; echo 2")
