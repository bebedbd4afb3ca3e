"""What each stage of examples/adaptation would run, with which model, vocabulary and text."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.test_readme import check
from tests.recipes import ADAPTATION, make

CORPUS = "/corpora"
SCORED = ["scratch", "child", "domain", "mixed", "frozen"]


def printed(*arguments: str) -> list[str]:
    """Return the commands that make would run."""
    done = subprocess.run(
        ["make", "-n", f"CORPUS={CORPUS}", "WORK=work", "NMTKIT=nmtkit", *arguments],
        cwd=ADAPTATION,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout.replace("\\\n", " ").replace("'", "").splitlines()


def trained(*arguments: str) -> dict[str, str]:
    """Return the commands that train, by stage, in their order."""
    lines = (line for line in printed(*arguments) if line.startswith("nmtkit train "))
    return {line.rpartition("/")[2]: line for line in lines}


def test_every_command_exists() -> None:
    found = [line for line in printed("score") if line.startswith("nmtkit ")]
    assert {line.split()[1] for line in found} == {"preprocess", "train", "translate", "score"}
    for line in found:
        check(line)


@pytest.mark.parametrize(
    ("target", "stages"),
    [
        ("text", []),
        ("parent", ["parent"]),
        ("scratch", ["scratch"]),
        ("child", ["parent", "child"]),
        ("domain", ["parent", "child", "domain"]),
        ("mixed", ["parent", "child", "mixed"]),
        ("frozen", ["parent", "child", "frozen"]),
        ("score", ["parent", *SCORED]),
    ],
)
def test_a_target_trains_its_stage_and_those_before_it_once(target: str, stages: list[str]) -> None:
    found = [*trained(target)]
    assert sorted(found) == sorted(stages)
    assert [stage for stage in found if stage in stages[:-1]] == stages[:-1] or target == "score"


def test_each_stage_begins_with_the_last() -> None:
    parents = {
        stage: re.findall(r" --from (\S+)", line) for stage, line in trained("score").items()
    }
    assert parents == {
        "parent": [],
        "scratch": [],
        "child": ["work/parent"],
        "domain": ["work/seed-1/child"],
        "mixed": ["work/seed-1/child"],
        "frozen": ["work/seed-1/child"],
    }


def test_datasets_have_their_texts_and_vocabularies() -> None:
    lines = [line for line in printed("score") if line.startswith("nmtkit preprocess ")]
    found = {line.split("--out work/data/")[1].split()[0]: line for line in lines}
    old, news = f"--train {CORPUS}/tatoeba.en-fr/train=0.5", "--train work/text/news/train"
    assert {data: (news in line, old in line) for data, line in found.items()} == {
        "parent": (False, False),
        "child": (False, False),
        "domain": (True, False),
        "mixed": (True, True),
    }
    assert " --vocab-size 6000 " in found["parent"]
    assert " --vocab-size 4000 " in found["child"]
    for data in ("domain", "mixed"):
        assert " --vocabulary-of work/seed-1/child " in found[data]
    changing = [line for line in printed("score") if " --update-vocabulary " in line]
    assert changing == [trained("child")["child"]]


def test_the_child_and_scratch_differ_only_in_the_weights_that_they_begin_with() -> None:
    found = trained("score")
    child = found["child"].replace(" --from work/parent --update-vocabulary", "")
    assert child.replace("seed-1/child", "seed-1/scratch") == found["scratch"]


def test_frozen_is_the_domain_with_frozen_embeddings() -> None:
    found = trained("score")
    frozen = found["frozen"].replace(" --freeze embeddings", "")
    assert frozen != found["frozen"]
    assert frozen.replace("seed-1/frozen", "seed-1/domain") == found["domain"]


@pytest.mark.parametrize("target", ["score", "text", "child"])
def test_without_a_corpus_make_says_what_to_set(target: str) -> None:
    done = subprocess.run(
        ["make", target, "CORPUS="],
        cwd=ADAPTATION,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "*** set CORPUS=/folder with tatoeba.en-de, tatoeba.en-fr and news-comm" in line


def test_a_missing_corpus_ends_with_one_line_of_the_text(tmp_path: Path) -> None:
    done = make("child", f"CORPUS={tmp_path}", f"WORK={tmp_path}/work", folder=ADAPTATION)
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if not line.startswith("make: ")]
    assert errors == [
        f"text: error: {tmp_path}: no folder tatoeba.en-de; give the absolute path of the folder "
        "that has it (make: CORPUS=)"
    ]
    assert not (tmp_path / "work" / "text" / "written").exists()
