import io
import json

import pytest

from nmtkit.errors import DataError
from nmtkit.text.translations import (
    TRANSLATION_KEYS,
    Candidate,
    TranslatedLine,
    read_translation,
    read_translations,
)
from tests.messages import refuses

EXAMPLES: dict[str, object] = {
    "translation": "A",
    "score": -1,
    "quality": 45.1,
    "quality_error": 12.3,
    "perplexity": 2.5,
    "log_prob": -1.5,
    "tokens": ["A", "</s>"],
    "token_log_probs": [-1.0, -0.5],
    "alignment": "0-0",
    "link_probabilities": [0.5],
    "source_tokens": ["a"],
    "attention": [[1.0, 0.0]],
    "placed": [{"kind": "term", "source": [0, 1], "translation": None}],
    "features": {"model": -1.5},
    "rerank_score": 2,
    "system": "one.jsonl",
}


def read(**values: object) -> TranslatedLine:
    return read_translation(json.dumps({"source": "a", "translation": "A"} | values), "x:7")


def test_a_line_has_texts_candidates_and_other_keys() -> None:
    best, second = {"translation": "A", "score": -1.0}, {"translation": "B", "tokens": ["B"]}
    line = read(schema="nmtkit-translations/1", **best, n_best=[best, second], id=[1], text="t")
    assert line == TranslatedLine(
        where="x:7",
        source="a",
        target_prefix="",
        best=Candidate("A", best, "x:7", ""),
        n_best=[
            Candidate("A", best, "x:7", "n_best[0]."),
            Candidate("B", second, "x:7", "n_best[1]."),
        ],
        others={"id": [1], "text": "t"},
    )
    assert line.candidates == line.n_best


def test_keys_of_its_own_stay_with_a_candidate_of_a_list() -> None:
    line = read(id=1, n_best=[{"translation": "A", "id": 2, "schema": "x"}])
    assert line.n_best[0].values == {"translation": "A", "id": 2}
    assert (line.best.values, line.others) == ({"translation": "A"}, {"id": 1})


def test_a_candidate_names_its_keys() -> None:
    line = read(n_best=[EXAMPLES, EXAMPLES])
    assert line.best.named("score") == 'x:7: "score"'
    assert line.candidates[1].named("score") == 'x:7: "n_best[1].score"'


def test_a_line_without_a_list_has_one_candidate() -> None:
    line = read(target_prefix="A", n_best=None)
    assert line.candidates == (line.best,) == (Candidate("A", {"translation": "A"}, "x:7", ""),)
    assert line.target_prefix == "A"


def test_every_key_is_read_with_its_type() -> None:
    assert set(EXAMPLES) == set(TRANSLATION_KEYS)
    line = read(**EXAMPLES, n_best=[EXAMPLES])
    assert line.best.values == line.n_best[0].values == EXAMPLES


@pytest.mark.parametrize("key", EXAMPLES)
@pytest.mark.parametrize("value", [None, True, 10**400, [True], [[None]], {"a": "b"}, ["a", 1]])
def test_a_value_of_another_type_is_an_error_that_names_the_key(key: str, value: object) -> None:
    with refuses(DataError, f"x:7 {key}"):
        read(**{key: value})
    with refuses(DataError, f"x:7 n_best[1].{key}"):
        read(n_best=[EXAMPLES, EXAMPLES | {key: value}])


@pytest.mark.parametrize("n_best", ["A", [], {}, ["A"], [None]])
def test_a_list_of_something_else_is_refused(n_best: object) -> None:
    with refuses(DataError, "x:7 n_best"):
        read(n_best=n_best)


def test_a_translation_is_required() -> None:
    with refuses(DataError, "x:7 translation"):
        read_translation('{"source": "a"}', "x:7")
    with refuses(DataError, "x:7 n_best[0].translation"):
        read(n_best=[{"score": 1}])


def test_half_a_character_in_a_translation_is_refused() -> None:
    with refuses(DataError, "x:7 n_best[0].translation"):
        read(n_best=[{"translation": "\ud800"}])


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        ("nmtkit-translations/2", "nmtkit-translations/2 1"),
        ("nmtkit-translations/10", "nmtkit-translations/10 1"),
        *((one, "nmtkit-translations/1") for one in ("nmtkit-translations/0", "other/1", None)),
    ],
)
def test_another_schema_or_version_is_an_error_that_names_the_known_one(
    schema: object, keys: str
) -> None:
    with refuses(DataError, f"x:7 schema {keys}"):
        read(schema=schema, translation=3)


def test_the_lines_of_a_stream_are_numbered() -> None:
    text = b'{"source": "a", "translation": "A"}\n' * 2 + b'{"source": "\xff"}\n'
    found = read_translations(io.BytesIO(text), "x.jsonl")
    assert [next(found).where, next(found).where] == ["x.jsonl:1", "x.jsonl:2"]
    with refuses(DataError, "x.jsonl:3 UTF-8 byte 13; iconv"):
        next(found)
