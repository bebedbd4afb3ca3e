"""The recipes of table 3 are the paper's, or smaller by one rule for all rows."""

import json
import re
from pathlib import Path

import pytest

from examples.wmt14.table3 import HEADERS, SCORE, recipe, table
from nmtkit.config.presets import PRESET_OF_ROW, PRESETS
from nmtkit.config.schema import TrainRecipe, values_of
from nmtkit.config.toml import build
from nmtkit.errors import DamagedError
from nmtkit.reporting.paper import TABLE_3
from tests.architecture.test_readme import check
from tests.messages import refuses
from tests.recipes import WMT14, dry_run
from tests.unit.reporting.builders import run_of, validated, write_run

EVALUATION = {"keep", "validate_metrics", "max_tokens"}


def commands(target: str, *settings: str) -> str:
    """Return the lines that a target would run."""
    return "\n".join(dry_run(WMT14, target, *settings))


def shown(folder: Path, scale: str = "paper") -> dict[str, dict[str, str]]:
    """Return the cells of the table by row and column."""
    section = table(folder, scale)
    assert section.table is not None
    texts = [[cell.text for cell in row] for row in section.table.rows]
    return {row[0].split(":")[0]: dict(zip(HEADERS, row, strict=True)) for row in texts}


@pytest.mark.parametrize("row", PRESET_OF_ROW)
def test_at_the_paper_s_scale_a_row_is_its_preset(row: str) -> None:
    preset = values_of(build(TrainRecipe, PRESETS[PRESET_OF_ROW[row]]))
    values = values_of(recipe(row, "paper"))
    assert {name for name in values if values[name] != preset[name]} <= EVALUATION


def test_a_tiny_row_differs_from_base_as_in_the_paper() -> None:
    def differences(row: str, scale: str) -> set[str]:
        one, base = values_of(recipe(row, scale)), values_of(recipe("base", scale))
        # How often big is saved is not what the table is about.
        return {name for name in one if one[name] != base[name]} - {"save_every", "validate_every"}

    for row in PRESET_OF_ROW:
        assert differences(row, "tiny") == differences(row, "paper"), row
        large, small = (recipe(row, scale).model for scale in ("paper", "tiny"))
        widths = [[model.heads * size for size in model.head_sizes] for model in (large, small)]
        assert widths[0] == [8 * width for width in widths[1]], row


def test_the_makefile_names_every_row() -> None:
    text = (WMT14 / "table3.mk").read_text("utf-8")
    (rows,) = re.findall("^ALL_ROWS := (.*)$", text, re.MULTILINE)
    assert rows.split() == list(TABLE_3)


@pytest.mark.parametrize("scale", ["paper", "tiny"])
def test_a_row_is_trained_translated_and_scored_by_commands_that_exist(scale: str) -> None:
    text = commands("table3-C1", f"SCALE={scale}", "CORPUS=/corpus")
    found = {line.split()[1]: line for line in text.split("\n") if line.startswith("nmtkit ")}
    assert list(found) == ["preprocess", "train", "translate", "score"]
    for line in found.values():
        check(line)
    search = "--beam 4 --length-penalty 0.6 --max-length-offset 50 --stop-when proved"
    assert f"/C1/run/last {search}" in found["translate"]
    development = "/corpus/valid" if scale == "tiny" else "work/en-de-v9/text/newstest2013"
    assert f" < {development}.en > " in found["translate"]
    assert f"--reference {development}.de " in found["score"]


def test_rows_can_be_chosen_and_the_table_is_written_after_them() -> None:
    text = commands("table3", "ROWS=C3 A1")
    assert re.findall(r"table3 recipe (\S+) ", text) == ["C3", "A1"]
    assert text.rindex("table3 table ") > text.rindex("nmtkit score")
    assert "recipe" not in commands("table3", "ROWS=")


def test_a_scored_row_is_next_to_the_paper_s_and_others_are_open(tmp_path: Path) -> None:
    run = run_of(validations=validated([2.0, 1.6], [None, None]))
    checkpoint = write_run(tmp_path / "A1" / "run", run) / "checkpoints" / "00001000"
    checkpoint.mkdir(parents=True)
    (checkpoint / "manifest.json").write_text('{"parameters": 63082496, "codec": "abc"}')
    scores = {"BLEU": {"score": 24.04}, "paper-BLEU": {"score": 24.96}}
    (tmp_path / "A1" / SCORE).write_text(json.dumps(scores))
    rows = shown(tmp_path)
    assert list(rows) == list(TABLE_3)
    filled = {name: text for name, text in rows["A1"].items() if text}
    assert filled == {
        **{"row": "A1", "h": "1", "d_k": "512", "d_v": "512"},
        **{"PPL paper": "5.29", "PPL": "4.95", "BLEU paper": "24.9", "BLEU": "25.0"},
        **{"sacreBLEU": "24.0", "params": "63.1"},
    }
    assert (rows["C1"]["N"], rows["C1"]["PPL"], rows["C1"]["BLEU"]) == ("2", "-", "-")
    missing = table(tmp_path, "paper").sentences[-1]
    assert missing.startswith("not there yet: base, A2, ")


def test_incomplete_scores_are_refused(tmp_path: Path) -> None:
    (tmp_path / "A1").mkdir()
    write_run(tmp_path / "A1" / "run", run_of())
    (tmp_path / "A1" / SCORE).write_text("")
    with refuses(DamagedError, "A1/score.json JSON"):
        table(tmp_path, "tiny")
