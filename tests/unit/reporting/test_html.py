import base64
import hashlib
import re

import pytest

from nmtkit.reporting.attention.page import page as attention_page
from nmtkit.reporting.html import base_style, policy
from nmtkit.reporting.page import page as report_page


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_style_and_the_script_by_their_hashes() -> None:
    style, script = "a", "b\n"
    assert policy(style, script) == (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'"
    )


@pytest.mark.parametrize(
    "text", [attention_page("title", "{}"), report_page("title", "", [], [], [])]
)
def test_the_policy_of_a_page_permits_its_own_style_and_script(text: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (found,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="(.*?)"/>', text)
    assert found.replace("&#x27;", "'") == policy(style, script)
    assert base_style() in style
