"""Documentation that is generated says what the code says."""

import re
import runpy
from pathlib import Path

from nmtkit_cli.main import EXIT_CODES
from tests.architecture.source_tree import ROOT, functions, sources


def test_the_page_on_the_command_line_is_current() -> None:
    render = runpy.run_path("docs/make_cli.py")["render"]
    page = Path("docs/cli.md").read_text(encoding="utf-8")
    assert page == render(), "run `python docs/make_cli.py`"


def test_the_readme_tells_the_exit_codes_as_the_help_does() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "README.md").read_text("utf-8"), re.M)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES


def test_every_promise_names_tests_that_exist() -> None:
    tests = {
        source.path: {function.name for function in functions(source.tree)}
        for source in sources("tests")
    }
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    rows = [line for line in page.split("\n") if re.match(r"\| (?!-|What may happen)", line)]
    assert len(rows) > 50
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row)
        assert named, row
        for path, name in named:
            assert path in tests, row
            assert not name or name in tests[path], f"{path}::{name}"


def test_the_page_on_formats_names_the_hidden_names_that_are_written() -> None:
    code = (ROOT / "nmtkit" / "durable.py").read_text("utf-8")
    (values,) = re.findall(r"^_PARTIAL, _OLD, _REMOVED, _LOCK = (.*)$", code, re.M)
    written = {f".NAME.nmtkit-{purpose}" for purpose in re.findall(r'"(\w+)"', values)}
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    assert set(re.findall(r"`(\.NAME\.[\w.-]+)`", page)) == written
