"""The speedrun: what enters, statistics next to those of `score`, and what make runs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.tatoeba.speedrun import table
from nmtkit.config.metrics import MetricsConfig, SignificanceConfig
from nmtkit.errors import DataError
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.significance import score_systems
from nmtkit.evaluation.texts import Text, Texts
from tests.messages import refuses
from tests.recipes import TATOEBA, dry_run, make

REFERENCES = {
    split: [f"the {word} {thing} stands near the {word} river today" for word in "abcdefghijklmnop"]
    for split, thing in (("valid", "house"), ("test", "old tree"))
}


def worsened(number: int, split: str = "test") -> list[str]:
    """Return a reference with other words in its first lines."""
    return [
        line.replace("near the", "by a") if index < number else line
        for index, line in enumerate(REFERENCES[split])
    ]


def write_row(corpus: Path, name: str, valid: Sequence[int], test: Sequence[int]) -> Path:
    """Write a row by the number of worsened lines of each seed."""
    for split, numbers in (("valid", valid), ("test", test)):
        (corpus / f"{split}.de").write_text("\n".join(REFERENCES[split]) + "\n")
        for seed, number in enumerate(numbers, 1):
            folder = corpus / name / str(seed)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{split}.de").write_text("\n".join(worsened(number, split)) + "\n")
    return corpus / name


@pytest.mark.parametrize(
    ("valid", "test", "entry"),
    [
        pytest.param([2, 2, 2], [2, 2, 2], "yes", id="better"),
        pytest.param([0, 0, 16], [2, 2, 2], "no", id="one-seed-is-worse-on-valid"),
        pytest.param([2, 2, 2], [0, 0, 16], "no", id="one-seed-is-worse-on-test"),
        pytest.param([14, 14, 14], [2, 2, 2], "no", id="equal-on-valid"),
        pytest.param([2, 2, 2], [13, 13, 13], "no", id="better-by-chance-on-test"),
    ],
)
def test_a_change_enters_only_if_every_seed_is_better_and_chance_is_unlikely(
    tmp_path: Path, valid: list[int], test: list[int], entry: str
) -> None:
    old = write_row(tmp_path, "old", [14] * 3, [14] * 3)
    new = write_row(tmp_path, "new", valid, test)
    *_, first, second = table(tmp_path, [old, new], "de")
    assert first.startswith("| old |")
    assert first.endswith("|  |  |")
    assert second.startswith("| new |")
    assert second.endswith(f" {entry} |")


def test_fewer_than_three_seeds_do_not_enter(tmp_path: Path) -> None:
    old = write_row(tmp_path, "old", [14] * 2, [14] * 2)
    new = write_row(tmp_path, "new", [2, 2], [2, 2])
    assert table(tmp_path, [old, new], "de")[-1].endswith(" no |")


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_p_and_interval_of_equal_seeds_are_those_that_score_has_for_one(
    num_seeds: int, tmp_path: Path
) -> None:
    rows = [
        write_row(tmp_path, name, [number + 1] * num_seeds, [number] * num_seeds)
        for name, number in (("old", 9), ("new", 6))
    ]
    (metric,) = make_metrics(MetricsConfig(metric="bleu"))
    p_values, cells = [], []
    for split, more in (("valid", 1), ("test", 0)):
        systems = [Text(name, worsened(n + more, split)) for name, n in (("old", 9), ("new", 6))]
        texts = Texts(systems, [Text("reference", REFERENCES[split])])
        _, tested = score_systems(metric, texts, SignificanceConfig(paired_bs=True))
        _, score = score_systems(metric, texts, SignificanceConfig(confidence=True))
        assert score.interval is not None
        p_values.append(f"{tested.p_value:.3f}")
        cells.append(f"{score.score:.1f} \u00b1 {score.interval.half_width:.1f} (")
    line = table(tmp_path, rows, "de")[-1]
    assert f"| {', '.join(p_values)} |" in line
    assert all(f"| {cell}" in line for cell in cells)


def test_the_mean_is_that_of_the_seeds(tmp_path: Path) -> None:
    row = write_row(tmp_path, "row", [0, 0], [0, 16])
    (metric,) = make_metrics(MetricsConfig(metric="bleu"))
    low = metric.score(metric.count(worsened(16), [REFERENCES["test"]]), resamples=0).score
    cell = table(tmp_path, [row], "de")[-1].split(" | ")[2]
    assert cell.startswith(f"{(100 + low) / 2:.1f} \u00b1 ")
    assert cell.endswith(f"(100.0, {low:.1f})")


def test_what_cannot_be_compared_is_named(tmp_path: Path) -> None:
    old = write_row(tmp_path, "old", [1, 1], [1, 1])
    new = write_row(tmp_path, "new", [1], [1])
    with refuses(DataError, "new 2; make SEEDS"):
        table(tmp_path, [old, new], "de")
    with refuses(DataError, "none SEED/valid.de; make speedrun"):
        table(tmp_path, [tmp_path / "none"], "de")
    (new / "1" / "test.de").write_text("one line\n")
    with refuses(DataError, "new/1/test.de 1 test.de 16; translation reference"):
        table(tmp_path, [new], "de")


def test_make_trains_and_translates_each_seed_with_the_change() -> None:
    flags = "TRAIN_FLAGS=--warmup-updates 200"
    commands = dry_run(TATOEBA, "speedrun", "CORPUS=/c d", "ROW=new", "AGAINST=recipe", flags)
    assert [line for line in commands if line.startswith("nmtkit train")] == [
        "nmtkit train work/data --config recipe.toml --threads 0 --warmup-updates 200 "
        f"--seed {seed} --out work/speedrun/new/{seed}/run"
        for seed in (1, 2, 3)
    ]
    outputs = [line.split()[-1] for line in commands if line.startswith("nmtkit translate")]
    splits = ("valid", "test")
    assert outputs == [f"work/speedrun/new/{seed}/{one}.de" for seed in (1, 2, 3) for one in splits]
    assert commands[-1].split()[-3:] == ["de", "work/speedrun/recipe", "work/speedrun/new"]


def test_the_row_of_the_recipe_has_no_changes(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "data").mkdir(parents=True)
    flags = "TRAIN_FLAGS=--warmup-updates 200"
    done = make("speedrun", "CORPUS=/corpus", f"WORK={work}", flags, folder=TATOEBA)
    assert done.returncode == 2
    assert "ROW=name AGAINST=recipe" in done.stderr
