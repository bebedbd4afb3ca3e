"""The road of examples/wmt14 with real text: Tatoeba to train on, newstest2013 and 2014 whole."""

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.file_server import Behaviour, serve
from tests.integration.test_wmt14 import make
from tests.shared_data import DATA, needs_data
from tests.wmt_archives import write_wmt14

SMALL = (
    "--encoder-layers 2 --decoder-layers 2 --model-size 64 --feed-forward-size 256 --heads 4 "
    "--update-tokens 2000 --max-tokens 2000 --warmup-updates 100 --max-updates 500 "
    "--save-every 100 --validate-every 100 --no-validate-bleu --device cpu"
)


def read(name: str) -> list[str]:
    path = DATA / "parallel" / name
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode().removesuffix("\n").split("\n")


def as_in_sgm(lines: Sequence[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


@needs_data
@pytest.mark.parametrize("lang", ["de", "fr"])
def test_real_text_goes_from_archives_to_a_score(tmp_path: Path, lang: str) -> None:
    pair = f"en-{lang}"
    training, valid, test = (
        list(zip(read(source), read(target), strict=True))
        for source, target in (
            (f"tatoeba.{pair}/train.en.gz", f"tatoeba.{pair}/train.{lang}.gz"),
            ("wmt/newstest2013.en", f"wmt/newstest2013.{lang}"),
            (f"wmt/newstest2014.{pair}.en", f"wmt/newstest2014.{pair}.{lang}"),
        )
    )
    write_wmt14(tmp_path / "server", lang, training, valid, test)
    with serve(tmp_path / "server", Behaviour(cuts=[100_000])) as address:
        done = make(
            *(f"{pair}-base", f"WORK={tmp_path}", f"MIRROR={address}"),
            f"PREPROCESS_FLAGS=--config {pair}.toml --vocab-size 4000",
            f"TRAIN_FLAGS={SMALL}",
            "TRANSLATE_FLAGS=--beam 1 --extra-length 5",
        )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^BLEU = \d+\.\d+ ", done.stdout, re.MULTILINE)
    folder = tmp_path / f"{pair}-v9"
    for side, suffix in enumerate(("en", lang)):
        found = (folder / "text" / f"newstest2014.{suffix}").read_text("utf-8").split("\n")
        assert found[:-1] == as_in_sgm([lines[side] for lines in test])
    records = map(json.loads, (folder / "base" / "run" / "metrics.jsonl").open(encoding="utf-8"))
    losses = [one["loss_per_token"] for one in records if one["event"] == "validation"]
    assert losses[-1] < losses[0]
    assert (folder / "base" / f"test.{lang}").read_text("utf-8").count("\n") == len(test)
