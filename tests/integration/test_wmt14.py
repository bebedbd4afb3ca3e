"""`make` in examples/wmt14: from archives on a server to a score, with recipes made tiny."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.demo.corpus import split, write
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import loads
from tests.file_server import Behaviour, serve
from tests.recipes import WMT14, make
from tests.wmt_archives import Pairs, write_wmt14

SIZES = {"train": 400, "valid": 20, "test": 20}
TINY = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--update-tokens 400 --max-tokens 400 --save-every 1 --validate-every 5 --device cpu"
)
PREPARED = "--vocab-size 600 --workers 1"
SEARCHED = "--beam 2 --extra-length 2"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, behaviour: Behaviour) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    parts: dict[str, Pairs] = {
        name: [(pair.english, pair.german) for pair in pairs]
        for name, pairs in split(seed=3, sizes=SIZES).items()
    }
    for lang in ("de", "fr"):
        write_wmt14(folder / lang, lang, parts["train"], parts["valid"], parts["test"])
    with serve(folder, behaviour) as address:
        yield address


@pytest.fixture(scope="module")
def behaviour() -> Behaviour:
    return Behaviour()


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
    assert done.returncode == 0, done.stderr
    assert re.search(r"^BLEU = \d+\.\d+ ", done.stdout, re.MULTILINE)
    assert re.search(rf"^{metric} = \d+\.\d+ ", done.stdout, re.MULTILINE)
    assert (folder / f"test.{lang}").read_text("utf-8").count("\n") == SIZES["test"]


def test_from_the_download_to_a_score(tmp_path: Path, server: str, behaviour: Behaviour) -> None:
    behaviour.cuts = [500]
    behaviour.asked.clear()
    arguments = (
        *("en-de-base", f"WORK={tmp_path}", f"MIRROR={server}/de"),
        *settings(PREPARED, "--max-updates 5"),
    )
    done = make(*arguments)
    check_result(done, tmp_path / "en-de-v9" / "base", "de", "paper-BLEU")
    assert "ended after 500 of" in done.stderr
    asked = [path for path, _ in behaviour.asked]
    assert len(asked) == 6
    assert len(set(asked)) == 5  # one was cut off

    again = make(*arguments)
    check_result(again, tmp_path / "en-de-v9" / "base", "de", "paper-BLEU")
    assert " train " not in again.stdout
    assert len(behaviour.asked) == 6


def test_english_french_has_five_corpora_and_its_own_dropout(tmp_path: Path, server: str) -> None:
    done = make(
        *("en-fr-big", f"WORK={tmp_path}", f"MIRROR={server}/fr", "TOKENIZER=moses"),
        *settings(f"--config en-fr.toml {PREPARED}", "--max-updates 5"),
        "AVERAGE=5",
    )
    folder = tmp_path / "en-fr-v9-moses"
    check_result(done, folder / "big", "fr", "moses-BLEU")
    read = re.findall(r"^read .*text/(\S+?)\.en(?:\.gz)? and ", done.stderr, re.MULTILINE)
    training = ["europarl-v7", "commoncrawl", "news-commentary-v9", "undoc.2000", "giga-fren"]
    assert read == [*training, "newstest2013"]
    text = (folder / "big" / "run" / "config.toml").read_text("utf-8")
    recipe = loads(text, TrainRecipe, "config.toml")
    assert recipe.model.dropout == 0.1
    assert recipe.checkpoints.keep == 20


def test_a_corpus_of_ones_own_takes_four_lines(tmp_path: Path) -> None:
    write(split(seed=4, sizes=SIZES), tmp_path / "corpus")
    original = (WMT14 / "corpus.mk").read_text("utf-8")
    own = original
    for name, value in {
        "CORPUS": "corpus",
        "SOURCE": "de",
        "TARGET": "en",
        "RECIPE": "recipe.toml",
    }.items():
        own, count = re.subn(rf"^{name} \?= .*", f"{name} ?= {value}", own, flags=re.MULTILINE)
        assert count == 1
    (tmp_path / "own.mk").write_text(own, encoding="utf-8")
    (tmp_path / "recipe.toml").write_text((WMT14 / "base.toml").read_text("utf-8"), "utf-8")
    done = make("-f", "own.mk", *settings(PREPARED, "--max-updates 5"), folder=tmp_path)
    check_result(done, tmp_path / "corpus" / "work" / "recipe", "en")


def test_make_stops_at_an_archive_that_is_not_to_be_had(tmp_path: Path, server: str) -> None:
    done = make("en-de-big", f"WORK={tmp_path}", f"MIRROR={server}/nowhere")
    assert done.returncode == 2
    assert "fetch: error: http" in done.stderr
    assert "404" in done.stderr
    assert not list((tmp_path / "en-de-v9" / "text").iterdir())


def test_rows_of_table_3_are_trained_on_their_own_and_stand_in_the_table(tmp_path: Path) -> None:
    write(split(seed=5, sizes=SIZES), tmp_path / "corpus")
    arguments = (
        *("SCALE=tiny", f"WORK={tmp_path}", f"CORPUS={tmp_path / 'corpus'}"),
        *(f"PREPROCESS_FLAGS={PREPARED}", f"TRAIN_FLAGS={TINY} --max-updates 5"),
    )
    done = make("table3-B1", *arguments)
    assert done.returncode == 0, done.stderr
    assert "Table 3" not in done.stdout

    done = make("table3", "ROWS=D3 B1", *arguments)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"table3 recipe (\S+) ", done.stdout) == ["D3"]
    lines = (tmp_path / "table3-tiny" / "table3.md").read_text("utf-8").split("\n")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    headers, _, *rows = table
    results = {row[0]: dict(zip(headers, row, strict=True)) for row in rows}
    for row in ("B1", "D3"):
        assert float(results[row]["PPL"].replace(",", "")) > 1
        assert float(results[row]["params"]) > 0
        assert results[row]["BLEU"] != "-"
    assert results["base"]["PPL"] == "-"
    assert any("differences between rows are noise" in line for line in lines)
    assert any(line.startswith("- not there yet: base, A1, ") for line in lines)
