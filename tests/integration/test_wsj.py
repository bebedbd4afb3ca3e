"""`make` in examples/wsj: from a treebank laid out as the Penn Treebank is to F1, parsers tiny."""

import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.recipes import WSJ, make
from tests.trees import write_treebank

TREE = """\
( (S
    (NP-SBJ-1 (DT the) (NN {noun}) )
    (VP (VBZ {verb})
      (NP (-NONE- *-1) )
      (ADVP-TMP (RB now) ))
    (. .) ))"""
NOUNS = ("dog", "cat", "trader", "market", "index", "bank", "chairman", "bond")
VERBS = ("sleeps", "falls", "rises", "waits", "-LRB-")
TREES = [TREE.format(noun=noun, verb=verb) for noun, verb in product(NOUNS, VERBS)]
TINY = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 200 --max-tokens 200 --max-updates 6 --save-every 1 --validate-every 6 "
    "--warmup-updates 10 --device cpu"
)
SHORT = "--extra-length 20"  # what an untrained parser would fill


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("treebank") / "wsj"
    sections = {"02": [TREES[:10], TREES[10:20]], "03": [TREES[20:30]], "22": [TREES[30:35]]}
    write_treebank(folder, {**sections, "23": [TREES[35:]]})
    return folder


def run(target: str, work: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    return make(
        *(target, f"WORK={work}", "TRAIN_SECTIONS=02-03", f"TRAIN_FLAGS={TINY} {SHORT}"),
        *("TRAIN_TREES=30", "VALID_TREES=5", "TEST_TREES=5"),
        *(
            "PREPROCESS_FLAGS=--vocab-size 300 --workers 1",
            f"TRANSLATE_FLAGS=--beam 2 {SHORT}",
        ),
        *settings,
        folder=WSJ,
    )


def check_score(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    (score,) = re.findall(r"^F1 = .*$", done.stdout, re.MULTILINE)
    assert re.search(r"\(sentences = 5 errors = 0 skipped = 0 ", score), score


def test_from_the_treebank_by_a_grid_to_section_23(tmp_path: Path, treebank: Path) -> None:
    grid = ("DROPOUTS=0.1 0.2", "ATTENTION_DROPOUTS=0.0", f"TREEBANK={treebank}")
    done = run("wsj-only-grid", tmp_path, *grid)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "wsj-only" / "grid.md").read_text("utf-8")
    cells = re.findall(r"^\| ([\d.]+) +\| +([\d.]+) \| +([\d.]+) \|", table, re.MULTILINE)
    assert cells == [("0.1", "0.0", "0.5"), ("0.2", "0.0", "0.5")]
    (dropout,) = re.findall(r"DROPOUT=(\S+) ATTENTION_DROPOUT=0\.0 LEARNING_RATE=0\.5", table)

    chosen = run("wsj-only", tmp_path, f"DROPOUT={dropout}", "ATTENTION_DROPOUT=0.0", *grid)
    check_score(chosen)
    assert " train " not in chosen.stdout
    words = (tmp_path / "wsj-text" / "test.words").read_text("utf-8").splitlines()
    parsed = (tmp_path / "wsj-only" / f"{dropout}-0.0-0.5" / "test.trees").read_text("utf-8")
    assert [re.findall(r" ([^() ]+)\)", tree) for tree in parsed.splitlines()] == [
        line.split() for line in words
    ]


def test_text_of_parsers_joins_the_treebank(tmp_path: Path, treebank: Path) -> None:
    silver = tmp_path / "silver"
    silver.with_suffix(".trees").write_text("(TOP (NP (NN dog)))\n" * 9, "utf-8")
    silver.with_suffix(".words").write_text("dog\n" * 9, "utf-8")
    done = run("semi-supervised", tmp_path, f"TREEBANK={treebank}", f"SILVER={silver}=0.5")
    check_score(done)
    assert "/silver.trees: 9 pairs" in done.stderr


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("wsj-only", [], "set TREEBANK=/folder of the sections"),
        ("semi-supervised", ["TREEBANK={treebank}"], "set SILVER=/prefix"),
        ("craft", [], "set TREES=/folder with train.mrg"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, treebank: Path, target: str, settings: list[str], message: str
) -> None:
    done = run(target, tmp_path, *(setting.format(treebank=treebank) for setting in settings))
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.glob("*/data"))


def test_text_of_another_number_of_trees_is_not_kept(tmp_path: Path, treebank: Path) -> None:
    done = run("wsj-only", tmp_path, f"TREEBANK={treebank}", "TRAIN_TREES=39832")
    assert done.returncode == 2
    assert "sections: error: " in done.stderr
    assert "hold 30 trees, not 39,832; " in done.stderr
    assert not (tmp_path / "wsj-text" / "train.trees").exists()


def test_another_treebank_takes_three_files(tmp_path: Path) -> None:
    trees = tmp_path / "trees"
    trees.mkdir()
    for name, part in {"train": TREES[:30], "dev": TREES[30:35], "test": TREES[35:]}.items():
        (trees / f"{name}.mrg").write_text("\n".join(part), "utf-8")
    subprocess.run(["gzip", trees / "train.mrg"], check=True)
    done = run("craft", tmp_path, f"TREES={trees}", f"TRAIN_FLAGS={TINY} --max-updates 9")
    check_score(done)
