"""Texts that are not in the repository: the folder NMTKIT_TEST_DATA, or one next to it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("NMTKIT_TEST_DATA", ROOT.parent / "shared" / "data"))
HARD = DATA / "hard"
NOT_TEXT = "utf16le-bom.txt"

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the test data is not there: set NMTKIT_TEST_DATA to its folder"
)


def hard_files() -> list[dict[str, Any]]:
    """Return what is said of each file in HARD; nothing if they are not there."""
    path = HARD / "FILES.json"
    files: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return files


def hard_texts() -> list[dict[str, Any]]:
    """Return what is said of each file in HARD that commands accept as text."""
    return [described for described in hard_files() if described["file"] != NOT_TEXT]
