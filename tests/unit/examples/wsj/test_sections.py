"""Sections of a treebank are cleaned, ordered and counted."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.wsj.sections import numbers_of, section_lines
from nmtkit.errors import ConfigError, DataError, NmtkitError
from nmtkit.parsing.trees import parse_tree
from tests.messages import refuses
from tests.recipes import ROOT
from tests.trees import write_treebank

RAW = """\
( (S (NP-SBJ (NNP {word}) )
    (VP (VBZ sleeps) (NP (-NONE- *T*-1) )) (. .) ))"""
CLEAN = "(TOP (S (NP (NNP {word})) (VP (VBZ sleeps)) (. .)))"
SECTIONS = {"02": [["a", "b"], ["c"]], "03": [["d"]], "22": [["e"]]}


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    folder = tmp_path / "wsj"
    texts = {
        section: [[RAW.format(word=word) for word in words] for words in files]
        for section, files in SECTIONS.items()
    }
    write_treebank(folder, texts)
    return folder


def clean(words: str) -> list[str]:
    return [CLEAN.format(word=word) for word in words]


@pytest.mark.parametrize(("sections", "words"), [("02", "abc"), ("02-03", "abcd"), ("22", "e")])
def test_trees_are_clean_and_in_the_order_of_sections_and_files(
    treebank: Path, sections: str, words: str
) -> None:
    assert list(section_lines(treebank, sections, len(words))) == clean(words)


def test_names_in_capitals_are_those_of_the_disc(treebank: Path) -> None:
    for path in (treebank / "02").iterdir():
        path.rename(path.with_name(path.name.upper()))
    assert list(section_lines(treebank, "02", 3)) == clean("abc")


@pytest.mark.parametrize("num_trees", [2, 4])
def test_another_number_of_trees_is_refused(treebank: Path, num_trees: int) -> None:
    with refuses(DataError, f"wsj 02 3 {num_trees}; --trees 3"):
        list(section_lines(treebank, "02", num_trees))


@pytest.mark.parametrize("sections", ["2", "02,03", "03-02", ""])
def test_malformed_sections_are_refused(sections: str) -> None:
    with refuses(ConfigError, f"'{sections}'; 23 02-21"):
        numbers_of(sections)


def test_a_missing_section_is_refused(treebank: Path) -> None:
    with refuses(ConfigError, "wsj/04; TREEBANK="):
        list(section_lines(treebank, "02-04", 4))


def test_a_malformed_tree_is_reported_with_file_and_line(treebank: Path) -> None:
    file = treebank / "03" / "wsj_0301.mrg"
    file.write_text("( (S (NP a)\n", "utf-8")
    with refuses(NmtkitError, "wsj_0301.mrg:1"):
        list(section_lines(treebank, "02-03", 4))


def test_the_command_writes_trees_and_ends_with_the_error_s_code(treebank: Path) -> None:
    def run(num_trees: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "examples.wsj.sections", treebank, "02"]
        return subprocess.run(
            [*map(str, command), "--trees", str(num_trees)],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    done = run(3)
    assert (done.returncode, done.stderr) == (0, "")
    assert [parse_tree(line, "x").words()[0] for line in done.stdout.splitlines()] == list("abc")
    refused = run(2)
    assert refused.returncode == DataError.exit_code
    assert refused.stderr.startswith("sections: error: ")
    assert refused.stderr.count("\n") == 1
