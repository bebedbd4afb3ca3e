"""`make` in the folder of an example, with this Python's nmtkit."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WMT14 = ROOT / "examples" / "wmt14"
WSJ = ROOT / "examples" / "wsj"
PYTHON = shlex.quote(sys.executable)
DEADLINE_S = 600


def make(*arguments: object, folder: Path = WMT14) -> subprocess.CompletedProcess[str]:
    """Run make there; what it prints and how it ends is for the caller to look at."""
    return subprocess.run(
        ["make", f"NMTKIT={PYTHON} -m nmtkit_cli", f"PYTHON={PYTHON}", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "no_proxy": "*", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=DEADLINE_S,
    )
