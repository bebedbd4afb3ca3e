"""What make says in an example without a setting that it needs, or with one that is wrong."""

from pathlib import Path

import pytest

from tests.recipes import ROOT, make

TEXT = "set CORPUS=/folder with train, valid and test text"


@pytest.mark.sampled(every=1)
@pytest.mark.parametrize(
    ("example", "line", "advice"),
    [
        ("adaptation", "CORPUS=", "set CORPUS=/folder with tatoeba.en-de, tatoeba.en-fr and"),
        ("alignment", "CORPUS=", TEXT),
        ("back-translation", "CORPUS=", TEXT),
        ("distillation", "CORPUS=", TEXT),
        ("markup", "MODEL=", "set MODEL=/path"),
        ("multilingual", "CORPUS=", "set CORPUS=/folder with en-nl.train.en, en-nl.train.nl and"),
        ("tatoeba", "CORPUS=", TEXT),
        ("terminology", "CORPUS=", TEXT),
        ("wmt14", "TOKENIZER=mosses", "TOKENIZER is mosses; set it to none or moses"),
        ("wmt14", "SCALE=tinny", "SCALE is tinny; set it to paper or tiny"),
        ("wmt14", "SCALE=tiny TOKENIZER=moses", "TOKENIZER has no effect with SCALE=tiny; leave"),
        ("wmt14", "table3-base SCALE=tiny CORPUS=", "set CORPUS=/folder with train and valid text"),
        ("wsj", "wsj-only TREEBANK=", "set TREEBANK=/folder of the sections"),
        # `text` is what would be made of a treebank before.
        ("wsj", "semi-supervised SILVER= text=", "set SILVER=/prefix of text"),
        ("wsj", "craft TREES=", "set TREES=/folder with train.mrg, dev.mrg and test.mrg"),
    ],
)
def test_make_says_which_setting_to_give_and_makes_nothing(
    example: str, line: str, advice: str, tmp_path: Path
) -> None:
    done = make(*line.split(), f"WORK={tmp_path}", folder=ROOT / "examples" / example)
    assert done.returncode == 2
    assert advice in done.stderr
    assert not list(tmp_path.rglob("data"))
