"""Mutants of Python sources: each differs by one segment, which a test should notice.

Changed are operators, comparisons, conditions, constants, keys, bounds of slices, returned values
and calls whose result is dropped. Unchanged remain docstrings, annotations, decorators, f-strings
(texts for users), assertions, blocks for type checkers, and `strict=` of zip (an assertion too).

Sources are ASCII, as the code of nmtkit is, so a column is a character.
"""

import ast
import io
import random
import tokenize
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

OPERATORS = {
    "+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "//", "**": "*",
    "and": "or", "or": "and",
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "is": "is not", "is not": "is", "in": "not in", "not in": "in",
}  # fmt: skip
UNCHANGED_FIELDS = {"annotation", "returns", "decorator_list", "type_params"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[int, int, str]
"""Begin and end of a segment, and the text in its place."""


@dataclass(frozen=True)
class Mutant:
    """A change of a source.

    Attributes:
        line: line of the segment's begin.
        begin, end: the segment that is replaced.
        before, after: its text, and the text in its place.
        lines: lines that run with it: its statement, without inner blocks; None = the module's
            import runs it.
    """

    line: int
    begin: int
    end: int
    before: str
    after: str
    lines: range | None

    def apply(self, text: str) -> str:
        """Return the changed source."""
        return text[: self.begin] + self.after + text[self.end :]


def draw(sources: Mapping[str, str], seed: int, count: int) -> list[tuple[str, Mutant]]:
    """Draw mutants of some files: all mutants are equally likely, none is drawn twice."""
    points = [(path, one) for path in sorted(sources) for one in mutants(sources[path])]
    return random.Random(seed).sample(points, min(count, len(points)))


def mutants(text: str) -> list[Mutant]:
    """Return all mutants of a source, in the order of its syntax tree."""
    return list(_Source(text).walk(ast.parse(text), None, None))


class _Source:
    def __init__(self, text: str) -> None:
        assert text.isascii()
        self.text = text
        self.starts = [0, 0, *accumulate(len(line) for line in io.StringIO(text))]
        self.words = [
            (self.starts[one.start[0]] + one.start[1], one.string)
            for one in tokenize.generate_tokens(io.StringIO(text).readline)
            if one.type in (tokenize.OP, tokenize.NAME) and one.string not in "(),"
        ]

    def walk(
        self, node: ast.AST, function: Function | None, lines: range | None
    ) -> Iterator[Mutant]:
        """Yield the mutants of a node of a function (None = the module or a class's body)."""
        if _is_unchanged(node):
            return
        if isinstance(node, ast.stmt):
            lines = _own_lines(node) if function else None
        for begin, end, after in self.changes(node, function):
            line = self.text.count("\n", 0, begin) + 1
            yield Mutant(line, begin, end, self.text[begin:end], after, lines)
        for field, value in ast.iter_fields(node):
            inside = node if isinstance(node, Function) and field == "body" else function
            if field not in UNCHANGED_FIELDS:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self.walk(child, inside, lines)

    def changes(self, node: ast.AST, function: Function | None) -> Iterator[Change]:
        """Yield the changes of a node itself."""
        for left, right in pairwise(_operands(node)):
            yield from self.operator(left, right)
        for key in _keys(node):
            begin, end = self.begin(key), self.end(key)
            yield begin, end, f"{self.text[begin : end - 1]}_{self.text[end - 1]}"
        for bound in _bounds(node):
            yield self.wrapped(bound, "({}) + 1")
        for condition in _conditions(node):
            yield self.wrapped(condition, "not ({})")
        match node:
            case ast.UnaryOp(op=ast.Not()):
                yield self.begin(node), self.begin(node) + len("not "), ""
            case ast.Constant(value=bool() | int() | float() as value):
                changed = not value if isinstance(value, bool) else value + 1
                yield self.begin(node), self.end(node), repr(changed)
            case ast.Expr(value=ast.Call()):
                yield self.begin(node), self.end(node), "pass"
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                is_bool = function and function.returns and ast.unparse(function.returns) == "bool"
                yield self.wrapped(value, "not ({})" if is_bool else "None")

    def operator(self, left: ast.expr, right: ast.expr) -> Iterator[Change]:
        """Yield the change of the operator between two operands, if it has one."""
        places = (self.end(left), self.begin(right))
        first, last = (bisect_left(self.words, (place, "")) for place in places)
        words = self.words[first:last]
        before = " ".join(word for _, word in words)
        is_augmented = before not in OPERATORS
        after = OPERATORS.get(before.removesuffix("=") if is_augmented else before)
        is_of_text = before.startswith(("+", "%", "/")) and (_is_text(left) or _is_text(right))
        if after and not is_of_text:
            end = words[-1][0] + len(words[-1][1])
            yield words[0][0], end, after + "=" * is_augmented

    def wrapped(self, node: ast.expr, pattern: str) -> Change:
        """Return the change of an expression into another one that may contain it."""
        begin, end = self.begin(node), self.end(node)
        return begin, end, pattern.format(self.text[begin:end])

    def begin(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno] + node.end_col_offset


def _is_unchanged(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.keyword(arg="strict"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Subscript(value=ast.Name(id="Literal")):
            return True
    return False


def _own_lines(statement: ast.stmt) -> range:
    """Return the lines of a statement, without those of the blocks in it."""
    body = getattr(statement, "body", None)
    end = body[0].lineno if isinstance(body, list) else (statement.end_lineno or 0) + 1
    return range(statement.lineno, max(end, statement.lineno + 1))


def _is_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_text(node: ast.expr) -> bool:
    return _is_key(node) or isinstance(node, ast.JoinedStr)


def _operands(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
            return [left, right]
        case ast.BoolOp(values=values):
            return values
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
    return []


def _keys(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Subscript(slice=key):
            return [key] if _is_key(key) else []
        case ast.Dict(keys=keys):
            return [key for key in keys if key and _is_key(key)]
    return []


def _bounds(node: ast.AST) -> list[ast.expr]:
    """Return the bounds of a slice that are not constants."""
    match node:
        case ast.Slice(lower=lower, upper=upper):
            unchanged = ast.Constant | ast.UnaryOp
            return [one for one in (lower, upper) if one and not isinstance(one, unchanged)]
    return []


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Return the conditions of a node that no other change negates."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return [] if _has_negation(test) else [test]
        case ast.comprehension(ifs=tests):
            return [test for test in tests if not _has_negation(test)]
    return []


def _has_negation(test: ast.expr) -> bool:
    match test:
        case ast.Constant() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot()]):
            return True
        case ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return True
    return False
