import tomllib
from fnmatch import fnmatch

from tests.architecture.source_tree import ROOT

FOLDER = ROOT / "nmtkit" / "reporting" / "attention"


def test_every_data_file_is_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["nmtkit.reporting.attention"]
    names = {path.name for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"}
    assert len(names) >= 7
    assert {name for name in names if any(fnmatch(name, one) for one in patterns)} == names


def test_files_of_the_page_are_ascii_and_short() -> None:
    for path in FOLDER.iterdir():
        if path.suffix in (".js", ".css", ".html"):
            text = path.read_text("utf-8")
            assert text.isascii(), path
            assert text.count("\n") <= 400, path
            assert max(map(len, text.split("\n"))) <= 100, path
            assert "</script" not in text or path.suffix == ".html", path
