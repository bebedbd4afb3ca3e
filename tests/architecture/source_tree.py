"""The repository's Python files as syntax trees, and questions that the tests ask of them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("nmtkit", "nmtkit_cli")
FOLDERS = (*PACKAGES, "benchmarks", "docs", "examples", "tests")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A Python file; `path` is relative to the repository, with slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def module(self) -> str:
        """The name that it is imported by."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclass(frozen=True)
class Import:
    """A name that a file imports; at its top, or inside a function or for type checkers."""

    name: str
    line: int
    is_at_top: bool


def sources(*folders: str) -> tuple[Source, ...]:
    """Read all Python files under some of the repository's folders."""
    return tuple(source for folder in folders for source in _sources_in(folder))


@cache
def _sources_in(folder: str) -> tuple[Source, ...]:
    return tuple(
        Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
        for path in sorted((ROOT / folder).rglob("*.py"))
    )


@cache
def imports(source: Source) -> tuple[Import, ...]:
    """Return what a file imports: a.b for `from a import b`, which may be a module or a name."""
    return tuple(_imports(source))


def _imports(source: Source) -> Iterator[Import]:
    inner = {
        id(node)
        for block in (*functions(source.tree), *type_checking_blocks(source.tree))
        for node in ast.walk(block)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    for node in ast.walk(source.tree):
        is_at_top = id(node) not in inner
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, is_at_top)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source.path}:{node.lineno}: relative import"
            for alias in node.names:
                yield Import(f"{node.module}.{alias.name}", node.lineno, is_at_top)


@cache
def functions(tree: ast.AST) -> tuple[Function, ...]:
    """Return all functions and methods, however deep."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, Function))


def type_checking_blocks(tree: ast.AST) -> Iterator[ast.If]:
    """Yield the blocks that type checkers alone run."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            yield node


def imported_modules(source: Source, modules: set[str]) -> Iterator[tuple[Import, str]]:
    """Yield the imports that reach one of `modules`, with the module's name."""
    for one in imports(source):
        parent = one.name.rpartition(".")[0]
        name = one.name if one.name in modules else parent
        if name in modules:
            yield one, name
