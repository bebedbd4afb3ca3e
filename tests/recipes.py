"""`make` in the folder of an example, with this Python's nmtkit."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WMT14 = ROOT / "examples" / "wmt14"
WSJ = ROOT / "examples" / "wsj"
DEADLINE_S = 600


def make(*arguments: object, folder: Path = WMT14) -> subprocess.CompletedProcess[str]:
    """Run make there; what it prints and how it ends is for the caller to look at."""
    return subprocess.run(
        [
            *("make", f"NMTKIT={sys.executable} -m nmtkit_cli", f"PYTHON={sys.executable}"),
            *map(str, arguments),
        ],
        cwd=folder,
        env={**os.environ, "no_proxy": "*", "PYTHONPATH": str(ROOT), "MAKEFLAGS": ""},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=DEADLINE_S,
    )
