"""`nmtkit score --html` as a process; test_systems_page.py has the page in a browser."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmtkit.evaluation.texts import read_text
from tests.integration.test_score_command import score
from tests.messages import refused
from tests.shared_data import HARD, needs_data

REFERENCE = "The cat sat on the mat.\nA dog ran to the park.\nGood.\n"
SYSTEMS = {
    "old.en": "The cat sits on a mat.\nDogs ran to parks.\nGood.\n",
    "new.en": "The cat sat on a mat.\nA dog ran to the park.\nBad.\n",
}
ARGUMENTS = ("--reference", "ref.en", *SYSTEMS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"ref.en": REFERENCE, **SYSTEMS, "src.de": "eins\nzwei\ndrei\n", "short": "eins\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "trees").write_text("(TOP (X a))\n", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return tmp_path


def data_of(path: Path) -> dict[str, object]:
    root = ElementTree.fromstring(path.read_bytes())
    (text,) = (one.text for one in root.iter("script") if one.get("id") == "data")
    found: dict[str, object] = json.loads(text or "")
    return found


@pytest.mark.parametrize(
    "further",
    [
        [],
        ["--json"],
        ["--confidence", "--resamples", "20", "--metric", "bleu,ter"],
        ["--paired-ar", "--trials", "20", "--by-length", "--by-frequency", "src.de"],
    ],
)
def test_the_scores_are_printed_as_without_a_page(folder: Path, further: list[str]) -> None:
    plain = score(b"", *ARGUMENTS, *further, cwd=folder)
    done = score(b"", *ARGUMENTS, *further, "--html", "new/page.html", cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == plain.stdout
    assert data_of(folder / "new" / "page.html")["systems"] == ["old", "new"]
    assert [path.name for path in (folder / "new").iterdir()] == ["page.html"]


def test_the_page_has_the_source_and_standard_input(folder: Path) -> None:
    arguments = ["--reference", "ref.en", "--source", "src.de", "--html", "page.html"]
    done = score(SYSTEMS["new.en"].encode(), *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    data = data_of(folder / "page.html")
    assert data["systems"] == ["standard input"]
    assert data["source"] == ["eins", "zwei", "drei"]


def test_intervals_and_tests_are_shown_as_computed(folder: Path) -> None:
    score(b"", *ARGUMENTS, "--html", "page.html", cwd=folder)
    plain = (folder / "page.html").read_text("utf-8")
    assert "Add --confidence" in plain
    flags = ["--confidence", "--resamples", "20", "--paired-ar", "--trials", "20", "--json"]
    done = score(b"", *ARGUMENTS, *flags, "--html", "page.html", "--overwrite", cwd=folder)
    _, new = map(json.loads, done.stdout.splitlines())
    text = (folder / "page.html").read_text("utf-8")
    assert f"<small> \u00b1 {new['BLEU']['half_width']:.2f}</small>" in text
    assert re.search(rf'<td class="p">.*{new["BLEU"]["p_value"]:.4f}</td>', text)


def test_a_page_is_not_replaced_unasked(folder: Path) -> None:
    page = folder / "page.html"
    page.write_bytes(b"mine")
    done = score(b"", *ARGUMENTS, "--html", "page.html", cwd=folder)
    assert (done.returncode, done.stdout, page.read_bytes()) == (2, b"", b"mine")
    refused(done, 2, "page.html; --overwrite")
    assert score(b"", *ARGUMENTS, "--html", "page.html", "--overwrite", cwd=folder).returncode == 0
    assert page.read_bytes() != b"mine"


@pytest.mark.parametrize("line", ["--reference ref.en none.en", "--reference none.en old.en"])
def test_a_missing_text_is_named_and_the_page_stays(line: str, folder: Path) -> None:
    page = folder / "page.html"
    page.write_bytes(b"mine")
    done = score(b"", *line.split(), "--html", "page.html", "--overwrite", cwd=folder)
    assert (done.returncode, done.stdout, page.read_bytes()) == (2, b"", b"mine")
    refused(done, 2, "none.en")


@pytest.mark.parametrize(
    ("line", "code", "keys"),
    [
        ("--reference ref.en --overwrite old.en", 2, "--overwrite --html"),
        ("--reference ref.en --html folder old.en", 2, "--html folder"),
        ("--reference ref.en --html old.en/a old.en", 2, "old.en"),
        ("--reference ref.en --html p --sentence-level old.en", 2,
         "--html --sentence-level"),
        ("--model m --source src.de --html p old.en", 2, "--html --model"),
        ("--model m --html p old.en", 2, "--html --model"),
        ("--reference trees --metric brackets --html p trees", 2,
         "--html"),
        ("--reference ref.en --html p --source short old.en", 3,
         "old.en 3 short 1"),
        ("--reference ref.en --html p --source none old.en", 2, "none"),
        ("--reference short --html p old.en", 3, "old.en 3 short 1"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_without_a_page(folder: Path, line: str, code: int, keys: str) -> None:
    done = score(b"", *line.split(), cwd=folder)
    refused(done, code, keys)
    assert done.stderr.count(b"\n") == 1
    assert done.stdout == b""
    assert not (folder / "p").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(folder: Path) -> None:
    (folder / "folder").chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = score(b"", *ARGUMENTS, "--html", "folder/page.html", cwd=folder)
    refused(done, 5, "folder/page.html", recorded=False)


@needs_data
def test_lines_of_all_kinds_are_read_back(folder: Path) -> None:
    path = HARD / "nasty-utf8.txt"
    lines = read_text(path).lines
    arguments = ["--reference", str(path), "--source", str(path), "--html", "page.html"]
    done = score(b"", *arguments, str(path), cwd=folder)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    data = data_of(folder / "page.html")
    assert data["reference"] == data["source"] == lines
    assert data["translations"] == [lines]


def test_a_file_name_that_is_not_utf8_is_shown_with_a_mark(folder: Path) -> None:
    name = os.fsdecode(b"\xff.en")
    try:
        (folder / name).write_text(REFERENCE, encoding="utf-8")
    except OSError as error:
        pytest.skip(f"no such names here: {error}")
    done = score(b"", *ARGUMENTS, name, "--html", "page.html", cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "| \ufffd.en " in done.stdout.decode()
    assert data_of(folder / "page.html")["systems"] == ["old", "new", "\ufffd"]


def test_a_page_needs_no_torch(folder: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "nmtkit_cli", "score", *ARGUMENTS]
    process = subprocess.run(
        [*command, "--html", "page.html"],
        capture_output=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    imported = {line.rpartition("|")[2].strip() for line in process.stderr.decode().split("\n")}
    assert "nmtkit.reporting.systems.page" in imported
    assert "torch" not in imported
