"""The accuracy of a model in a contrastive suite, and suites of others."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nmtkit.config.schema import ScoringConfig
from nmtkit.decoding.scorer import Scorer, line_names
from tests.shared_data import ROOT
from tests.tiny import (
    TRAIN_LINES,
    never_warn,
    tiny_codec,
    tiny_model,
    write_lines,
    write_tiny_model,
)

EXAMPLE = ROOT / "examples" / "contrastive"
SUITE = [
    (source, source.upper(), *wrong, category)
    for source, wrong, category in zip(
        TRAIN_LINES,
        [["A A"], ["B", "C"], ["D D D"]] * 3 + [["E", "F", "G"]],
        ["number", "article"] * 5,
        strict=True,
    )
]


def accuracy(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, EXAMPLE / "accuracy.py", "suite.tsv", *options],
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        check=False,
    )


def test_a_right_translation_is_more_probable_than_all_wrong_ones(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    same_tokens = ("a", "zzz", "qqq", "unknown")  # in every batch, so neither is better
    write_lines(tmp_path / "suite.tsv", ["\t".join(one) for one in (*SUITE, same_tokens)])
    scorer = Scorer([tiny_model(tiny_codec())], tiny_codec(), ScoringConfig(), never_warn)
    right = {"number": 0, "article": 0}
    for source, *texts, category in SUITE:
        best, *others = (
            scorer.score([(source, text)], line_names(1))[0].log_prob for text in texts
        )
        right[category] += best > max(others)
    assert 0 < sum(right.values()) < len(SUITE)

    done = accuracy(tmp_path, "--model", "model", "--max-tokens", "40")

    assert done.returncode == 0, done.stderr
    total = sum(right.values())
    assert done.stdout.split("\n") == [
        *(f"{name}\t5\t{number}\t{20 * number:.2f}" for name, number in right.items()),
        "unknown\t1\t0\t0.00",
        f"all\t11\t{total}\t{100 * total / 11:.2f}",
        "",
    ]


@pytest.mark.parametrize("line", ["a\tA\tnumber", "a\tA\t \tnumber", ""])
def test_a_line_that_is_no_example_is_an_error(tmp_path: Path, line: str) -> None:
    write_lines(tmp_path / "suite.tsv", ["a\tA\tB\tnumber", line])
    done = accuracy(tmp_path, "--model", "none")
    assert done.returncode == 1
    assert done.stderr.startswith("suite.tsv:2: not source, right, wrong, category; fix")


LINGEVAL97 = [
    {
        "source": "The car\tis red .",
        "reference": "Das Auto ist rot .",
        "errors": [
            {"type": "np_agreement", "contrastive": "Der Auto ist rot .", "distance": 1},
            {"type": "polarity_particle_nicht_ins", "contrastive": "Das Auto ist nicht rot ."},
        ],
    },
    {"source": "Yes.", "reference": "Ja.", "errors": []},
]
CONTRAPRO = [
    {
        "src segment": "It is \u201cred\u201d.",
        "ref segment": "Er ist rot.\n",
        "src pronoun": "It",
        "ref pronoun": "Er",
        "errors": [{"contrastive": "Sie ist rot."}, {"contrastive": "Es ist rot."}],
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
    page = (EXAMPLE / "README.md").read_text("utf-8")
    (command,) = (
        one for one in re.findall(r"```sh\n(.*?)```", page, re.S) if f"{name}.json" in one
    )
    (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=True)
    path = tmp_path / f"{name}.tsv"
    assert path.read_text("utf-8") == "".join(f"{line}\n" for line in expected)
