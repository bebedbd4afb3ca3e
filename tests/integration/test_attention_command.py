"""`nmtkit attention`: one process of its own, and forks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import nmtkit
from tests.messages import refused
from tests.tiny import write_tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of two layers and two heads."""
    root = tmp_path_factory.mktemp("attention")
    write_tiny_model(root / "model")
    return root


def attention(folder: Path, line: str, text: bytes) -> subprocess.CompletedProcess[bytes]:
    return nmtkit("attention", *line.split(), stdin=text, folder=folder)


def test_a_page_of_pairs_comes_on_standard_output(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nmtkit_cli", "attention", "model"],
        input=b"a b c\tA B C\nd e\n",
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    page = done.stdout.decode()
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>\n")
    assert "<title>Attention of model</title>" in page


def test_what_translate_writes_is_what_is_looked_at(folder: Path) -> None:
    def lines(command: str, line: str, text: bytes) -> bytes:
        done = nmtkit(command, *line.split(), stdin=text, folder=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    text = b"a b c\nh g\n"
    options = "model --output-format json --attention"
    translated = [json.loads(line) for line in lines("translate", options, text).splitlines()]
    given = "".join(f"{json.dumps(one)}\n" for one in translated).encode()
    looked = lines("attention", "model --format json --input-format json", given)
    assert lines("attention", "model --format json --translate", text) == looked
    for line, expected in zip(looked.splitlines(), translated, strict=True):
        values = json.loads(line)
        assert values["translation"] == expected["translation"]
        # What translate writes is the mean over the heads of the last layer but one.
        first_layer = values["attentions"][2]["weights"][0]
        for row, mean in enumerate(expected["attention"]):
            heads = [head[row] for head in first_layer]
            assert [sum(pair) / 2 for pair in zip(*heads, strict=True)] == pytest.approx(
                mean, abs=1e-5
            )


@pytest.mark.parametrize(
    ("line", "text", "code", "keys"),
    [
        ("", b"a\n", 2, "MODEL nmtkit attention --help"),
        ("none", b"a\n", 4, "none"),
        ("model --heads 3", b"a\n", 2, "heads 3 2; 1"),
        ("model --max-weights 9", b"a b\n", 3, "input:1 3 36"),
        ("model --format pdf", b"a\n", 2, "format pdf html json svg"),
    ],
)
def test_an_error_is_one_line_and_nothing_is_printed(
    line: str, text: bytes, code: int, keys: str, folder: Path
) -> None:
    done = attention(folder, line, text)
    refused(done, code, keys)
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
