"""Limits on size, and things that the code does without. Raising one is a change to review."""

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.architecture.source_tree import (
    FOLDERS,
    PACKAGES,
    Function,
    Source,
    functions,
    imports,
    sources,
)

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60  # without the docstring
MAX_PARAMETERS = 7  # without self
# `setting(default, help, **details)` passes its details on to the dataclass Setting as they are.
MAY_TAKE_ANY_KEYWORD = ("nmtkit_cli/options.py", "nmtkit/config/setting.py")
# The C library is asked whether it has mallopt.
MAY_ASK_FOR_ATTRIBUTES = ("nmtkit/runtime/processor.py",)
PICKLING_COLLECTIVES = re.compile(r"(broadcast|scatter|send|recv)_object_list|(all_)?gather_object")
PICKLING_MODULES = ("pickle", "cPickle", "dill", "joblib", "shelve", "marshal")

Rule = Callable[[Source], Iterator[str]]


def long_files(source: Source) -> Iterator[str]:
    num_lines = source.text.count("\n")
    if num_lines > MAX_FILE_LINES:
        yield f"{source.path}: {num_lines} lines"


def long_functions(source: Source) -> Iterator[str]:
    for function in functions(source.tree):
        num_lines = (function.end_lineno or 0) - function.lineno + 1 - docstring_lines(function)
        if num_lines > MAX_FUNCTION_LINES:
            yield f"{source.path}:{function.lineno}: {function.name} has {num_lines} lines"


def docstring_lines(function: Function) -> int:
    if ast.get_docstring(function) is None:
        return 0
    return (function.body[0].end_lineno or 0) - function.body[0].lineno + 1


def many_parameters(source: Source) -> Iterator[str]:
    for function in functions(source.tree):
        arguments = function.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        own = names[1:] if names[:1] in (["self"], ["cls"]) else names
        count = len(own) + len(arguments.kwonlyargs) + (arguments.vararg is not None)
        if count > MAX_PARAMETERS:
            yield f"{source.path}:{function.lineno}: {function.name} takes {count} parameters"


def any_keywords(source: Source) -> Iterator[str]:
    """Yield functions with **keywords whose names no type has."""
    for function in functions(source.tree):
        keywords = function.args.kwarg
        if keywords is None or source.path in MAY_TAKE_ANY_KEYWORD:
            continue
        if not (keywords.annotation and ast.unparse(keywords.annotation).startswith("Unpack[")):
            yield f"{source.path}:{function.lineno}: {function.name} takes **keywords"


def loose_attributes(source: Source) -> Iterator[str]:
    if source.path in MAY_ASK_FOR_ATTRIBUTES:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "hasattr":
                yield f"{source.path}:{node.lineno}: hasattr"
            if node.func.id == "getattr" and len(node.args) > 2:
                yield f"{source.path}:{node.lineno}: getattr with a default"


def pickles(source: Source) -> Iterator[str]:
    """Yield what runs code that a file holds, or that another rank sends."""
    for one in imports(source):
        if one.name.split(".")[0] in PICKLING_MODULES:
            yield f"{source.path}:{one.line}: {one.name}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and PICKLING_COLLECTIVES.fullmatch(node.attr):
            yield f"{source.path}:{node.lineno}: {ast.unparse(node)}"
        if is_attribute(node, "torch.load", "yaml.load"):
            yield f"{source.path}: torch.load or yaml.load"
        is_switch = isinstance(node, ast.keyword) and node.arg == "allow_pickle"
        if is_switch and ast.unparse(node) != "allow_pickle=False":
            yield f"{source.path}: {ast.unparse(node)}"


def is_attribute(node: ast.AST, *names: str) -> bool:
    """Return whether a node is one of some names with a dot."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and f"{node.value.id}.{node.attr}" in names
    )


def line_splitters(source: Source) -> Iterator[str]:
    """Yield what takes other characters than a newline for the end of a line of a corpus."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == "splitlines":
            yield f"{source.path}:{node.lineno}: splitlines"
        if is_attribute(node, "codecs.open"):
            yield f"{source.path}: codecs.open"


def foreign_characters(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.split("\n"), start=1):
        if not line.isascii():
            yield f"{source.path}:{number}: not ASCII"


def postponed_work(source: Source) -> Iterator[str]:
    words = ["TO" + "DO", "FIX" + "ME", "X" * 3]
    for number, line in enumerate(source.text.split("\n"), start=1):
        if any(word in line for word in words):
            yield f"{source.path}:{number}: {line.strip()}"


def broad_handlers(source: Source) -> Iterator[str]:
    """Yield handlers that catch whatever comes; the command line's outermost one may."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and source.path != "nmtkit_cli/command_line.py":
            caught = ast.unparse(node.type) if node.type else ""
            is_passed_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if caught in ("", "Exception", "BaseException") and not is_passed_on:
                yield f"{source.path}:{node.lineno}: except {caught}"


LOCK = "from threading import Lock"


def threads(source: Source) -> Iterator[str]:
    """Yield threads that nmtkit/runtime/devices.py did not make; torch would slow down in them.

    Those of nmtkit/signals.py and nmtkit/evaluation/metric_command.py compute nothing.
    """
    for number, line in enumerate(source.text.split("\n"), start=1):
        is_exempt = source.path in (
            "nmtkit/runtime/devices.py",
            "nmtkit/signals.py",
            "nmtkit/evaluation/metric_command.py",
        )
        if not (is_exempt or line == LOCK) and ("ThreadPool" in line or "threading" in line):
            yield f"{source.path}:{number}: {line.strip()}"


EVERYWHERE: tuple[Rule, ...] = (long_files, long_functions, many_parameters, postponed_work)
IN_CODE: tuple[Rule, ...] = (foreign_characters,)
IN_PACKAGES: tuple[Rule, ...] = (
    any_keywords,
    loose_attributes,
    pickles,
    line_splitters,
    broad_handlers,
    threads,
)
SCOPES: list[tuple[Rule, tuple[str, ...]]] = [
    *((rule, FOLDERS) for rule in EVERYWHERE),
    *((rule, (*PACKAGES, "benchmarks", "docs", "examples")) for rule in IN_CODE),
    *((rule, PACKAGES) for rule in IN_PACKAGES),
]


@pytest.mark.parametrize(("rule", "folders"), SCOPES)
def test_a_rule_holds_in_every_file(rule: Rule, folders: tuple[str, ...]) -> None:
    found = [line for source in sources(*folders) for line in rule(source)]
    assert not found, "\n".join(found)


BROKEN: list[tuple[Rule, str]] = [
    (long_files, "x = 1\n" * 501),
    (long_functions, "def f():\n    '''Say.'''\n" + "    x = 1\n" * 60),
    (many_parameters, "def f(a, b, c, d, e, f, *, g, h): ..."),
    (many_parameters, "class A:\n    def f(self, a, b, c, d, e, f, g, h): ..."),
    (any_keywords, "def f(**options): ..."),
    (any_keywords, "def f(**options: Any): ..."),
    (loose_attributes, "hasattr(x, 'y')"),
    (loose_attributes, "getattr(x, 'y', None)"),
    (pickles, "import pickle"),
    (pickles, "def f():\n    from pickle import load"),
    (pickles, "import torch\nx = torch.load('model.pt')"),
    (pickles, "np.load(path, allow_pickle=True)"),
    (pickles, "dist.all_gather_object(values, value)"),
    (pickles, "dist.broadcast_object_list(values, src=0)"),
    (line_splitters, "text.splitlines()"),
    (foreign_characters, "# \u00e4\n"),
    (postponed_work, "# TO" + "DO: later\n"),
    (broad_handlers, "try:\n    pass\nexcept Exception:\n    x = 1\n"),
    (broad_handlers, "try:\n    pass\nexcept:\n    pass\n"),
    (threads, "from concurrent.futures import ThreadPoolExecutor"),
    (threads, "import threading"),
]


@pytest.mark.parametrize(("rule", "text"), BROKEN)
def test_a_rule_finds_what_it_is_for(rule: Rule, text: str) -> None:
    assert list(rule(Source("nmtkit/example.py", text)))


LAWFUL: list[tuple[Rule, str]] = [
    (any_keywords, "def f(**options: Unpack[Options]): ..."),
    (threads, LOCK),
    (long_functions, "def f():\n    '''Say.\n\n    More.\n    '''\n" + "    x = 1\n" * 59),
    (many_parameters, "class A:\n    def f(self, a, b, c, d, e, f, g): ..."),
    (loose_attributes, "getattr(x, name)"),
    (pickles, "np.load(path, allow_pickle=False)"),
    (pickles, "dist.all_gather(tensors, tensor)"),
    (broad_handlers, "try:\n    pass\nexcept BaseException:\n    clean()\n    raise\n"),
]


@pytest.mark.parametrize(("rule", "text"), LAWFUL)
def test_a_rule_lets_the_rest_pass(rule: Rule, text: str) -> None:
    assert not list(rule(Source("nmtkit/example.py", text)))
