import io
import json
from typing import Any

import pytest

from nmtkit.errors import DataError
from nmtkit.rerank.candidates import CandidateList, Input, read_candidates
from tests.messages import refuses

LINE: dict[str, Any] = {"source": "a", "translation": "A", "score": -1.0}


def system(name: str, *lines: dict[str, Any]) -> Input:
    return Input(name, io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode()))


def texts(line: CandidateList) -> list[str]:
    return [one.text for one in line.candidates]


def test_a_line_has_the_candidates_of_its_list_or_its_only_one() -> None:
    with_list = LINE | {"target_prefix": "A", "id": 1, "n_best": [LINE, {"translation": "B"}]}
    first, second = read_candidates([system("x", with_list, LINE)], None)
    assert (texts(first), texts(second)) == (["A", "B"], ["A"])
    assert (first.where, first.source, first.target_prefix) == ("x:1", "a", "A")
    assert (first.others, first.samples) == ({"id": 1}, [])
    assert "system" not in first.candidates[0].values


def test_the_candidates_of_several_systems_follow_each_other_and_name_theirs() -> None:
    (line,) = read_candidates(
        [
            system("one", LINE | {"id": 1, "system": "older"}),
            system("two", LINE | {"id": 2, "more": 3, "translation": "B"}),
        ],
        None,
    )
    assert texts(line) == ["A", "B"]
    assert [one.values["system"] for one in line.candidates] == ["one", "two"]
    assert [one.named("score") for one in line.candidates] == ['one:1: "score"', 'two:1: "score"']
    assert line.others == {"id": 1, "more": 3}


def test_different_prefixes_are_an_error_that_names_both_lines() -> None:
    systems = [system("x", LINE | {"target_prefix": "A"}), system("y", LINE)]
    with refuses(DataError, "y:1 target_prefix A x:1"):
        list(read_candidates(systems, None))


def test_samples_are_no_candidates() -> None:
    samples = system("samples", {**LINE, "n_best": [{"translation": one} for one in "BBC"]})
    (line,) = read_candidates([system("x", LINE)], samples)
    assert (texts(line), line.samples) == (["A"], ["B", "B", "C"])
    assert "system" not in line.candidates[0].values


def test_a_source_of_white_space_is_blank() -> None:
    sources = ["", " \t", "a"]
    lines = read_candidates([system("x", *(LINE | {"source": one} for one in sources))], None)
    assert [line.is_blank for line in lines] == [True, True, False]


def test_no_line_is_read_ahead() -> None:
    stream = io.BytesIO(b'{"source": "a", "translation": "A"}\nno JSON\n')
    found = read_candidates([Input("x", stream)], None)
    assert texts(next(found)) == ["A"]
    with refuses(DataError, "x:2 JSON"):
        next(found)


@pytest.mark.parametrize("has_samples", [False, True])
def test_a_different_source_is_an_error_that_names_both_lines(has_samples: bool) -> None:
    one, two = system("one", LINE, LINE), system("two", LINE, LINE | {"source": "b" * 99})
    found = read_candidates([one], two) if has_samples else read_candidates([one, two], None)
    next(found)
    with refuses(DataError, f"two:2 {'b' * 59}... a one:2"):
        next(found)


@pytest.mark.parametrize("counts", [(1, 2), (2, 1)])
def test_different_numbers_of_lines_are_an_error_that_names_both_files(
    counts: tuple[int, int],
) -> None:
    inputs = [system(f"{count}.jsonl", *[LINE] * count) for count in counts]
    with refuses(DataError, "1.jsonl 1 2.jsonl"):
        list(read_candidates(inputs, None))
