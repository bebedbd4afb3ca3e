"""`make` in examples/wsj: a grid of parsers, its best cell, and other treebanks and texts."""

import re
import subprocess
from pathlib import Path

from tests.recipes import TREES, WSJ_TRAIN, check_score, make_wsj, write_sections


def test_from_the_treebank_by_a_grid_to_section_23(tmp_path: Path) -> None:
    treebank = write_sections(tmp_path / "wsj")
    grid = ("DROPOUTS=0.1 0.2", "ATTENTION_DROPOUTS=0.0", f"TREEBANK={treebank}")
    done = make_wsj("wsj-only-grid", tmp_path, *grid)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "wsj-only" / "grid.md").read_text("utf-8")
    cells = re.findall(r"^\| ([\d.]+) +\| +([\d.]+) \| +([\d.]+) \|", table, re.MULTILINE)
    assert cells == [("0.1", "0.0", "0.5"), ("0.2", "0.0", "0.5")]
    (dropout,) = re.findall(r"DROPOUT=(\S+) ATTENTION_DROPOUT=0\.0 LEARNING_RATE=0\.5", table)

    chosen = make_wsj("wsj-only", tmp_path, f"DROPOUT={dropout}", "ATTENTION_DROPOUT=0.0", *grid)
    check_score(chosen)
    assert " train " not in chosen.stdout
    words = (tmp_path / "wsj-text" / "test.words").read_text("utf-8").splitlines()
    parsed = (tmp_path / "wsj-only" / f"{dropout}-0.0-0.5" / "test.trees").read_text("utf-8")
    assert [re.findall(r" ([^() ]+)\)", tree) for tree in parsed.splitlines()] == [
        line.split() for line in words
    ]


def test_text_of_parsers_is_added_to_the_treebank(tmp_path: Path) -> None:
    treebank = write_sections(tmp_path / "wsj")
    silver = tmp_path / "silver"
    silver.with_suffix(".trees").write_text("(TOP (NP (NN dog)))\n" * 9, "utf-8")
    silver.with_suffix(".words").write_text("dog\n" * 9, "utf-8")
    done = make_wsj("semi-supervised", tmp_path, f"TREEBANK={treebank}", f"SILVER={silver}=0.5")
    check_score(done)
    assert re.search(r"^reading .*/silver\.words and .*/silver\.trees$", done.stderr, re.MULTILINE)
    assert re.search(r"^\S*/silver=0\.5 +9 +9 ", done.stderr, re.MULTILINE)  # read and kept


def test_another_treebank_takes_three_files(tmp_path: Path) -> None:
    trees = tmp_path / "trees"
    trees.mkdir()
    for name, part in {"train": TREES[:30], "dev": TREES[30:35], "test": TREES[35:]}.items():
        (trees / f"{name}.mrg").write_text("\n".join(part), "utf-8")
    subprocess.run(["gzip", trees / "train.mrg"], check=True)
    flags = f"TRAIN_FLAGS={WSJ_TRAIN} --max-updates 9"
    done = make_wsj("craft", tmp_path, f"TREES={trees}", flags)
    check_score(done)
