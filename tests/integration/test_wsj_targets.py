"""What each target would run is what the paper says of its parsers, and exists."""

import re

import pytest

from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe, values_of
from nmtkit.config.toml import build
from tests.architecture.test_readme import check
from tests.recipes import WSJ, dry_run

SETTINGS = ("TREEBANK=tb", "SILVER=hc by=0.5", "TREES=trees")
PRESET = {"wsj-only": "wsj", "semi-supervised": "wsj-semi"}


def printed(*arguments: str) -> str:
    """Return the lines that make would run."""
    return "\n".join(dry_run(WSJ, *SETTINGS, *arguments))


def commands(*arguments: str) -> dict[str, str]:
    """Return the last line of each command of nmtkit that make would run."""
    lines = printed(*arguments).split("\n")
    return {line.split()[1]: line for line in lines if line.startswith("nmtkit ")}


@pytest.mark.parametrize("target", ["wsj-only", "semi-supervised", "craft"])
def test_every_command_exists(target: str) -> None:
    found = commands(target)
    assert {"trees", "preprocess", "train", "average-checkpoints", "translate", "score"} == {*found}
    for line in found.values():
        check(line)


def test_sections_and_their_trees_are_the_usual_ones() -> None:
    found = re.findall(r"sections 'tb' (\S+) --trees (\d+) > \S+/(\w+)\.trees", printed("wsj-only"))
    assert {*found} == {
        ("02-21", "39832", "train"),
        ("22", "1700", "valid"),
        ("23", "2416", "test"),
    }


@pytest.mark.parametrize("target", PRESET)
def test_a_parser_is_its_preset_with_the_paper_s_vocabulary_and_search(target: str) -> None:
    found = commands(target)
    preset = values_of(build(TrainRecipe, PRESETS[PRESET[target]]))
    assert f" --preset {PRESET[target]} " in found["train"]
    for flag in ("dropout", "attention_dropout", "learning_rate_scale"):
        (value,) = re.findall(rf" --{flag.replace('_', '-')} (\S+)", found["train"])
        assert float(value) == preset[flag]
    size = {"wsj-only": 16_000, "semi-supervised": 32_000}[target]
    assert f" --vocab-size {size} " in found["preprocess"]
    search = "--beam 21 --length-penalty 0.3 --max-length-offset 300 --stop-when proved"
    assert f" {search} < work/wsj-text/test" in found["translate"]
    assert "--reference work/wsj-text/test.trees " in found["score"]


def test_text_that_parsers_made_is_trained_on_with_its_weights() -> None:
    def trained_on(*arguments: str) -> list[str]:
        return re.findall(r"--train (\S+)", commands(*arguments)["preprocess"])

    assert trained_on("semi-supervised", "GOLD_WEIGHT=3") == [
        "work/wsj-text/train=3",
        "hc",
        "by=0.5",
    ]
    assert trained_on("wsj-only") == ["work/wsj-text/train"]


@pytest.mark.parametrize(("target", "part"), [("craft-cell", "valid"), ("craft", "test")])
def test_numbered_words_are_learnt_and_parsed_and_plain_ones_restored_and_scored(
    target: str, part: str
) -> None:
    lines = printed(target)
    found = commands(target)
    for learnt in ("train", "valid"):
        assert f" --{learnt} work/craft-text/numbered/{learnt} " in found["preprocess"]
    assert f" < work/craft-text/numbered/{part}.words " in found["translate"]
    assert f" trees restore --words work/craft-text/{part}.words " in lines
    assert f" --reference work/craft-text/{part}.trees " in found["score"]


def test_a_grid_trains_each_combination_once_and_a_cell_one_of_them() -> None:
    settings = ("DROPOUTS=0.1 0.3", "ATTENTION_DROPOUTS=0.0 0.2", "LEARNING_RATES=0.5 1")
    lines = printed("wsj-only-grid", *settings)
    cells = re.findall(
        r"nmtkit train .*--dropout (\S+) +--attention-dropout (\S+) --learning-rate-scale (\S+)",
        lines,
    )
    expected = [(d, a, r) for d in ("0.1", "0.3") for a in ("0.0", "0.2") for r in ("0.5", "1")]
    assert sorted(cells) == expected
    assert "test.trees <" not in lines  # section 23 has no part in the choice

    cell = printed("wsj-only-cell", "DROPOUT=0.3", "ATTENTION_DROPOUT=0.0", "LEARNING_RATE=1")
    assert cell.count("nmtkit train ") == 1
    assert "work/wsj-only/0.3-0.0-1/valid.json" in cell
