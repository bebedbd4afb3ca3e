"""What the documentation says can be done can be done: commands, options, recipes, chores."""

import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import click
import pytest

from nmtkit.config.schema import PreprocessRecipe, TrainRecipe
from nmtkit.config.toml import loads
from nmtkit_cli.command_line import group
from tests.architecture.source_tree import ROOT

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
RECIPES = dict.fromkeys(("recipe.toml", "base.toml", "big.toml", "craft.toml"), TrainRecipe)
CHORE = r"^([a-z0-9%-]+):"  # a rule of the Makefile


def documents() -> list[Path]:
    guides = (*(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("README.md"))
    return [*(ROOT / name for name in DOCUMENTS), *sorted(guides)]


def blocks(text: str) -> Iterator[str]:
    """Yield the fenced blocks and the code in running text."""
    pieces = re.split(r"^```.*$", text, flags=re.MULTILINE)
    yield from pieces[1::2]
    for prose in pieces[::2]:
        yield from re.findall(r"`([^`\n]+)`", prose)


def command_lines(text: str) -> Iterator[str]:
    """Yield every line of code that begins with nmtkit, or has it after a pipe, cut there."""
    for block in blocks(text):
        for line in block.replace("\\\n", " ").split("\n"):
            line = re.sub(r"\s#.*", "", line.strip().removeprefix("$ "))
            for command in re.split(r"\s[|;]\s|\s&&\s", line):
                if command.startswith("nmtkit "):
                    yield command


def all_command_lines() -> list[tuple[str, str]]:
    return [
        (path.name, line)
        for path in (*documents(), ROOT / "examples/demo/run.sh")
        for line in (
            command_lines(path.read_text("utf-8"))
            if path.suffix == ".md"
            else re.findall(r"'(nmtkit .*)'", path.read_text("utf-8"))
        )
    ]


def check(line: str) -> None:
    """Parse a command line as the command line would, but run nothing.

    Raises:
        click.UsageError: for an unknown command, an unknown option or an option without a value.
    """
    words = shlex.split(re.sub(r"(?<=\s)[<>]\s*\S+", "", line))[1:]
    words = [word for word in words if word != "..."]
    # With the group's own settings: click keeps the help option that it first makes.
    context = click.Context(group, info_name="nmtkit", **group.context_settings)
    parser = group.make_parser(context)
    parser.allow_interspersed_args = False
    _, rest, _ = parser.parse_args(words)
    if not rest:
        return
    name, command, arguments = group.resolve_command(context, rest)
    assert command is not None
    command.make_parser(click.Context(command, context, name)).parse_args(list(arguments))


def test_every_command_that_a_document_shows_exists() -> None:
    for document, line in all_command_lines():
        try:
            check(line)
        except click.UsageError as error:
            pytest.fail(f"{document}: {line}: {error.format_message()}")


@pytest.mark.parametrize(
    "line",
    ["nmtkit trains data/", "nmtkit train data/ --optimizer adam", "nmtkit train data/ --out"],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        check(line)


def test_commands_are_found_in_documents() -> None:
    text = "`nmtkit a`\n```sh\n$ cat x | nmtkit b \\\n    --c  # why\nnmtkit d && nmtkit e\n```\n"
    found = [" ".join(line.split()) for line in command_lines(text)]
    assert sorted(found) == ["nmtkit a", "nmtkit b --c", "nmtkit d", "nmtkit e"]
    assert len(all_command_lines()) > 10


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.toml")), ids=str)
def test_every_toml_file_of_the_examples_is_what_it_seems(path: Path) -> None:
    text = path.read_text("utf-8")
    tomllib.loads(text)
    recipe_type = RECIPES.get(path.name)
    if recipe_type is not None:
        loads(text, recipe_type, path.name)


def test_the_recipes_in_documents_load() -> None:
    for path in documents():
        for text in re.findall(r"^```toml\n(.*?)^```", path.read_text("utf-8"), re.M | re.S):
            recipe = PreprocessRecipe if "[[corpora]]" in text else TrainRecipe
            loads(text, recipe, path.name)


def test_every_chore_that_a_document_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    chores = [name.replace("%", "*") for name in re.findall(CHORE, makefile, re.MULTILINE)]
    for path in documents():
        for block in blocks(path.read_text("utf-8")):
            for line in re.findall(r"^(?:\$ )?make((?: [a-z][a-z0-9-]*)+)", block, re.MULTILINE):
                for word in line.split():
                    assert any(fnmatch(word, chore) for chore in chores), f"{path.name}: {line}"


def test_every_chore_is_told_by_make_help() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    chores = re.findall(CHORE, makefile, re.MULTILINE)
    described = re.findall(CHORE + r".*##  *\S", makefile, re.MULTILINE)
    assert described == chores


def prose(path: Path) -> str:
    """Return a document without its fenced blocks."""
    return "".join(re.split(r"^```.*$", path.read_text("utf-8"), flags=re.MULTILINE)[::2])


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a document."""
    counts: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)  # a link shows its text
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return found


def test_every_file_and_heading_that_a_document_links_to_is_there() -> None:
    for path in [*documents(), ROOT / "benchmarks" / "README.md"]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose(path)):
            file = path.parent / target if target else path
            assert file.exists(), f"{path.name}: {target}"
            if anchor:
                assert anchor in anchors(prose(file)), f"{path.name}: {target}#{anchor}"


def test_anchors_are_those_of_github() -> None:
    text = "# A\n## `--flag`: one, two\n## The paper's [table](x.md) 2\n## A\n"
    assert anchors(text) == {"a", "--flag-one-two", "the-papers-table-2", "a-1"}
