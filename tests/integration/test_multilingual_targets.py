"""What examples/multilingual would run: one model of all directions, and a model of each."""

import pytest

from tests.architecture.test_readme import check
from tests.recipes import MULTILINGUAL, dry_run


def printed(*arguments: str) -> list[str]:
    """Return the commands that make would run."""
    lines = dry_run(MULTILINGUAL, "CORPUS=/corpora", "LANGS=nl sv", *arguments)
    commands = (line.replace("'", "").split() for line in lines if line.startswith("nmtkit "))
    return [*map(" ".join, commands)]


@pytest.mark.parametrize("direction", ["out", "into"])
def test_every_command_exists_and_all_models_are_scored(direction: str) -> None:
    found = printed("score", f"DIRECTION={direction}")
    names = [line.split()[1] for line in found]
    assert {name: names.count(name) for name in names} == {
        "preprocess": 3,
        "train": 3,
        "translate": 4,
        "score": 2,
    }
    for line in found:
        check(line)


def test_the_one_model_has_all_directions_and_the_updates_of_all() -> None:
    preprocess, train = printed("multilingual", "DIRECTION=into", "SINGLE_UPDATES=70")
    for lang in ("nl", "sv"):
        for option, name in (("train", "train"), ("valid", "valid"), ("held-out", "test")):
            assert f" --{option} /corpora/en-{lang}.{name}:{lang}-en " in preprocess
    assert " --max-updates 140 --sampling-temperature 5 " in train
    assert "work/into/data/multilingual" in train


def test_translations_of_the_one_model_name_their_language() -> None:
    lines = [line for line in printed("score-sv") if line.startswith("nmtkit translate ")]
    assert [("--target-lang sv" in line, "en-sv.test.en" in line) for line in lines] == [
        (False, True),
        (True, True),
    ]
