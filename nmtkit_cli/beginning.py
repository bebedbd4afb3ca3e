"""The start of `nmtkit train`: its first line, and interrupts while torch is imported.

A module of its own: files of commands are short.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from nmtkit.signals import ended_by_interrupt


@contextmanager
def begin_training(data: Path, out: Path) -> Iterator[Callable[[str], None]]:
    """Report what begins, once for all ranks; yield a function that reports a line.

    A dataset that cannot be opened is an error before torch is imported.

    Within the context, which imports torch, Ctrl-C ends the process immediately; but ranks end
    together, when they have joined each other.
    """
    from nmtkit.progress.reporter import make_reporter
    from nmtkit.runtime.parent_process import is_launched, speaks_for_all_ranks
    from nmtkit.storage.durable import read_manifest
    from nmtkit.storage.run_folder import RunFolder

    report = make_reporter(sys.stderr).message
    if speaks_for_all_ranks():
        is_resumed = RunFolder(out).newest_model() is not None
        report(f"{'continuing' if is_resumed else 'training'} {out} on {data} (loading PyTorch)")
    from nmtkit.data.binary import FORMAT, VERSION

    read_manifest(data, FORMAT, VERSION)
    with nullcontext() if is_launched() else ended_by_interrupt(_end):
        yield report


def _end() -> None:
    from nmtkit_cli.command_line import report

    os._exit(report(KeyboardInterrupt()))
