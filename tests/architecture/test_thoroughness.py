"""`make test` leaves out nothing that `make test-system` does not run."""

import ast
from collections.abc import Iterator

import pytest

from tests import thoroughness
from tests.architecture.source_tree import Source, functions, imports, sources
from tests.thoroughness import sample


def unmarked_samples(source: Source) -> Iterator[str]:
    """Yield functions that take a sample without the mark by which the system run finds them."""
    if all(one.name != "tests.thoroughness.sample" for one in imports(source)):
        return
    for function in functions(source.tree):
        calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
        marks = " ".join(ast.unparse(one) for one in function.decorator_list)
        is_sampled = "sample" in {ast.unparse(call.func) for call in calls}
        if is_sampled and "pytest.mark.sampled" not in marks:
            yield f"{source.path}:{function.lineno}: {function.name}"


def test_every_test_that_takes_a_sample_is_marked() -> None:
    own = "tests/architecture/", "tests/conftest.py"
    found = [
        line
        for source in sources("tests")
        if not source.path.startswith(own)
        for line in unmarked_samples(source)
    ]
    assert not found


def test_a_sample_without_a_mark_is_found() -> None:
    text = "from tests.thoroughness import sample\n{}def test(): sample([1], 2)"
    assert list(unmarked_samples(Source("tests/test_one.py", text.format(""))))
    marked = text.format("@pytest.mark.sampled\n")
    assert not list(unmarked_samples(Source("tests/test_one.py", marked)))


@pytest.mark.parametrize("count", [1, 6, 7, 50])
def test_a_sample_is_every_nth_case_and_never_empty(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thoroughness, "IS_THOROUGH", False)
    cases, seen = range(count), set[int]()
    for day in range(200):
        monkeypatch.setattr(thoroughness, "SEED", str(day))
        drawn = sample(cases, 7)
        assert list(drawn) == list(range(drawn[0], count, 7))
        assert drawn == sample(cases, 7)
        seen |= {*drawn}
    assert seen == {*cases}


def test_a_thorough_run_takes_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thoroughness, "IS_THOROUGH", True)
    assert sample(range(50), 7) == range(50)
