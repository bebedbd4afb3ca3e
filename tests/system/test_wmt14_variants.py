"""`make` in examples/wmt14: pairs, corpora, the rows of table 3; recipes made tiny."""

import re
from pathlib import Path

from examples.demo.corpus import split, write
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import loads
from tests.downloads import Behaviour, serve
from tests.recipes import (
    PREPARED,
    SIZES,
    WMT14,
    WMT14_TRAIN,
    check_result,
    make,
    settings,
    write_server,
)


def test_from_the_download_to_a_score(tmp_path: Path) -> None:
    write_server(tmp_path / "server", "de")
    behaviour = Behaviour()
    behaviour.cuts = [500]
    with serve(tmp_path / "server", behaviour) as server:
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


def test_english_french_has_five_corpora_and_its_own_dropout(tmp_path: Path) -> None:
    write_server(tmp_path / "server", "fr")
    with serve(tmp_path / "server", Behaviour()) as server:
        done = make(
            *("en-fr-big", f"WORK={tmp_path}", f"MIRROR={server}/fr", "TOKENIZER=moses"),
            *settings(f"--config en-fr.toml {PREPARED}", "--max-updates 5"),
            "AVERAGE=5",
        )
    folder = tmp_path / "en-fr-v9-moses"
    check_result(done, folder / "big", "fr", "moses-BLEU")
    read = re.findall(r"^reading .*text/(\S+?)\.en(?:\.gz)? and ", done.stderr, re.MULTILINE)
    training = ["europarl-v7", "commoncrawl", "news-commentary-v9", "undoc.2000", "giga-fren"]
    assert read == ["newstest2013", *training]
    text = (folder / "big" / "run" / "config.toml").read_text("utf-8")
    recipe = loads(text, TrainRecipe, "config.toml")
    assert recipe.model.dropout == 0.1
    assert recipe.checkpoints.keep == 20


def test_a_user_s_corpus_needs_four_changed_lines(tmp_path: Path) -> None:
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


def test_rows_of_table_3_are_trained_separately_and_collected_in_the_table(tmp_path: Path) -> None:
    write(split(seed=5, sizes=SIZES), tmp_path / "corpus")
    arguments = (
        *("SCALE=tiny", f"WORK={tmp_path}", f"CORPUS={tmp_path / 'corpus'}"),
        *(f"PREPROCESS_FLAGS={PREPARED}", f"TRAIN_FLAGS={WMT14_TRAIN} --max-updates 5"),
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
