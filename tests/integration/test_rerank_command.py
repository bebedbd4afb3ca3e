"""`nmtkit rerank` on the candidates of models that were never trained."""

import gzip
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.metrics import MetricsConfig
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.rerank.features import reversed_words
from tests.commands import as_text, nmtkit
from tests.messages import refused
from tests.tiny import TRAIN_LINES, tiny_codec, write_lines, write_tiny_model

SOURCES = [*TRAIN_LINES, "", "a b c"]
CPU = ("--threads", "1", "--device", "cpu")


def run(
    folder: Path, *arguments: object, stdin: str = "", code: int = 0
) -> "subprocess.CompletedProcess[str]":
    done = as_text(nmtkit(*arguments, stdin=stdin.encode(), folder=folder))
    assert done.returncode == code, done.stderr
    return done


def rerank(folder: Path, features: str, *arguments: object, stdin: str = "") -> list[str]:
    done = run(folder, "rerank", "--features", features, *arguments, stdin=stdin)
    return done.stdout.split("\n")[:-1]


def objects(folder: Path, features: str, *arguments: object) -> list[dict[str, Any]]:
    lines = rerank(folder, features, *arguments, "--output-format", "json")
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models of both directions, sources, references and candidates."""
    root = tmp_path_factory.mktemp("rerank")
    codec = tiny_codec()
    write_tiny_model(root / "model", codec)
    write_tiny_model(root / "other", codec, seed=2)
    turned = replace(codec, source_lang="de", target_lang="en")
    write_tiny_model(root / "back", turned, seed=3)
    write_lines(root / "text", SOURCES)
    write_lines(root / "reference", [line.upper() for line in SOURCES])
    text = (root / "text").read_text()
    beam = ("--beam", 4, "--n-best", 4, "--max-length-offset", 4)
    for name, model, options in (
        ("n-best", "model", beam),
        ("unnormalized", "model", (*beam, "--length-penalty-form", "none")),
        ("other-n-best", "other", beam),
        ("samples", "model", ("--sample", "--n-best", 9, "--max-length-offset", 4)),
    ):
        line = ("translate", model, *options, "--output-format", "json", *CPU)
        (root / f"{name}.jsonl").write_text(run(root, *line, stdin=text).stdout)
    (root / "n-best.gz").write_bytes(gzip.compress((root / "n-best.jsonl").read_bytes()))
    return root


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def test_the_score_of_the_search_gives_its_own_order(folder: Path) -> None:
    text, options = (folder / "text").read_text(), ("--max-length-offset", 4, *CPU)
    expected = run(folder, "translate", "model", *options, stdin=text).stdout.split("\n")[:-1]
    assert len(set(expected)) > 5
    candidates = (folder / "n-best.jsonl").read_text()
    assert rerank(folder, "model", "n-best.jsonl") == expected
    assert rerank(folder, "model", "n-best.gz") == expected
    assert rerank(folder, "model", "--chunk-lines", 2, stdin=candidates) == expected
    answers, lines = objects(folder, "model", "n-best.jsonl"), read(folder / "n-best.jsonl")
    for found, own in zip(answers, lines, strict=True):
        assert [one["translation"] for one in found["n_best"]] == [
            one["translation"] for one in own["n_best"]
        ]
        is_blank = not own["source"]
        for one in found["n_best"]:
            expected_score = 0.0 if is_blank else one["score"]
            assert one["rerank_score"] == one["features"]["model"] == expected_score
        assert found.items() >= found["n_best"][0].items()


def test_the_log_probability_by_the_same_model_is_that_of_the_search(folder: Path) -> None:
    forced = objects(folder, "forced:model", "unnormalized.jsonl", *CPU)
    for found, own in zip(forced, read(folder / "unnormalized.jsonl"), strict=True):
        for one in found["n_best"]:
            assert one["rerank_score"] == pytest.approx(one["log_prob"], abs=1e-4)
        assert found["translation"] == own["translation"]


def test_a_model_of_the_other_direction_scores_the_source(folder: Path) -> None:
    found = objects(folder, "backward:back", "n-best.jsonl", *CPU)
    pairs = [(one["translation"], line["source"]) for line in found for one in line["n_best"]]
    write_lines(folder / "translations", [translation for translation, _ in pairs])
    sources = "".join(f"{source}\n" for _, source in pairs)
    line = ("score", "--model", "back", "--source", "translations", *CPU)
    expected = run(folder, *line, stdin=sources).stdout.split("\n")[:-1]
    scores = [one["rerank_score"] for line in found for one in line["n_best"]]
    assert scores == pytest.approx([float(one.split("\t")[0]) for one in expected], abs=1e-4)
    assert [*map(sorted, _scores(found))] == [list(reversed(one)) for one in _scores(found)]


def _scores(found: list[dict[str, Any]]) -> list[list[float]]:
    return [[one["rerank_score"] for one in line["n_best"]] for line in found]


def test_the_documented_command_reverses_words_as_the_feature_does() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reranking.md").read_text("utf-8")
    (program_text,) = re.findall(r"^awk '(.*)' train", page, re.MULTILINE)
    lines = [*SOURCES, "  a  b c ", "ab"]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        ["awk", program_text], input=text, stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.split("\n")[:-1] == [*map(reversed_words, lines)]


def test_the_candidates_of_several_systems_are_chosen_from_together(folder: Path) -> None:
    files = ("n-best.gz", "other-n-best.jsonl")
    found = objects(folder, "forced:model", *files, *CPU)
    systems = [{one["system"] for one in line["n_best"]} for line in found]
    assert systems == [{*files}] * len(SOURCES)
    assert [len(line["n_best"]) for line in found] == [2 if not one else 8 for one in SOURCES]
    assert rerank(folder, "forced:model", *files, *CPU) == [one["translation"] for one in found]
    assert {line["system"] for line in found if line["source"]} >= {"n-best.gz"}


FEATURES = "forced:model,length,mbr:chrf"


@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_tuned_weights_have_the_score_that_is_reported(
    folder: Path, tmp_path: Path, metric: str
) -> None:
    files = ("samples.jsonl", "other-n-best.jsonl", *CPU)
    tune = ("rerank", "--features", FEATURES, "--tune", "reference", "--metric", metric)
    done = run(folder, *tune, *files)
    assert run(folder, *tune, *files).stdout == done.stdout
    path = tmp_path / "weights.json"
    path.write_text(done.stdout)
    chosen = rerank(folder, FEATURES, "--weights", path, *files)
    metrics = make_metrics(MetricsConfig(metric=metric))
    (score,) = score_corpus(metrics, chosen, [[line.upper() for line in SOURCES]])
    *alone, last = done.stderr.split("\n")[:-1]
    assert last == f"{score.name} = {score.score:.4g} tuned, on {len(SOURCES)} lines"
    names = [line.split(" by ")[1] for line in alone]
    assert names == [f"{name} alone" for name in FEATURES.split(",")]
    scores = [float(line.split()[2]) for line in alone]
    is_better = max if score.is_higher_better else min
    assert is_better([float(f"{score.score:.4g}"), *scores]) == float(f"{score.score:.4g}")
    for name, expected in zip(FEATURES.split(","), scores, strict=True):
        (own,) = score_corpus(
            metrics,
            rerank(folder, name, *(files if "forced" in name else files[:2])),
            [[line.upper() for line in SOURCES]],
        )
        assert float(f"{own.score:.4g}") == expected


def test_the_output_is_an_input_of_other_commands(folder: Path, tmp_path: Path) -> None:
    lines = rerank(folder, "length", "n-best.jsonl", "--output-format", "json")
    path = write_lines(tmp_path / "reranked.jsonl", lines)
    assert objects(folder, "length", path) == [json.loads(line) for line in lines]
    line = ("translate", "model", "--input-format", "json", "--output-format", "json", *CPU)
    answers = run(folder, *line, stdin="\n".join(lines)).stdout.split("\n")[:-1]
    assert set(json.loads(answers[0])) == {"schema", "source", "translation", "score", "log_prob"}


def test_no_lines_are_no_output(folder: Path) -> None:
    assert rerank(folder, "model", stdin="") == []


@pytest.mark.parametrize(
    ("arguments", "code", "keys"),
    [
        ("", 2, "features; --features rerank.features"),
        (
            "--features model,length",
            2,
            "2 features weights; --tune REFERENCE --weights FILE",
        ),
        ("--features model --weights w --tune r", 2, "--tune --weights"),
        ("--features model --seed 3", 2, "--seed --tune; out"),
        ("--features model --metric chrf", 2, "--metric --tune; out"),
        (
            "--features model --tune reference --output-format json",
            2,
            "--output-format --tune; out",
        ),
        ("--features length --language-pair en-zh n-best.jsonl", 2, "--language-pair --tune; out"),
        ("--features model --weights none", 2, "none; --weights"),
        ("--features model none", 2, "none; text file"),
        ("--features model --tune none n-best.jsonl", 2, "none; text file"),
        ("--features model --tune short n-best.jsonl", 3, "n-best.jsonl 12 lines short 1"),
        ("--features model --tune empty empty", 3, "empty translations"),
        ("--features model invalid", 3, "invalid:1 UTF-8 13 0xff"),
        ("--features model later", 3, 'later:1 "schema" nmtkit-translations/2'),
        ("--features model damaged.gz", 3, "damaged.gz gzip"),
        ("--features command:x --metric-command x=false n-best.jsonl", 8, "x code 1"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(
    folder: Path, arguments: str, code: int, keys: str
) -> None:
    write_lines(folder / "short", ["A"])
    write_lines(folder / "empty", [])
    write_lines(folder / "later", ['{"schema": "nmtkit-translations/2", "source": "a"}'])
    (folder / "invalid").write_bytes(b'{"source": "\xff"}\n')
    (folder / "damaged.gz").write_bytes((folder / "n-best.gz").read_bytes()[:300])
    done = run(folder, "rerank", *arguments.split(), code=code)
    refused(done, code, keys)
    assert done.stderr.count("\n") == 1
