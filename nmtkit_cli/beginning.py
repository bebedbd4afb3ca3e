"""The first line of `nmtkit train`, printed before torch is imported.

A module of its own: files of commands are short.
"""

import sys
from collections.abc import Callable
from pathlib import Path


def begin_training(data: Path, out: Path) -> Callable[[str], None]:
    """Report what begins, once for all ranks; return a function that reports a line."""
    from nmtkit.progress.reporter import make_reporter
    from nmtkit.runtime.parent_process import speaks_for_all_ranks
    from nmtkit.storage.run_folder import RunFolder

    report = make_reporter(sys.stderr).message
    if speaks_for_all_ranks():
        is_resumed = RunFolder(out).newest_model() is not None
        report(f"{'continuing' if is_resumed else 'training'} {out} on {data} (loading PyTorch)")
    return report
