"""The layout of a run's folder is known in one place, nmtkit/storage/run_folder.py."""

import ast
from collections.abc import Iterator

import pytest

from nmtkit.storage.run_folder import BEST, CHECKPOINTS, LAST, RUN_FILES
from tests.architecture.source_tree import PACKAGES, Source, sources

PLAIN_WORDS = {CHECKPOINTS, LAST, BEST}  # they name files only where they are parts of a path


PATH_CALLS = {"joinpath", "Path", "glob", "rglob", "join"}
"""Functions whose arguments are parts of a path."""


def called(node: ast.Call) -> str:
    """Return the last name of the function that is called."""
    return ast.unparse(node.func).rpartition(".")[2]


def file_names(source: Source) -> Iterator[str]:
    """Yield the literals that name a file of a run, alone or as a part of a path."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_text = " " in node.value  # help may name files
            names = RUN_FILES if "/" in node.value else RUN_FILES - PLAIN_WORDS
            found = set() if is_text else names.intersection(node.value.split("/"))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            found = RUN_FILES.intersection(
                one.value for one in (node.left, node.right) if isinstance(one, ast.Constant)
            )
        elif isinstance(node, ast.Call) and called(node) in PATH_CALLS:
            found = RUN_FILES.intersection(
                one.value for one in node.args if isinstance(one, ast.Constant)
            )
        else:
            continue
        for name in found:
            yield f"{source.path}:{node.lineno}: {name!r}"


def test_no_file_outside_storage_names_the_files_of_a_run() -> None:
    found = [
        line
        for source in sources(*PACKAGES)
        if not source.path.startswith("nmtkit/storage/")
        for line in file_names(source)
    ]
    assert not found, "ask a RunFolder for the path:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        'run / "metrics.jsonl"',
        'open(f"{run}/metrics.jsonl")',
        'run.glob("checkpoints/*")',
        'FILE = "micro_batches.json"',
        'run / "last"',
        'run / "checkpoints" / name',
        'f"{run}/best"',
        'Path("run") / "best" / "x"',
        'run.joinpath("last")',
        'Path(run, "best")',
        'run.glob("checkpoints")',
    ],
)
def test_the_name_of_a_file_of_a_run_is_found(text: str) -> None:
    assert list(file_names(Source("nmtkit/training/example.py", text)))


@pytest.mark.parametrize(
    "text",
    [
        '"""RUN metrics.jsonl holds the records."""',
        '{"last": 3}',
        'argument("checkpoints")',
        'x = "see RUN/metrics.jsonl of it"',
    ],
)
def test_other_literals_are_let_pass(text: str) -> None:
    assert not list(file_names(Source("nmtkit/training/example.py", text)))
