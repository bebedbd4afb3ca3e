"""`nmtkit score --html` as a process; test_systems_page.py has the page in a browser."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.integration.test_score_command import score
from tests.messages import refused

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
