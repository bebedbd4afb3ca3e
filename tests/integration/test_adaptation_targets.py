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


def preprocessed(*arguments: str) -> dict[str, str]:
    """Return the commands that preprocess, by dataset."""
    lines = (line for line in printed(*arguments) if line.startswith("nmtkit preprocess "))
    return {line.split("--out work/data/")[1].split()[0]: line for line in lines}


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


def test_only_the_child_changes_the_vocabulary() -> None:
    changing = [line for line in printed("score") if " --update-vocabulary " in line]
    assert changing == [trained("child")["child"]]
    found = preprocessed("score")
    assert " --vocab-size 6000 " in found["parent"]
    assert " --vocab-size 4000 " in found["child"]
    for data in ("domain", "mixed"):
        assert " --vocabulary-of work/seed-1/child " in found[data]
        assert "--vocab-size" not in found[data]


def test_the_child_and_scratch_differ_only_in_the_weights_that_they_begin_with() -> None:
    found = trained("score")
    child = found["child"].replace(" --from work/parent --update-vocabulary", "")
    assert child.replace("seed-1/child", "seed-1/scratch") == found["scratch"]


def test_frozen_is_the_domain_with_frozen_embeddings() -> None:
    found = trained("score")
    frozen = found["frozen"].replace(" --freeze embeddings", "")
    assert frozen != found["frozen"]
    assert frozen.replace("seed-1/frozen", "seed-1/domain") == found["domain"]


def test_the_mixed_text_is_that_of_the_domain_with_half_of_the_old_one() -> None:
    found = preprocessed("score")
    texts = {data: re.findall(r"--(train|valid) (\S+)", found[data]) for data in found}
    news = [("train", "work/text/news/train"), ("valid", "work/text/news/valid")]
    assert texts["domain"] == news
    old = ("train", f"{CORPUS}/tatoeba.en-fr/train=0.5")
    assert texts["mixed"] == [news[0], old, news[1]]
    assert texts["parent"][0] == ("train", "work/text/parent/train")


def test_another_seed_has_its_own_stages_after_the_same_parent() -> None:
    found = trained("score", "SEED=2", "LEARNING_RATE=3e-5")
    assert found["parent"] == trained("parent")["parent"]
    for stage in SCORED:
        assert " --seed 2 " in found[stage]
        assert found[stage].endswith(f" --out work/seed-2/{stage}")
    tuned = " --preset fine-tune --learning-rate 3e-5 --max-epochs 0 --max-updates 500 "
    assert all(tuned in found[stage] for stage in ("domain", "mixed", "frozen"))


def test_both_test_sets_are_translated_and_scored_by_each_stage() -> None:
    lines = printed("score")
    for name, text in {"home": f"{CORPUS}/tatoeba.en-fr", "news": "work/text/news"}.items():
        for stage in SCORED:
            translation = f"work/seed-1/{name}/{stage}.fr"
            (line,) = (line for line in lines if line.endswith(f" > {translation}"))
            assert line.split() == [
                *("nmtkit", "translate", f"work/seed-1/{stage}", "<", f"{text}/test.en"),
                *(">", translation),
            ]
        systems = " ".join(f"work/seed-1/{name}/{stage}.fr" for stage in SCORED)
        assert f"nmtkit score --metric bleu,chrf --reference {text}/test.fr {systems}" in lines


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
