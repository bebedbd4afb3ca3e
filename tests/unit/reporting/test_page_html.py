import base64
import hashlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.view import page as attention_page
from nmtkit.reporting.page import check_is_free, embedded, package_file, policy, write_page
from nmtkit.reporting.page import page as report_page
from nmtkit.reporting.systems.page import page as systems_page
from tests.messages import refuses
from tests.unit.reporting.systems.builders import comparison


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_style_and_the_script_by_their_hashes() -> None:
    style, script = "a", "b\n"
    assert policy(style, script) == (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'"
    )


@pytest.mark.parametrize(
    "text",
    [
        attention_page("title", {}, []),
        report_page("title", "verdict", "", [], [], []),
        systems_page(comparison()),
    ],
)
def test_the_policy_of_a_page_permits_its_own_style_and_script(text: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (found,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="(.*?)"/>', text)
    assert found.replace("&#x27;", "'") == policy(style, script)
    assert package_file("nmtkit.reporting", "base.css") in style


@given(st.lists(st.text()))
def test_embedded_json_is_read_back_from_html_and_from_xml(texts: list[str]) -> None:
    data = embedded(texts)
    assert json.loads(data) == texts
    assert not set("<>&") & set(data)
    read = ElementTree.fromstring(f"<script>{data}</script>").text
    assert json.loads(read or "") == texts


def test_characters_that_a_page_cannot_hold_are_escaped() -> None:
    text = "</script>]]>&\u2028\x85\uffff\ufeff"
    escaped = r'"\u003c/script\u003e]]\u003e\u0026\u2028\u0085\uffff\ufeff"'
    assert embedded(text) == escaped


def test_a_page_is_written_with_its_folder_and_never_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    check_is_free(path, overwrite=False)
    write_page(path, "\u00e4")
    assert path.read_bytes() == b"\xc3\xa4"
    check_is_free(path, overwrite=True)
    with refuses(ConfigError, "page.html; --overwrite"):
        check_is_free(path, overwrite=False)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_takes_no_files_is_named() -> None:
    with refuses(ConfigError, "/proc/page.html"):
        write_page(Path("/proc/page.html"), "")
