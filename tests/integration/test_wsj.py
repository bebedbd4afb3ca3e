"""`make` in examples/wsj: from a treebank to F1, parsers tiny; its longer roads: tests/system."""

import subprocess
from pathlib import Path

import pytest

from tests.recipes import TREES, WSJ_TRAIN, check_score, make_wsj, write_sections


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("wsj-only", [], "set TREEBANK=/folder of the sections"),
        ("semi-supervised", ["TREEBANK={treebank}"], "set SILVER=/prefix"),
        ("craft", [], "set TREES=/folder with train.mrg"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, target: str, settings: list[str], message: str
) -> None:
    treebank = write_sections(tmp_path / "wsj")
    done = make_wsj(target, tmp_path, *(setting.format(treebank=treebank) for setting in settings))
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.glob("*/data"))


def test_text_of_another_number_of_trees_is_not_kept(tmp_path: Path) -> None:
    treebank = write_sections(tmp_path / "wsj")
    done = make_wsj("wsj-only", tmp_path, f"TREEBANK={treebank}", "TRAIN_TREES=39832")
    assert done.returncode == 2
    assert "sections: error: " in done.stderr
    assert "have 30 trees, not 39,832; " in done.stderr
    assert not (tmp_path / "wsj-text" / "train.trees").exists()


@pytest.mark.thorough
def test_another_treebank_takes_three_files(tmp_path: Path) -> None:
    trees = tmp_path / "trees"
    trees.mkdir()
    for name, part in {"train": TREES[:30], "dev": TREES[30:35], "test": TREES[35:]}.items():
        (trees / f"{name}.mrg").write_text("\n".join(part), "utf-8")
    subprocess.run(["gzip", trees / "train.mrg"], check=True)
    flags = (f"TRAIN_FLAGS={WSJ_TRAIN} --max-updates 9", "AVERAGE_FLAGS=--last 8")
    done = make_wsj("craft", tmp_path, f"TREES={trees}", *flags)
    check_score(done)
