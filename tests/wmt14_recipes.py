"""`make` in examples/wmt14 with recipes made tiny."""

import re
import subprocess
from pathlib import Path

from examples.demo.corpus import split
from tests.wmt_archives import Pairs, write_wmt14

SIZES = {"train": 400, "valid": 20, "test": 20}
TINY = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 400 --max-tokens 400 --save-every 1 --validate-every 5 --device cpu"
)
PREPARED = "--vocab-size 600 --workers 1"
SEARCHED = "--beam 2 --extra-length 2"


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
        f"TRAIN_FLAGS={TINY} {train}",
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
