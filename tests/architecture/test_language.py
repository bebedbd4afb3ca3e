"""The project's prose: words that the product's text does not use."""

import re

from tests.architecture.source_tree import ROOT

FOLDERS = ("nmtkit", "nmtkit_cli", "benchmarks", "examples", "docs")
SUFFIXES = {".py", ".md", ".js", ".html", ".css", ".sh", ".mk", ".toml", ".yml"}
FILES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".ci/run"]

BANNED = (
    "tell", "tells", "told", "anew", "so many", "by turns", "likewise", "mend", "mends", "mended",
    "save for", "but for", "beside", "is let alone", "in its way", "comes to",
)  # fmt: skip
ALLOWED = re.compile(r"(tell|tells|told)( \w+)? apart", re.IGNORECASE)

GAP = r"[\s#>*|]+"  # a phrase may continue on the next line, after a comment's sign
PATTERN = re.compile(
    r"(?<![a-z.])(" + "|".join(phrase.replace(" ", GAP) for phrase in BANNED) + r")(?![a-z])",
    re.IGNORECASE,
)
"""Names with underscores count word by word; methods such as `stream.tell()` do not."""


def prose() -> list[str]:
    """Paths of the product's text, relative to the root: code with its comments, and pages."""
    found = [
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and (path.suffix in SUFFIXES or path.name == "Makefile")
    ]
    return [*(str(path.relative_to(ROOT)) for path in found), *FILES]


def banned_words(text: str) -> list[tuple[int, str]]:
    """Line number and words of each banned phrase in a text."""
    return [
        (text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()))
        for match in PATTERN.finditer(text)
        if not ALLOWED.match(text, match.start())
    ]


def test_banned_words_are_found() -> None:
    text = "it was told\n# so\n# many\nx = told_once\nTell them apart, retell, mending, f.tell()"
    assert banned_words(text) == [(1, "told"), (2, "so # many"), (4, "told")]


def test_no_banned_word_is_used() -> None:
    found = [
        f"{path}:{number}: {words}"
        for path in prose()
        for number, words in banned_words((ROOT / path).read_text("utf-8"))
    ]
    assert not found, "see docs/glossary.md and CONTRIBUTING.md:\n" + "\n".join(found)
