"""Documentation that is generated says what the code says."""

import ast
import importlib
import re
import runpy
import textwrap
from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe, fields_of
from tests.architecture.source_tree import ROOT, functions, sources

TESTS = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("name", ["cli", "migrating"])
def test_a_generated_page_is_current(name: str) -> None:
    render = runpy.run_path(f"docs/make_{name}.py")["render"]
    page = Path(f"docs/{name}.md").read_text(encoding="utf-8")
    assert page == render(), f"run `python docs/make_{name}.py`"


@pytest.mark.parametrize("page", ["reliability.md", "paper.md"])
def test_every_promise_names_tests_that_exist(page: str) -> None:
    tests = {
        source.path: {function.name for function in functions(source.tree)}
        for source in sources("tests")
    }
    text = (ROOT / "docs" / page).read_text("utf-8")
    for path, name in TESTS.findall(text):
        assert path in tests, path
        assert not name or name in tests[path], f"{path}::{name}"
    # A table whose last column is headed so makes promises; each has to be held by a test.
    tables = re.findall(r"^\|.*\| Proved by \|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M)
    rows = "".join(tables).splitlines()
    assert len(rows) > 25
    for row in rows:
        assert TESTS.search(row), row


def test_the_page_on_formats_names_the_hidden_names_that_are_written() -> None:
    code = (ROOT / "nmtkit" / "storage" / "disk.py").read_text("utf-8")
    (values,) = re.findall(r"^PARTIAL, OLD, REMOVED, LOCK = (.*)$", code, re.M)
    written = {f".NAME.nmtkit-{purpose}" for purpose in re.findall(r'"(\w+)"', values)}
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    assert set(re.findall(r"`(\.NAME\.[\w.-]+)`", page)) == written


def test_the_page_on_training_names_the_settings_that_may_change_on_resume() -> None:
    page = (ROOT / "docs" / "training.md").read_text("utf-8")
    (listed,) = re.findall(r"^\*\*Settings on resume\.\*\*.*\n\n((?:[- ] .*\n)+)", page, re.M)
    free = {
        "--" + name.replace("_", "-")
        for name, field in fields_of(TrainRecipe).items()
        if field.may_change_on_resume
    }
    assert set(re.findall(r"`(--[a-z-]+)`", listed)) - {"--best-metric"} == free


def test_every_python_snippet_of_the_page_on_extending_parses_and_imports_what_is_there() -> None:
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    snippets = re.findall(r"^ *```python\n(.*?)^ *```$", page, re.M | re.S)
    assert len(snippets) == page.count("```python") > 3
    for snippet in snippets:
        # `...` stands for what is there; in a table of names and values, Python has no such entry.
        tree = ast.parse(re.sub(r"\{(\s*)\.\.\.,", r"{\1**...,", textwrap.dedent(snippet)))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nmtkit"):
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, name.name) for name in node.names), snippet


def test_the_page_on_extending_names_files_and_tables_that_exist() -> None:
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    (rows,) = re.findall(r"^\| to add \| .*\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.M)
    for row in rows.splitlines():
        cell = row.split(" | ")[1]
        text = "".join(
            (ROOT / "nmtkit" / path).read_text("utf-8")
            for path in re.findall(r"`([\w/]+\.py)`", cell)
        )
        for name in re.findall(r"`([A-Z_]{4,})`", cell):
            assert re.search(rf"^{name}\b.* = ", text, re.M), name
