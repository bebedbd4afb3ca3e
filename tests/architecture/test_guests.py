"""Guests: outside its folder, only the tables below and the help of options name parsing.

Spans are a guest that only files with a table import.
"""

import ast
import re
from collections.abc import Iterator
from typing import get_args

import pytest

from nmtkit.config.metrics import (
    CONSTRAINT_SETTINGS,
    DEFAULT_METRICS,
    METRICS,
    TYPE_SETTINGS,
    ComparedType,
    TargetType,
)
from nmtkit.decoding.translator import OUTPUT_FORMS
from nmtkit.evaluation.evaluate import LINE_TYPES
from nmtkit.text.codec import KINDS
from tests.architecture.source_tree import PACKAGES, Source, imports, sources

GUEST = "nmtkit/parsing/"
COMMANDS = ("nmtkit_cli/trees.py",)
"""The command group of the guest's own."""

SPANS = "nmtkit/spans/"
"""The second guest, whose words are too common to be searched for."""
HOSTS_OF_SPANS = (
    "nmtkit/evaluation/metrics.py",
    "nmtkit/evaluation/evaluate.py",
    "nmtkit/decoding/translator.py",
    "nmtkit/training/text_hook.py",
    "nmtkit/data/encode.py",
)
"""The files with a table that may import it."""

HELP = "the help of the command"

TABLES: dict[str, tuple[str, ...]] = {
    # Facts: segmentations, metrics, what follows from the type of a target.
    "nmtkit/config/preprocessing.py": ("SEGMENTATIONS", "LINEARIZATIONS", "_TREES"),
    "nmtkit/config/metrics.py": (
        "TargetType",
        "ComparedType",
        "METRICS",
        "TYPE_SETTINGS",
        "CONSTRAINT_SETTINGS",
        "DEFAULT_METRICS",
    ),
    # Implementations: kinds of vocabulary, how they are learnt, forms of outputs, metrics.
    "nmtkit/text/codec.py": ("KINDS",),
    "nmtkit/data/vocabulary.py": ("LEARNERS",),
    "nmtkit/decoding/translator.py": ("OUTPUT_FORMS",),
    "nmtkit/evaluation/metrics.py": ("MAKERS",),
    "nmtkit/evaluation/evaluate.py": ("LINE_TYPES",),
    # Help.
    "nmtkit/config/presets.py": ("PRESETS_HELP",),
    "nmtkit_cli/command_line.py": ("COMMANDS",),
    "nmtkit_cli/score.py": ("EXAMPLES", HELP),
}
"""The names at the top of a file that may name the guest."""

MENTION = re.compile(r"tree|evalb|bracket|pars(e[rs]|ing)|\b(a|is)[_ ]parse\b", re.IGNORECASE)
OF_OTHERS = re.compile("resilient_parsing|parsing_base")
"""Names of click, and of the settings of tensor2tensor."""


def hosts() -> Iterator[Source]:
    """Yield the files outside of the guests' own."""
    for source in sources(*PACKAGES):
        if not source.path.startswith((GUEST, SPANS)) and source.path not in COMMANDS:
            yield source


def permitted_lines(source: Source) -> set[int]:
    """Return the lines of a file's tables, of help, of settings with theirs, and of imports."""
    names = TABLES.get(source.path, ())
    nodes: list[ast.AST] = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.AnnAssign) and is_setting(node))
    ]
    nodes += [node for node in source.tree.body if not names_of(node).isdisjoint(names)]
    if HELP in names:
        nodes += [
            node.body[0]
            for node in source.tree.body
            if isinstance(node, ast.FunctionDef) and node.name == "command"
        ]
    lines: set[int] = set()
    for node in nodes:
        assert isinstance(node, ast.stmt)
        lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def is_setting(node: ast.AnnAssign) -> bool:
    """Return whether a field of a configuration is declared."""
    return isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in (
        "setting",
        "common",
    )


def names_of(node: ast.stmt) -> set[str]:
    """Return what a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return {ast.unparse(target) for target in targets}


def mentions(source: Source) -> Iterator[str]:
    permitted = permitted_lines(source)
    for number, line in enumerate(source.text.split("\n"), 1):
        if MENTION.search(OF_OTHERS.sub("", line)) and number not in permitted:
            yield f"{source.path}:{number}: {line.strip()}"


def importers(guest: str) -> Iterator[str]:
    """Yield the files outside of a guest's folder that import from it."""
    module = guest.replace("/", ".")
    for source in sources(*PACKAGES):
        names = [f"{one.name}." for one in imports(source)]
        if not source.path.startswith(guest) and any(name.startswith(module) for name in names):
            yield source.path


def test_only_tables_and_help_name_parsing() -> None:
    found = [line for source in hosts() for line in mentions(source)]
    assert not found, "\n".join(found)


def test_only_files_with_a_table_import_guests() -> None:
    assert set(importers(GUEST)) <= {*TABLES, *COMMANDS}
    assert set(importers(SPANS)) <= set(HOSTS_OF_SPANS)


def test_every_table_that_is_listed_is_there() -> None:
    by_path = {source.path: source for source in sources(*PACKAGES)}
    for path, names in TABLES.items():
        defined = set().union(*map(names_of, by_path[path].tree.body))
        assert defined >= set(names) - {HELP}, path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "nmtkit/decoding/translator.py",
            "def f(codec):\n    return isinstance(codec, TreeTokens)",
        ),
        ("nmtkit/data/prepare.py", "if is_parse:\n    check_parses(corpora)"),
        ("nmtkit/text/codec.py", "KINDS = {}\nx = 'trees'"),
    ],
)
def test_a_branch_for_trees_is_found(path: str, text: str) -> None:
    assert list(mentions(Source(path, text)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nmtkit/text/codec.py", "KINDS = {\n    'trees': Kind(TreeTokens),\n}"),
        ("nmtkit/config/schema.py", "class A:\n    beam: int = setting(4, 'Of parsers.')"),
        ("nmtkit/decoding/formats.py", "x = json.loads(line, parse_int=_integer)"),
    ],
)
def test_a_table_may_name_parsing(path: str, text: str) -> None:
    assert not list(mentions(Source(path, text)))


def test_every_type_is_in_every_table_of_types() -> None:
    targets, compared = {*get_args(TargetType)}, {*get_args(ComparedType)}
    for of_targets in (DEFAULT_METRICS, CONSTRAINT_SETTINGS, OUTPUT_FORMS):
        assert set(of_targets) == targets
    assert {kind.target_type for kind in KINDS.values()} == targets
    for of_lines in (TYPE_SETTINGS, LINE_TYPES):
        assert set(of_lines) == compared
    assert {info.compares for info in METRICS.values()} == compared
