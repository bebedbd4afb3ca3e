"""The speedrun's table: what enters, and the p-value of a single seed against that of `score`."""

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

REFERENCE = [f"the {word} house stands near the {word} river today" for word in "abcdefghijklmnop"]


def worsened(number: int) -> list[str]:
    """Return the reference with other words in its first lines."""
    return [
        line.replace("near the", "by a") if index < number else line
        for index, line in enumerate(REFERENCE)
    ]


def write_row(corpus: Path, name: str, seeds: Sequence[Sequence[str]]) -> Path:
    for split in ("valid", "test"):
        (corpus / f"{split}.de").write_text("\n".join(REFERENCE) + "\n")
        for seed, lines in enumerate(seeds, 1):
            folder = corpus / name / str(seed)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{split}.de").write_text("\n".join(lines) + "\n")
    return corpus / name


@pytest.mark.parametrize(
    ("wrong_lines", "entry"),
    [
        pytest.param([2, 2, 2], "yes", id="every-seed-is-better"),
        pytest.param([0, 0, 16], "no", id="one-seed-is-worse"),
        pytest.param([14, 14, 14], "no", id="equal"),
        pytest.param([13, 13, 13], "no", id="better-by-chance"),
        pytest.param([2, 2], "no", id="a-seed-is-missing"),
    ],
)
def test_a_change_enters_only_if_every_seed_is_better_and_chance_is_unlikely(
    tmp_path: Path, wrong_lines: list[int], entry: str
) -> None:
    old = write_row(tmp_path, "old", [worsened(14)] * 3)
    new = write_row(tmp_path, "new", [worsened(number) for number in wrong_lines])
    *_, first, second = table(tmp_path, [old, new], "de")
    assert first.startswith("| old |")
    assert first.endswith("|  |  |")
    assert second.startswith("| new |")
    assert second.endswith(f" {entry} |")


def test_with_one_seed_p_is_that_of_score(tmp_path: Path) -> None:
    old, new = worsened(9), worsened(6)
    rows = [write_row(tmp_path, name, [lines]) for name, lines in (("old", old), ("new", new))]
    (metric,) = make_metrics(MetricsConfig(metric="bleu"))
    texts = Texts([Text("old", old), Text("new", new)], [Text("reference", REFERENCE)])
    _, score = score_systems(metric, texts, SignificanceConfig(paired_bs=True))
    assert f"| {score.p_value:.3f}, {score.p_value:.3f} |" in table(tmp_path, rows, "de")[-1]


def test_the_mean_is_that_of_the_seeds(tmp_path: Path) -> None:
    row = write_row(tmp_path, "row", [REFERENCE, worsened(16)])
    (metric,) = make_metrics(MetricsConfig(metric="bleu"))
    low = metric.score(metric.count(worsened(16), [REFERENCE]), resamples=0).score
    cell = table(tmp_path, [row], "de")[-1].split(" | ")[1]
    assert cell.startswith(f"{(100 + low) / 2:.1f} \u00b1 ")
    assert cell.endswith(f"(100.0, {low:.1f})")


def test_translations_that_do_not_fit_the_reference_are_named(tmp_path: Path) -> None:
    row = write_row(tmp_path, "row", [REFERENCE])
    (row / "1" / "test.de").write_text("one line\n")
    with refuses(DataError, "row/1/test.de 1 test.de 16; translation reference"):
        table(tmp_path, [row], "de")
    with refuses(DataError, "none SEED/valid; make speedrun"):
        table(tmp_path, [tmp_path / "none"], "de")
