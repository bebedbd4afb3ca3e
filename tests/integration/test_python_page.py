"""The Python examples of the documents run as printed, on a tiny model."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import nmtkit
from tests.tiny import tiny_codec, write_tiny_model

PAGE = Path("docs/python.md").read_text("utf-8")
PAGES = {"docs/python.md": 8, "README.md": 1}


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", Path(page).read_text("utf-8"), re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("python")
    names = ("model", "run", "other-model", "en-de", "de-en")
    for seed, name in enumerate(names):
        codec = tiny_codec()
        if name == "de-en":
            codec = replace(codec, source_lang="de", target_lang="en")
        write_tiny_model(root / name, codec, seed)
    return root


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("page", PAGES)
def test_examples_run_in_order_without_a_warning(
    page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = examples(page)
    assert len(found) == PAGES[page]
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for example in found:
        exec(example, names)
        shown = capfd.readouterr()
        assert shown.err == ""
        for comment in re.findall(r"^ *print\(.*\)  # (.*)$", example, re.M):
            assert comment in shown.out


def test_the_page_names_everything_public() -> None:
    for name in nmtkit.__all__:
        assert re.search(rf"`(nmtkit\.)?{name}\b|nmtkit\.{name}\(", PAGE), name


def test_the_table_of_errors_has_their_bases() -> None:
    rows = re.findall(r"^\| `nmtkit\.(\w+Error)` \| `(\w+)` \|", PAGE, re.M)
    errors = {name for name in nmtkit.__all__ if name.endswith("Error")}
    assert {name for name, _ in rows} == errors - {"NmtkitError"}
    for name, base in rows:
        kinds = [kind.__name__ for kind in getattr(nmtkit, name).__mro__]
        assert {"NmtkitError", base} <= {*kinds}
