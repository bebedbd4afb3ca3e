"""`nmtkit report`, on two runs that were trained."""

import json
import re
import subprocess
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmtkit.config.schema import SeedConfig
from nmtkit.config.training import ValidationConfig
from nmtkit.reporting.runs import read_runs
from nmtkit.training.run import train
from tests.commands import as_text, nmtkit
from tests.messages import refused
from tests.tiny import (
    WORDS,
    prepared,
    tiny_corpus,
    tiny_dataset,
    tiny_recipe,
    tiny_train_recipe,
    write_lines,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs plain and dropout, of eight updates and two validations."""
    root = tmp_path_factory.mktemp("report")
    data = tiny_dataset(root)
    recipe = tiny_train_recipe(max_updates=8, dropout=0.0)
    train(recipe, data, root / "plain")
    train(replace(recipe, model=replace(recipe.model, dropout=0.1)), data, root / "dropout")
    return root


def report(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return as_text(nmtkit("report", *line.split(), folder=folder))


def tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of the table below each heading, without the rule."""
    sections = (section.split("\n") for section in text.split("## ")[1:])
    return {
        title: [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in lines
            if re.match(r"\| [^-]", line)
        ]
        for title, *lines in sections
    }


def test_two_runs_are_compared(folder: Path) -> None:
    done = report(folder, "plain dropout")
    assert (done.returncode, done.stderr) == (0, "")
    found = tables(done.stdout)
    assert [row[:2] for row in found["Summary"]] == [
        ["run", "updates"],
        ["plain", "8"],
        ["dropout", "8"],
    ]
    assert found["Settings that differ"] == [
        ["setting", "plain", "dropout"],
        ["model.dropout", "0.0", "0.1"],
    ]
    assert [row[0] for row in found["Validations"]] == ["update", "4", "8"]
    assert "## Warnings\n\n- none\n" in done.stdout


@pytest.mark.parametrize("differs", ["languages", "validation texts"])
def test_the_difference_is_named_and_nothing_is_bold_across_it(differs: str, folder: Path) -> None:
    root = folder / differs.replace(" ", "-")
    root.mkdir()
    train_text, valid_text = tiny_corpus(root)
    recipe = tiny_recipe(train_text, valid_text)
    if differs == "languages":
        for name in ("train", "valid"):
            (root / f"{name}.de").rename(root / f"{name}.fr")
        recipe = replace(recipe, corpus=replace(recipe.corpus, target_lang="fr"))
    else:
        recipe = replace(recipe, corpus=replace(recipe.corpus, valid=(train_text,)))
    prepared(recipe, root / "data")
    train(tiny_train_recipe(max_updates=8, dropout=0.0), root / "data", root / "other")
    done = report(folder, f"plain {root.name}/other")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"The runs cannot be compared: the {differs} differ (plain")
    summary, _, rest = done.stdout.partition("## Warnings\n\n")
    assert "**" not in summary
    assert rest.startswith(f"- the {differs} differ (plain")


def test_a_run_that_was_continued_cost_what_an_uninterrupted_one_did(folder: Path) -> None:
    recipe = tiny_train_recipe(max_updates=4, dropout=0.0)
    train(recipe, folder / "data", folder / "continued")
    longer = replace(recipe, training=replace(recipe.training, max_updates=8))
    (half,) = read_runs([folder / "continued"])
    train(longer, folder / "data", folder / "continued")
    continued, whole = read_runs([folder / "continued", folder / "plain"])
    assert continued.operations == whole.operations
    assert half.operations is not None
    assert whole.operations is not None
    assert half.operations < whole.operations
    assert whole.languages == "en-de"


def test_the_verdict_has_the_p_value_of_score_on_the_translations(tmp_path: Path) -> None:
    # Runs that learn enough from few lines that their translations differ.
    lines = [" ".join(line) for line in permutations(WORDS[:5], 3)]
    write_lines(tmp_path / "valid.en", lines[::2])
    write_lines(tmp_path / "train.en", lines)
    for name in ("valid", "train"):
        text = (tmp_path / f"{name}.en").read_text("utf-8")
        (tmp_path / f"{name}.de").write_text(text.upper(), encoding="utf-8")
    prepared(tiny_recipe(str(tmp_path / "train"), str(tmp_path / "valid")), tmp_path / "data")
    recipe = tiny_train_recipe(max_updates=60, dropout=0.0)
    recipe = replace(
        recipe,
        training=replace(recipe.training, update_tokens=100, max_tokens=100),
        validation=ValidationConfig(
            validate_every=20, validate_metrics="bleu,chrf", best_metric="bleu"
        ),
    )
    for name, seed in (("one", 1), ("two", 2)):
        train(replace(recipe, seed=SeedConfig(seed=seed)), tmp_path / "data", tmp_path / name)
        options = ["--beam", 2, "--max-length-offset", 2, "--device", "cpu"]
        source = (tmp_path / "valid.en").read_bytes()
        done = nmtkit("translate", tmp_path / name / "best", *options, stdin=source)
        (tmp_path / f"{name}.txt").write_bytes(done.stdout)
    verdict = nmtkit("report", "one", "two", folder=tmp_path).stdout.decode().partition("\n")[0]
    files = ["one.txt", "two.txt", "--reference", "valid.de", "--paired-bs", "--json"]
    done = nmtkit("score", *files, folder=tmp_path)
    first, second = (json.loads(line)["BLEU"] for line in done.stdout.splitlines())
    assert first["score"] != second["score"]
    assert f"(p = {second['p_value']:.4f}, paired bootstrap" in verdict
    higher, lower = sorted((first["score"], second["score"]), reverse=True)
    assert f" by {higher - lower:.2f} dev BLEU ({higher:.2f} against {lower:.2f}), " in verdict
    page = nmtkit("report", "one", "two", "--html", "page.html", folder=tmp_path)
    root = ElementTree.fromstring((tmp_path / "page.html").read_text("utf-8"))
    assert root.findtext("body/h1") == "Training of one, two"
    assert (
        root.findtext("body/p[@class='verdict']")
        == verdict
        == page.stdout.decode().partition("\n")[0]
    )
    (tmp_path / "two" / "validation_lines.json").write_bytes(b"\x00" * 100)
    untested = nmtkit("report", "one", "two", folder=tmp_path).stdout.decode().partition("\n")[0]
    assert untested.endswith("not tested for chance, as the lines of two are not stored.")


@pytest.mark.parametrize(
    ("line", "code", "keys"),
    [
        ("", 2, "RUN nmtkit report --help"),
        ("plain/metrics.jsonl", 2, "RUN plain/metrics.jsonl"),
        ("plain --overwrite", 2, "--overwrite --html"),
        ("plain --html data", 2, "--html data"),
        ("plain damaged", 4, "damaged/metrics.jsonl:2"),
    ],
)
def test_an_error_is_one_line_and_nothing_is_printed(
    line: str, code: int, keys: str, folder: Path
) -> None:
    damaged = folder / "damaged"
    damaged.mkdir(exist_ok=True)
    (damaged / "config.toml").write_bytes((folder / "plain/config.toml").read_bytes())
    first, *_ = (folder / "plain/metrics.jsonl").read_text("utf-8").split("\n")
    (damaged / "metrics.jsonl").write_text(f"{first}\n{first[:-9]}\n", encoding="utf-8")
    done = report(folder, line)
    refused(done, code, keys)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
