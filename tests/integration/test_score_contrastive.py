"""`nmtkit score --contrastive` as a command."""

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from nmtkit.config.schema import ScoringConfig, TrainRecipe
from nmtkit.decoding.contrastive import Judgement, judge, read_examples
from nmtkit.decoding.scorer import Scorer
from nmtkit.storage.model_folder import write_model
from tests.commands import as_text, nmtkit
from tests.messages import refused
from tests.shared_data import ROOT
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model

LINES = [
    "\t".join([source, source.upper(), *wrong, category])
    for source, wrong, category in zip(
        TRAIN_LINES,
        [["A A"], ["B", "C"], ["D D D"]] * 3 + [["E", "F", "G"]],
        ["number", "a|b"] * 5,
        strict=True,
    )
]
SUITE = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model and a suite."""
    folder = tmp_path_factory.mktemp("contrastive")
    codec = tiny_codec()
    made = tiny_model(codec)
    recipe = TrainRecipe(model=made.config)
    write_model(folder / "model", made.state_dict(), recipe, codec, {}, overwrite=False)
    (folder / "suite.tsv").write_bytes(SUITE)
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Judgement]:
    codec = tiny_codec()
    scorer = Scorer([tiny_model(codec)], codec, ScoringConfig())
    examples = read_examples(folder / "suite.tsv")
    found = [one for chunk in judge(scorer, examples, lambda *_: None) for one in chunk]
    assert {one.is_right for one in found} == {True, False}
    return found


def score(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return as_text(nmtkit("score", "--model", "model", *arguments, folder=folder))


def judged(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = score(folder, "--contrastive", "suite.tsv", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def test_the_table_has_a_row_per_category_and_one_of_all(
    folder: Path, expected: list[Judgement]
) -> None:
    done = judged(folder)
    title, _, headers, _, *rows = done.stdout.split("\n")[:-1]
    assert title == "## Accuracy in suite.tsv"
    assert re.split(r" *\| *", headers)[1:-1] == (
        ["category", "examples", "right", "accuracy", "95 % interval"]
    )
    cells = [re.split(r" *(?<!\\)\| *", row)[1:-1] for row in rows]
    assert [row[0] for row in cells] == ["number", r"a\|b", "all"]
    right = sum(one.is_right for one in expected)
    assert cells[2][1:4] == ["10", str(right), f"{10 * right:.2f}"]
    assert re.fullmatch(r"\d+\.\d\d-\d+\.\d\d", cells[2][4])
    assert done.stderr == ""


def test_json_has_an_object_per_category_and_one_of_all(
    folder: Path, expected: list[Judgement]
) -> None:
    objects = list(map(json.loads, judged(folder, "--json").stdout.split("\n")[:-1]))
    assert [one["category"] for one in objects] == ["number", "a|b", None]
    for one in objects:
        chosen = [j for j in expected if one["category"] in (j.example.category, None)]
        right = sum(j.is_right for j in chosen)
        assert (one["examples"], one["right"]) == (len(chosen), right)
        assert one["accuracy"] == pytest.approx(100 * right / len(chosen))
        assert 0 <= one["lower"] <= one["accuracy"] <= one["upper"] <= 100


def test_sentence_level_has_a_line_per_example(folder: Path, expected: list[Judgement]) -> None:
    done = judged(folder, "--sentence-level")
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    for row, one in zip(rows, expected, strict=True):
        assert row[0] == ("right" if one.is_right else "wrong")
        log_probs = [one.log_prob, *one.wrong_log_probs]
        assert list(map(float, row[1:])) == pytest.approx(log_probs, abs=1e-4)
    right = sum(one.is_right for one in expected)
    assert done.stderr == f"examples=10 right={right} accuracy={10 * right:.2f}\n"


def test_sentence_level_json_has_texts_with_their_log_probabilities(
    folder: Path, expected: list[Judgement]
) -> None:
    done = judged(folder, "--sentence-level", "--json")
    for line, one in zip(done.stdout.split("\n")[:-1], expected, strict=True):
        found = json.loads(line)
        assert list(found) == ["category", "is_right", "source", "right", "wrong"]
        assert (found["category"], found["is_right"]) == (one.example.category, one.is_right)
        assert found["source"] == one.example.source
        assert found["right"]["translation"] == one.example.right
        assert found["right"]["log_prob"] == pytest.approx(one.log_prob, abs=1e-4)
        assert [wrong["translation"] for wrong in found["wrong"]] == [*one.example.wrong]


def test_a_suite_may_be_compressed_or_a_pipe(folder: Path) -> None:
    whole = judged(folder, "--json").stdout
    (folder / "suite.tsv.gz").write_bytes(gzip.compress(SUITE))
    assert score(folder, "--contrastive", "suite.tsv.gz", "--json").stdout == whole
    os.mkfifo(folder / "pipe")
    writer = subprocess.Popen("cat suite.tsv > pipe", shell=True, cwd=folder)
    assert score(folder, "--contrastive", "pipe", "--json").stdout == whole
    assert writer.wait() == 0


def test_settings_may_come_from_a_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(
        '[scoring]\ncontrastive = "suite.tsv"\n[breakdown]\nsentence_level = true\n'
    )
    done = score(folder, "--config", str(tmp_path / "recipe.toml"))
    assert done.stdout == judged(folder, "--sentence-level").stdout
    assert "warning" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ("--source suite.tsv", "--source --contrastive"),
        ("suite.tsv", "suite.tsv --contrastive"),
        ("--metric chrf", "--metric --model"),
        ("--by-length", "--by-length --model"),
        ("--confidence", "--confidence --model"),
        ("--reference suite.tsv", "--reference --model"),
        ("--contrastive none", "none"),
    ],
)
def test_options_without_effect_are_refused(folder: Path, arguments: str, keys: str) -> None:
    done = score(folder, "--contrastive", "suite.tsv", *arguments.split())
    refused(done, 2, keys)
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ((), "--contrastive --model"),
        (("--reference", "suite.tsv"), "--contrastive --model"),
    ],
)
def test_a_suite_needs_a_model(folder: Path, arguments: tuple[str, ...], keys: str) -> None:
    done = as_text(nmtkit("score", "--contrastive", "suite.tsv", *arguments, folder=folder))
    refused(done, 2, keys)


def test_a_suite_is_checked_before_the_model_is_opened(tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_bytes(SUITE + b"a\tA\tB\n")
    done = as_text(nmtkit("score", "--model", "none", "--contrastive", "bad.tsv", folder=tmp_path))
    refused(done, 3, "bad.tsv:11 3 4")
    assert done.stdout == ""


def test_a_text_that_is_too_long_is_named_by_its_line(folder: Path) -> None:
    done = score(folder, "--contrastive", "suite.tsv", "--max-length", "5")
    refused(done, 3, "suite.tsv:5 6 5; --max-length")
    assert done.stdout == ""


# ---------------------------------------------------------------------------------- other formats

LINGEVAL97 = [
    {
        "source": "The car\tis red .",
        "reference": "Das Auto ist rot .",
        "origin": "newstest2009.1",
        "errors": [
            {
                "type": "np_agreement",
                "contrastive": "Der Auto ist rot .",
                "distance": 1,
                "frequency": 7,
            },
            {"type": "polarity_particle_nicht_ins", "contrastive": "Das Auto ist nicht rot ."},
        ],
    },
    {"source": "Yes.", "reference": "Ja.", "origin": "newstest2009.2", "errors": []},
]
CONTRAPRO = [
    {
        "document id": "a.de",
        "segment id": 17,
        "src segment": "It is \u201cred\u201d.",
        "ref segment": "Er ist rot.\n",
        "src pronoun": "It",
        "ref pronoun": "Er",
        "ante distance": 1,
        "errors": [
            {"contrastive": "Sie ist rot.", "type": "pronominal coreference"},
            {"contrastive": "Es ist rot.", "type": "pronominal coreference"},
        ],
    },
]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "lingeval97",
            LINGEVAL97,
            [
                "The car is red .\tDas Auto ist rot .\tDer Auto ist rot .\tnp_agreement",
                "The car is red .\tDas Auto ist rot .\tDas Auto ist nicht rot .\t"
                "polarity_particle_nicht_ins",
            ],
        ),
        (
            "contrapro",
            CONTRAPRO,
            ["It is \u201cred\u201d.\tEr ist rot.\tSie ist rot.\tEs ist rot.\tit:er"],
        ),
    ],
)
def test_the_page_converts_suites_of_others(
    tmp_path: Path, name: str, content: object, expected: list[str]
) -> None:
    page = (ROOT / "docs" / "scoring.md").read_text("utf-8")
    (command,) = (
        one for one in re.findall(r"```sh\n(.*?)```", page, re.S) if f"{name}.json" in one
    )
    (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=True)
    path = tmp_path / f"{name}.tsv"
    assert path.read_text("utf-8") == "".join(f"{line}\n" for line in expected)
    assert len(list(read_examples(path))) == len(expected)
