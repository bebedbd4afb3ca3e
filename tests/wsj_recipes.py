"""`make` in examples/wsj with a tiny treebank and tiny parsers."""

import re
import subprocess
from itertools import product
from pathlib import Path

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


def write_sections(folder: Path) -> Path:
    """Write a treebank laid out as the Penn Treebank is; returns its folder."""
    sections = {"02": [TREES[:10], TREES[10:20]], "03": [TREES[20:30]], "22": [TREES[30:35]]}
    write_treebank(folder, {**sections, "23": [TREES[35:]]})
    return folder


def run(target: str, work: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    """Make a target, as quickly as can be."""
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
    """Fail unless the test set was parsed and scored."""
    assert done.returncode == 0, done.stderr
    (score,) = re.findall(r"^F1 = .*$", done.stdout, re.MULTILINE)
    assert re.search(r"\(sentences = 5 errors = 0 skipped = 0 ", score), score
