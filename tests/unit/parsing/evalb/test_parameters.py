from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError
from nmtkit.parsing.evalb.parameters import COLLINS, Parameters, parameters_of, read_parameters
from tests.messages import refuses
from tests.shared_data import DATA, needs_data

PRM = DATA / "evalb" / "prm"


def read(folder: Path, text: str) -> Parameters:
    (folder / "own.prm").write_text(text, "utf-8")
    return read_parameters(folder / "own.prm")


@needs_data
def test_the_built_in_parameters_are_those_of_collins() -> None:
    assert read_parameters(PRM / "COLLINS.prm") == COLLINS
    assert parameters_of("") == COLLINS
    assert parameters_of(str(PRM / "unlabeled.prm")).is_labelled is False
    assert parameters_of(str(PRM / "cut10.prm")).cutoff_length == 10


def test_every_parameter_is_read(tmp_path: Path) -> None:
    text = (
        "# DELETE_LABEL X\n\nDEBUG 0\nMAX_ERROR 3\nCUTOFF_LEN 7  \nLABELED 0\nDELETE_LABEL\tTOP\n"
        "DELETE_LABEL ,\nDELETE_LABEL_FOR_LENGTH -NONE-\nQUOTE_LABEL POS\n"
        "EQ_LABEL ADVP PRT\nEQ_WORD This this\n"
    )
    assert read(tmp_path, text) == Parameters(
        max_error=3,
        cutoff_length=7,
        is_labelled=False,
        deleted=frozenset({"TOP", ","}),
        deleted_for_length=frozenset({"-NONE-"}),
        quotes=frozenset({"POS"}),
        equal_labels=frozenset({("ADVP", "PRT")}),
        equal_words=frozenset({("This", "this")}),
    )


def test_an_empty_file_deletes_nothing_and_keeps_evalb_s_numbers(tmp_path: Path) -> None:
    empty = read(tmp_path, "")
    assert (empty.max_error, empty.cutoff_length, empty.is_labelled) == (10, 40, True)
    assert not empty.deleted | empty.deleted_for_length | empty.quotes


def test_equality_is_symmetric_and_not_transitive() -> None:
    pairs = frozenset({("A", "B"), ("B", "C")})
    parameters = replace(COLLINS, equal_labels=pairs, equal_words=pairs)
    for is_equal in (parameters.is_equal_label, parameters.is_equal_word):
        assert is_equal("A", "B")
        assert is_equal("C", "B")
        assert is_equal("D", "D")
        assert not is_equal("A", "C")
        assert not is_equal("A", "D")


def test_brackets_equal_to_deleted_ones_do_not_count() -> None:
    parameters = replace(COLLINS, equal_labels=frozenset({("ROOT", "TOP")}))
    assert parameters.deleted_brackets - COLLINS.deleted_brackets == {"ROOT"}


def test_parameters_that_score_differently_have_different_names() -> None:
    assert COLLINS.name() == replace(COLLINS, max_error=10_000).name() == "COLLINS"
    others = [
        replace(COLLINS, cutoff_length=10),
        replace(COLLINS, is_labelled=False),
        replace(COLLINS, deleted=frozenset({"TOP"})),
        replace(COLLINS, deleted_for_length=frozenset()),
        replace(COLLINS, quotes=frozenset({"POS"})),
        replace(COLLINS, equal_labels=frozenset()),
        replace(COLLINS, equal_words=frozenset({("a", "b")})),
    ]
    names = {one.name() for one in others}
    assert len(names) == len(others)
    assert "COLLINS" not in names


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("DELETE_LABELS TOP", "own.prm:2 DELETE_LABELS; DEBUG LABELED"),
        ("DELETE_LABEL", "own.prm:2 DELETE_LABEL 0 1"),
        ("EQ_LABEL A B C", "own.prm:2 EQ_LABEL 3 2"),
        ("MAX_ERROR ten", "own.prm:2 MAX_ERROR ten 9"),
        ("DEBUG 1", "own.prm:2 DEBUG 1; 0 --sentence-level"),
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        read(tmp_path, f"# a comment\n{line}\n")


KEYS = ("DEBUG", "MAX_ERROR", "LABELED", "DELETE_LABEL", "QUOTE_LABEL", "EQ_LABEL", "EQ_WORD", "#")


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.text("0A- \u0663\t", max_size=5)), max_size=3))
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, str]]
) -> None:
    text = "".join(f"{key} {value}\n" for key, value in lines)
    with suppress(ConfigError):
        assert read(tmp_path_factory.getbasetemp(), text).name()


def test_a_missing_file_is_named() -> None:
    with refuses(ConfigError, "none.prm"):
        parameters_of("none.prm")
