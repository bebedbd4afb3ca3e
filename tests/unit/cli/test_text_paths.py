from pathlib import Path

import click
import pytest

from nmtkit.storage.durable import new_folder
from nmtkit_cli.text_paths import prefix_of, read_dataset
from tests.messages import refuses

CONTEXT = click.Context(click.Command("train"))
ARGUMENT = click.Argument(["data"])


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("corpus", "{0}/corpus text; `nmtkit preprocess --train {0}/corpus`"),
        ("corpus.en", "{0}/corpus.en text; `nmtkit preprocess --train {0}/corpus`"),
        ("my text.en", "{0}/my text.en; --train '{0}/my text'`"),
        ("a.b.de.gz", "{0}/a.b.de.gz text; `nmtkit preprocess --train {0}/a.b`"),
        ("run", "{0}/run run; dataset --out {0}/run"),
        ("model", "{0}/model model; dataset --from {0}/model"),
        ("empty", "{0}/empty manifest.json; `nmtkit preprocess --out`"),
    ],
)
def test_text_and_other_folders_are_not_datasets(name: str, keys: str, tmp_path: Path) -> None:
    for file in ("corpus.en", "corpus.de", "my text.en", "a.b.de.gz"):
        (tmp_path / file).touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with new_folder(tmp_path / "model", "nmtkit-model", 1, overwrite=False):
        pass
    with refuses(click.BadParameter, keys.format(tmp_path)):
        read_dataset(CONTEXT, ARGUMENT, tmp_path / name)


@pytest.mark.parametrize("name", ["run", "model"])
def test_only_training_is_told_how_to_go_on_from_a_run_or_model(name: str, tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with new_folder(tmp_path / "model", "nmtkit-model", 1, overwrite=False):
        pass
    with refuses(click.BadParameter, f"{tmp_path / name} {name}; dataset") as caught:
        read_dataset(click.Context(click.Command("shortlist")), ARGUMENT, tmp_path / name)
    assert "--" not in caught.value.message


@pytest.mark.parametrize("name", ["data", "damaged", "none", "data[1]", "x" * 300])
def test_a_dataset_and_what_cannot_be_read_are_left_to_the_library(
    name: str, tmp_path: Path
) -> None:
    for file in (
        "data/manifest.json",
        "damaged/codec/x",
        "data[1]/codec/x",
        "data1.en",
        "data1.de",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    path = tmp_path / name
    assert read_dataset(CONTEXT, ARGUMENT, path) == path
    assert read_dataset(CONTEXT, ARGUMENT, None) is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("t.en t.fr", "give the common prefix of the files: -s en -t fr --train t"),
        (
            "a/t.x.en.gz a/t.x.fr.gz",
            "give the common prefix of the files: -s en -t fr --train a/t.x",
        ),
        ("t.en v.fr", "give the common prefix of the two files to --train, and their"),
        ("t data", "give the common prefix of the two files to --train, and their"),
        ("t.en", "give the common prefix of the two files to --train, and their"),
    ],
)
def test_names_of_files_are_answered_with_their_prefix(names: str, expected: str) -> None:
    assert prefix_of(names.split()).startswith(expected)
