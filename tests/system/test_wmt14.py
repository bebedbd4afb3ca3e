"""The WMT14 recipe on real text: Tatoeba in place of its corpora, with its test sets."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmtkit.text.lines import read_lines
from tests.downloads import Behaviour, serve, write_wmt14
from tests.recipes import make
from tests.shared_data import DATA, needs_data

pytestmark = needs_data

NUM_TRAINING_PAIRS = 20_000
TINY = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 64 --feed-forward-size 128 --heads 2 "
    "--norm pre --warmup-updates 400 --update-tokens 2000 --max-tokens 2000 --max-updates 100 "
    "--save-every 20 --validate-every 0 --device cpu"
)


def pairs(source: Path, target: Path) -> list[tuple[str, str]]:
    return list(zip(read_lines(source), read_lines(target), strict=True))


def written(path: Path) -> Sequence[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def as_one_line(text: str) -> str:
    """Return a segment with its white space normalised as in fetching and in sacreBLEU."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("lang", "tokenizer", "metric"),
    [("de", "none", "paper-BLEU"), ("fr", "moses", "moses-BLEU")],
)
def test_real_text_goes_from_archives_to_a_score(
    tmp_path: Path, lang: str, tokenizer: str, metric: str
) -> None:
    tatoeba, wmt = DATA / "parallel" / f"tatoeba.en-{lang}", DATA / "parallel" / "wmt"
    training = pairs(tatoeba / "train.en.gz", tatoeba / f"train.{lang}.gz")[:NUM_TRAINING_PAIRS]
    valid = pairs(wmt / "newstest2013.en", wmt / f"newstest2013.{lang}")
    test = pairs(wmt / f"newstest2014.en-{lang}.en", wmt / f"newstest2014.en-{lang}.{lang}")
    write_wmt14(tmp_path / "server", lang, training, valid, test)
    with serve(tmp_path / "server", Behaviour()) as address:
        done = make(
            *(f"en-{lang}-base", f"WORK={tmp_path / 'work'}", f"MIRROR={address}"),
            *(f"TOKENIZER={tokenizer}", f"TRAIN_FLAGS={TINY}"),
            f"PREPROCESS_FLAGS=--config en-{lang}.toml --vocab-size 4000",
            "TRANSLATE_FLAGS=--beam 2 --max-output-length 40",
        )
    assert done.returncode == 0, done.stderr
    text = tmp_path / "work" / f"en-{lang}-v9" / "text"
    assert written(text / "newstest2014.en") == [as_one_line(source) for source, _ in test]
    assert written(text / f"newstest2014.{lang}") == [as_one_line(target) for _, target in test]
    (tested,) = (tmp_path / "work").glob(f"*/base/test.{lang}")
    assert len(written(tested)) == len(test)
    scores = dict(re.findall(r"^(\S+) = (\d+\.\d+) ", done.stdout, re.MULTILINE))
    assert [*scores] == ["BLEU", "chrF2", metric]
