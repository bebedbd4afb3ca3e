"""Lines above the limit of their format: every command that reads lines refuses or drops them."""

import json
from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.storage.model_folder import write_model
from nmtkit.text.lines import MAX_LINE_BYTES
from tests.commands import nmtkit
from tests.messages import refused
from tests.tiny import tiny_codec, tiny_model

LONG = "a " * MAX_LINE_BYTES
TEXT = f"a\n{LONG}\nb\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    codec = tiny_codec()
    model = tiny_model(codec)
    recipe = TrainRecipe(model=model.config)
    write_model(folder / "model", model.state_dict(), recipe, codec, {}, overwrite=False)
    (folder / "long").write_text(TEXT)
    (folder / "short").write_text("a\nb\nc\n")
    (folder / "words").write_text("aa\n")
    return folder


@pytest.mark.parametrize(
    ("line", "stdin", "where"),
    [
        ("translate model", "long", "standard input"),
        ("translate model --stream", "long", "standard input"),
        ("attention model", "long", "standard input"),
        ("score --reference short", "long", "standard input"),
        ("score --reference short long", "short", "long"),
        ("score --reference long", "short", "long"),
        ("score --reference short --by-frequency long", "short", "long"),
        ("score --reference short --metric brackets --prm long", "short", "long"),
        ("score --model model --source short", "long", "standard input"),
        ("score --model model --source long", "short", "long"),
        ("trees tokenize", "long", "standard input"),
        ("trees restore --words long", "words", "long"),
    ],
)
def test_a_line_above_the_limit_is_refused_with_its_number(
    folder: Path, line: str, stdin: str, where: str
) -> None:
    done = nmtkit(*line.split(), stdin=(folder / stdin).read_bytes(), folder=folder)
    refused(done, 3, f"{where}:2 1MiB")


def test_an_object_may_be_longer_than_text(folder: Path) -> None:
    stdin = json.dumps({"source": "a", "attention": [0.125] * 200_000}).encode() + b"\n"
    assert len(stdin) > MAX_LINE_BYTES
    done = nmtkit("translate", "model", "--input-format", "json", stdin=stdin, folder=folder)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)
