from pathlib import Path

import pytest


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Return an empty folder, next to which others may have theirs."""
    (tmp_path / "ours").mkdir()
    return tmp_path / "ours"
