"""`make` in the folder of an example, with this Python's nmtkit and recipes made tiny."""

import os
import re
import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path

from examples.demo.corpus import split
from tests.downloads import Pairs, write_wmt14
from tests.trees import write_treebank

ROOT = Path(__file__).parents[1]
WMT14 = ROOT / "examples" / "wmt14"
WSJ = ROOT / "examples" / "wsj"
ADAPTATION = ROOT / "examples" / "adaptation"
MULTILINGUAL = ROOT / "examples" / "multilingual"
BACK_TRANSLATION = ROOT / "examples" / "back-translation"
DISTILLATION = ROOT / "examples" / "distillation"
ALIGNMENT = ROOT / "examples" / "alignment"
MARKUP = ROOT / "examples" / "markup"
TATOEBA = ROOT / "examples" / "tatoeba"
TERMINOLOGY = ROOT / "examples" / "terminology"
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


def dry_run(folder: Path, *arguments: str) -> list[str]:
    """Return the commands that make would run there, each on one line."""
    done = subprocess.run(
        ["make", "-n", "WORK=work", "NMTKIT=nmtkit", "PYTHON=python3", *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout.replace("\\\n", " ").splitlines()


# --------------------------------------------------------------------------------------- wmt14

SIZES = {"train": 400, "valid": 20, "test": 20}
WMT14_TRAIN = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 400 --max-tokens 400 --save-every 1 --validate-every 5 --device cpu"
)
PREPARED = "--vocab-size 600 --workers 1"
SEARCHED = "--beam 2 --max-length-offset 2"


def write_server(folder: Path, lang: str) -> None:
    """Write the archives of a language pair as their servers have them."""
    parts: dict[str, Pairs] = {
        name: [(pair.english, pair.german) for pair in pairs]
        for name, pairs in split(seed=3, sizes=SIZES).items()
    }
    write_wmt14(folder / lang, lang, parts["train"], parts["valid"], parts["test"])


def settings(*flags: str) -> list[str]:
    """Return what makes a target quick."""
    preprocess, train = flags
    return [
        f"PREPROCESS_FLAGS={preprocess}",
        f"TRAIN_FLAGS={WMT14_TRAIN} {train}",
        f"TRANSLATE_FLAGS={SEARCHED}",
    ]


def check_result(
    done: subprocess.CompletedProcess[str], folder: Path, lang: str, metric: str = "chrF2"
) -> None:
    """Fail unless a text of the test set's length was scored."""
    assert done.returncode == 0, done.stderr
    assert re.search(r"^BLEU = \d+\.\d+ ", done.stdout, re.MULTILINE)
    assert re.search(rf"^{metric} = \d+\.\d+ ", done.stdout, re.MULTILINE)
    assert (folder / f"test.{lang}").read_text("utf-8").count("\n") == SIZES["test"]


# ----------------------------------------------------------------------------------------- wsj

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
WSJ_TRAIN = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 200 --max-tokens 200 --max-updates 6 --save-every 1 --validate-every 6 "
    "--warmup-updates 10 --device cpu"
)
SHORT = "--max-length-offset 20"  # what an untrained parser would fill


def write_sections(folder: Path) -> Path:
    """Write a treebank laid out as the Penn Treebank is; returns its folder."""
    sections = {"02": [TREES[:10], TREES[10:20]], "03": [TREES[20:30]], "22": [TREES[30:35]]}
    write_treebank(folder, {**sections, "23": [TREES[35:]]})
    return folder


def make_wsj(target: str, work: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    """Make a target, as quickly as can be."""
    return make(
        *(target, f"WORK={work}", "TRAIN_SECTIONS=02-03", f"TRAIN_FLAGS={WSJ_TRAIN} {SHORT}"),
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
