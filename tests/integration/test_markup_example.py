"""examples/markup with a random model: no tag, placeholder or term is lost."""

from pathlib import Path
from xml.etree import ElementTree

from tests.conversions import shared_codec, write_random_model
from tests.recipes import MARKUP, make

PLACEHOLDERS = {"{user}", "%d", "2024", "{path}", "https://example.org/words"}
TERMS = {"W\u00f6rterbuch", "Editor"}


def test_all_tags_placeholders_and_terms_are_in_the_translation(tmp_path: Path) -> None:
    write_random_model(tmp_path / "model", shared_codec(), {})
    done = make(
        f"MODEL={tmp_path / 'model'}",
        f"WORK={tmp_path / 'work'}",
        "TRANSLATE_FLAGS=--max-length-offset 20 --device cpu",
        folder=MARKUP,
    )
    assert done.returncode == 0, done.stderr
    assert "Structure = 100.00 (same = 9 lines = 9)" in done.stdout
    assert "WellFormed = 100.00 (well_formed = 9 lines = 9)" in done.stdout
    translated = (tmp_path / "work" / "translated.xml").read_text("utf-8")
    assert {one for one in PLACEHOLDERS | TERMS if one not in translated} == set()


def test_every_line_can_be_read_as_xml() -> None:
    for line in (MARKUP / "lines.xml").read_text("utf-8").splitlines():
        ElementTree.fromstring(f"<line>{line}</line>")
