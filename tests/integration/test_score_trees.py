"""`nmtkit score --metric brackets`."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.commands import nmtkit
from tests.messages import refused

GOLD = b"(TOP (S (NP (A a)) (VP (B b))))\n"
PARSED = b"(TOP (S (NP (A a)) (B b)))\n"
OTHER = b"(TOP (S (NP (A a)) (VP (B x))))\n"


def score(
    parsed: bytes, *arguments: str, cwd: Path, gold: bytes
) -> "subprocess.CompletedProcess[bytes]":
    (cwd / "gold").write_bytes(gold)
    line = ("score", "--metric", "brackets", "--reference", "gold", *arguments)
    return nmtkit(*line, stdin=parsed, folder=cwd)


def test_f1_and_strict_f1_are_one_line_each(tmp_path: Path) -> None:
    process = score(GOLD + PARSED + OTHER, cwd=tmp_path, gold=GOLD * 3)
    f1, strict, rest = process.stdout.decode().split("\n")
    assert f1.startswith("F1 = 90.91 recall = 83.33 precision = 100.00 complete = 50.00 ")
    assert "(sentences = 3 errors = 1 skipped = 0 F1<=40 = 90.91)  nrefs:1|prm:COLLINS|" in f1
    # 5 brackets of 9 and of 8.
    assert strict.startswith("strict F1 = 58.82  nrefs:1|prm:COLLINS|")
    assert (process.stderr, process.returncode, rest) == (b"", 0, "")


def test_sentences_are_reported_as_by_evalb(tmp_path: Path) -> None:
    process = score(PARSED + OTHER, "--sentence-level", cwd=tmp_path, gold=GOLD * 2)
    lines = process.stdout.decode().split("\n")
    assert lines[3] == (
        "   1    2    0   66.67 100.00     2      3    2      0      2     2   100.00"
    )
    assert lines[7:10] == ["=== Summary ===", "", "-- All --"]
    problem, signature = process.stderr.decode().splitlines()
    assert problem == "2 : Words unmatch (b|x)"
    assert signature.startswith("F1: nrefs:1|prm:COLLINS|xx:gold|version:nmtkit-")
    process = score(PARSED + OTHER, "--sentence-level", "--json", cwd=tmp_path, gold=GOLD * 2)
    one, other = map(json.loads, process.stdout.splitlines())
    assert (one["matched"], other["problems"]) == (2, ["Words unmatch (b|x)"])


@pytest.mark.parametrize("arguments", [[], ["--sentence-level"]])
def test_many_errors_are_an_error_unless_the_parameters_permit_them(
    tmp_path: Path, arguments: list[str]
) -> None:
    parsed, gold = GOLD * 2 + OTHER * 12, GOLD * 14
    process = score(parsed, *arguments, cwd=tmp_path, gold=gold)
    refused(process, 3, "input line 14 b|x; MAX_ERROR 10")
    complaints = process.stderr.decode().split("\n")[:-2]
    assert complaints == [f"{n} : Words unmatch (b|x)" for n in range(3, 14) if arguments]
    # The head, and what comes before the line that ends it.
    assert process.stdout.count(b"\n") == (3 + 13 if arguments else 0)
    (tmp_path / "own.prm").write_bytes(b"MAX_ERROR 100\nDELETE_LABEL TOP\n")
    process = score(parsed, "--prm", "own.prm", *arguments, cwd=tmp_path, gold=gold)
    assert process.returncode == 0
