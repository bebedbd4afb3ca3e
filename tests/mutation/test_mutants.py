import ast

import pytest

from tests.architecture.source_tree import sources
from tests.mutation.mutants import Mutant, draw, mutants

TEXTS = {source.path: source.text for source in sources("nmtkit/storage", "nmtkit/text")}
NUM_DRAWN = 30
DRAWN = draw(TEXTS, seed=1, count=NUM_DRAWN)

UNTOUCHED = '''
"""Text with 1 + 2."""
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    number = 1

Kind = Literal["a", "b"]

@cache(size=1)
def first(values: list[int], key: Literal["a"], count: "tuple[1]") -> Literal[1]:
    """Text with 1 + 2."""
    assert len(values) > 1, "text"
    for _ in zip(values, values, strict=True):
        raise ValueError("text %d" % count, f"{values[0]} is not {count + 1}")
'''

CHANGES = {
    "x = a + b": ["a - b"],
    "x = (a) - (  # + +\n b)": ["(a) + (  # + +\n b)"],
    "x **= 2": ["x *= 2", "x **= 3"],
    "x = a * b // c % d": ["a + b // c % d", "a * b * c % d", "a * b // c // d"],
    "x = a and b or c": ["a and b and c", "a or b or c"],
    "x = 0 < a <= 2": ["0 <= a <= 2", "0 < a < 2", "1 < a <= 2", "0 < a <= 3"],
    "x = a is b": ["a is not b"],
    "x = a not  in b": ["a in b"],
    "x = a != 'b'": ["a == 'b'"],
    "x = not a": ["= a"],
    "x = a['key']": ["a['key_']"],
    "x = {'a': b, **c}": ["{'a_': b, **c}"],
    "x = a[1]": ["a[2]"],
    "x = a[b:-1]": ["a[(b) + 1:-1]", "a[b:-2]"],
    "x = True": ["x = False"],
    "x = 1_000.5": ["x = 1001.5"],
    "a(\n b)": ["pass"],
    "if a: b": ["if not (a): b"],
    "if not a: b": ["if a: b"],
    "if a == b: c": ["if a != b: c"],
    "while a < b: c": ["while a <= b: c", "while not (a < b): c"],
    "x = b if a else c": ["b if not (a) else c"],
    "x = [a for a in b if a]": ["[a for a in b if not (a)]"],
    "def f():\n return a": ["return None"],
    "def f() -> bool:\n return a": ["return not (a)"],
    "def f(): return True": ["return False"],
    "f'{a + 1}'": [],
    "x = 'a' + b": [],
    "while True: a": ["while False: a"],
}


def test_mutants_depend_on_seed_and_sources_only() -> None:
    assert draw(dict(reversed(TEXTS.items())), seed=1, count=NUM_DRAWN) == DRAWN
    assert draw(TEXTS, seed=2, count=NUM_DRAWN) != DRAWN
    assert len(set(DRAWN)) == NUM_DRAWN


@pytest.mark.parametrize(("path", "mutant"), DRAWN)
def test_a_mutant_is_another_program_that_differs_by_one_segment(path: str, mutant: Mutant) -> None:
    text = TEXTS[path]
    changed = mutant.apply(text)
    assert text[mutant.begin : mutant.end] == mutant.before != mutant.after
    assert changed == text[: mutant.begin] + mutant.after + text[mutant.end :]
    assert text[: mutant.begin].count("\n") + 1 == mutant.line
    assert mutant.lines is None or mutant.line in mutant.lines
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


@pytest.mark.parametrize("text", CHANGES)
def test_each_kind_of_change(text: str) -> None:
    changed = [mutant.apply(text) for mutant in mutants(text)]
    assert len(changed) == len(CHANGES[text])
    for expected in CHANGES[text]:
        assert any(expected in one for one in changed), changed


def test_texts_types_and_assertions_are_unchanged() -> None:
    assert not mutants(UNTOUCHED)


def test_a_mutant_has_the_lines_of_its_own_statement() -> None:
    text = "A = 1\ndef f(b=2):\n    if (\n        b > 3\n    ):\n        f(4)\n    return [\n5]\n"
    lines = {mutant.before: mutant.lines for mutant in mutants(text)}
    assert lines["1"] is lines["2"] is None
    assert lines[">"] == lines["3"] == range(3, 6)
    assert lines["4"] == range(6, 7)
    assert lines["5"] == range(7, 9)
