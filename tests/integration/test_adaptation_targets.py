"""What each stage of examples/adaptation would run, with which model, vocabulary and text."""

import re

from tests.architecture.test_readme import check
from tests.recipes import ADAPTATION, dry_run

CORPUS = "/corpora"


def printed(*arguments: str) -> list[str]:
    """Return the commands that make would run."""
    return [line.replace("'", "") for line in dry_run(ADAPTATION, f"CORPUS={CORPUS}", *arguments)]


def trained(*arguments: str) -> dict[str, str]:
    """Return the commands that train, by stage, in their order."""
    lines = (line for line in printed(*arguments) if line.startswith("nmtkit train "))
    return {line.rpartition("/")[2]: line for line in lines}


def test_every_command_exists() -> None:
    found = [line for line in printed("score") if line.startswith("nmtkit ")]
    assert {line.split()[1] for line in found} == {"preprocess", "train", "translate", "score"}
    for line in found:
        check(line)


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
