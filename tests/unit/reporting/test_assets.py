import tomllib
from fnmatch import fnmatch

import pytest

from tests.architecture.source_tree import ROOT

PACKAGES = {"nmtkit.reporting": 7, "nmtkit.reporting.attention": 5, "nmtkit.reporting.systems": 7}
"""Packages with files of pages, and the number of these."""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_page_is_in_the_wheel_ascii_and_short(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"][package]
    folder = ROOT / package.replace(".", "/")
    paths = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".py"]
    assert len(paths) == PACKAGES[package]
    for path in paths:
        assert any(fnmatch(path.name, one) for one in patterns), path
        text = path.read_text("utf-8")
        assert text.isascii(), path
        assert text.count("\n") <= 400, path
        assert max(map(len, text.split("\n"))) <= 100, path
        assert "</script" not in text or path.suffix == ".html", path
