"""Requests are read from each format, and answers written in each."""

import io
import json
from array import array
from typing import Any

import pytest

from nmtkit.config.schema import TranslateRecipe, fields_of
from nmtkit.config.toml import build
from nmtkit.config.translation import OutputConfig
from nmtkit.decoding.answers import Answer, Request, Translation
from nmtkit.decoding.formats import (
    INPUT_FORMATS,
    OUTPUT_FORMATS,
    InputFormat,
    answered,
    make_writer,
    read_requests,
)
from nmtkit.errors import ConfigError, DataError
from nmtkit.text.lines import MAX_LINE_BYTES
from nmtkit.text.translations import ANSWER_KEYS, SCHEMA
from tests.messages import refuses
from tests.tiny import never_warn

MOSES_LIST = {"n_best": 2, "output_format": "moses"}
SECOND = Translation("zwei ||| er", -1.75, -1.5, ("zwei", "</s>"))
BEST = Translation(
    "ein er",
    *(-0.875, -0.7, ("_ein", "er", "</s>")),
    source_tokens=("_one", "</s>"),
    token_log_probs=(-0.5, -0.25, -0.125),
    alignment=((0, 0), (2, 1)),
    attention=(array("f", (1.0, 0.0)),) * 3,
    alternatives=(SECOND,),
)
ANSWER = Answer(Request("one he", others={"id": 7, "tags": ["\u00e4"]}), BEST)


def requests(*lines: str, input_format: str = "json", first_line: int = 1) -> list[Request]:
    """Return the requests of a text from a line on."""
    text = io.BytesIO("".join(f"{line}\n" for line in lines).encode())
    return [*read_requests(text, input_format, "x", never_warn, first_line)]


def test_lines_of_text_are_requests() -> None:
    assert requests('{"source": 1}', "", input_format="text") == [
        Request('{"source": 1}'),
        Request(""),
    ]


def test_objects_have_source_prefix_and_other_keys() -> None:
    lines = ['{"source": "a", "target_prefix": "b", "id": 1}', '{"source": "line\\nend"}']
    assert requests(*lines) == [
        Request("a", "b", {"id": 1}),
        Request("line\nend"),
    ]
    (request,) = requests('{"source": "a", "target_lang": "sv", "id": 1}')
    assert request == Request("a", "", {"id": 1}, target_lang="sv")


def test_a_text_that_may_be_left_out_may_be_null() -> None:
    (request,) = requests('{"source": "a", "target_prefix": null, "id": null}')
    assert request == Request("a", "", {"id": None})


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("plain text", "JSON"),
        ("[" * 100_000, "JSON"),
        ('["source"]', "source"),
        ('{"text": "a"}', "source"),
        ('{"source": null}', "source"),
        ('{"source": "a", "target_prefix": 3}', "target_prefix"),
        ('{"source": "a", "target_lang": 3}', "target_lang"),
        (r'{"source": "A \ud800 car."}', r"source \ud800"),
        (r'{"source": "a", "target_prefix": "\udfff"}', "target_prefix"),
        ('{"source": "a", "id": NaN}', "JSON NaN"),
        ('{"source": "a", "id": -Infinity}', "JSON -Infinity"),
        ('{"source": "a", "id": 1e999}', "JSON 1e999"),
        (f'{{"source": "a", "id": {"1" * 1001}}}', "JSON 1001"),
        (f'{{"source": "{"a" * (MAX_LINE_BYTES + 1)}"}}', "source 1,048,576"),
        ('{"source": "a", "source": "b"}', "JSON source"),
    ],
)
def test_a_malformed_line_is_named(line: str, keys: str) -> None:
    text = io.BytesIO(b'{"source": "a"}\n' + line.encode())
    found = read_requests(text, "json", "standard input", never_warn)
    next(found)
    with refuses(DataError, f"input:2 {keys}"):
        next(found)


def test_an_error_counts_lines_from_the_first_one() -> None:
    with refuses(DataError, "x:8"):
        requests(*["no JSON"] * 6, '{"source": "a"}', "[]", first_line=7)


def test_keys_of_an_earlier_answer_are_not_passed_through() -> None:
    answer = dict.fromkeys(ANSWER_KEYS, "stale") | {"schema": SCHEMA}
    (request,) = requests(json.dumps({"id": 1, "source": "a", "target_prefix": "b"} | answer))
    assert request == Request("a", "b", {"id": 1})


def test_a_later_version_of_the_schema_is_refused() -> None:
    with refuses(DataError, "x:1 schema nmtkit-translations/2 1"):
        requests('{"source": "a", "schema": "nmtkit-translations/2"}')


def written(number: int = 0, **settings: object) -> list[str]:
    return make_writer(OutputConfig(**settings))(ANSWER, number)  # type: ignore[arg-type]


def test_text_is_the_best_translation_with_scores_and_alignments_in_columns() -> None:
    assert written() == ["ein er"]
    assert written(scores=True) == ["ein er\t-0.700000"]
    assert written(alignments=True) == ["ein er\t0-0 2-1"]
    assert written(scores=True, alignments=True) == ["ein er\t-0.700000\t0-0 2-1"]


def test_moses_n_best_lists_have_one_line_per_translation() -> None:
    best = "12 ||| ein er ||| LogProb= -0.875000 Tokens= 3 ||| -0.700000"
    second = "12 ||| zwei | | | er ||| LogProb= -1.750000 Tokens= 2 ||| -1.500000"
    assert written(12, output_format="moses", n_best=2) == [best, second]
    lines = written(12, output_format="moses", n_best=2, alignments=True)
    assert lines == [f"{best} ||| 0-0 2-1", f"{second} ||| "]


def test_each_line_of_text_answers_a_line() -> None:
    ends = [*answered(OutputConfig(n_best=2), [b"a\n", b"\n", b"b c\n"], 7)]
    assert dict(ends) == {7: 0, 8: 2, 9: 3, 10: 7}


def test_a_moses_list_is_complete_when_another_follows_or_it_has_all_candidates() -> None:
    output = OutputConfig(**MOSES_LIST)  # type: ignore[arg-type]
    lines = [b"7 ||| a\n", b"7 ||| b\n", b"8 ||| c\n", b"9 ||| d\n"]
    assert dict(answered(output, lines[:1], 7)) == {7: 0}
    assert dict(answered(output, lines[:3], 7)) == {7: 0, 8: 16}
    assert dict(answered(output, [*lines, b"\0\0 ||| e\n", b"10 ||| f\n"], 7)) == {
        **{7: 0, 8: 16, 9: 24}
    }


def test_json_passes_other_keys_through() -> None:
    (line,) = written(output_format="json")
    assert "\u00e4" in line
    assert list(json.loads(line).items()) == [
        ("schema", "nmtkit-translations/1"),
        ("source", "one he"),
        ("id", 7),
        ("tags", ["\u00e4"]),
        ("translation", "ein er"),
        ("score", -0.7),
        ("log_prob", -0.875),
    ]


def test_halves_of_characters_that_are_passed_on_remain_escapes() -> None:
    line = r'{"source": "a", "\udc80": ["\ud800", "\ud83d\ude00"]}'
    (request,) = requests(line)
    (out,) = make_writer(OutputConfig(output_format="json"))(Answer(request, BEST), 0)
    assert r'"\udc80": ["\ud800", "' in out
    assert out.encode().decode() == out
    assert json.loads(out).items() > json.loads(line).items()


def test_keys_of_the_answer_replace_other_keys() -> None:
    request = Request("a", others={"translation": "old", "score": 3, "id": 1})
    (line,) = make_writer(OutputConfig(output_format="json"))(Answer(request, BEST), 0)
    values = json.loads(line)
    assert (values["translation"], values["score"], values["id"]) == ("ein er", -0.7, 1)


def test_tabs_of_a_translation_are_no_columns() -> None:
    answer = Answer(Request("a"), Translation("ein\ter", -0.875, -0.7, ("ein", "er", "</s>")))
    assert make_writer(OutputConfig(scores=True))(answer, 0) == ["ein er\t-0.700000"]
    assert make_writer(OutputConfig())(answer, 0) == ["ein\ter"]


def test_json_has_the_n_best_as_a_list_and_requested_annotations() -> None:
    (line,) = written(
        output_format="json", n_best=2, token_scores=True, alignments=True, attention=True
    )
    values = json.loads(line)
    first, second = values["n_best"]
    assert first == {
        "translation": "ein er",
        "score": -0.7,
        "log_prob": -0.875,
        "tokens": ["_ein", "er", "</s>"],
        "token_log_probs": [-0.5, -0.25, -0.125],
        "alignment": "0-0 2-1",
        "source_tokens": ["_one", "</s>"],
        "attention": [[1.0, 0.0]] * 3,
    }
    assert {name: values[name] for name in first} == first
    assert second["translation"] == "zwei ||| er"


def test_the_settings_name_exactly_the_existing_formats() -> None:
    fields = fields_of(TranslateRecipe)
    assert fields["input_format"].choices == tuple(INPUT_FORMATS)
    assert fields["output_format"].choices == tuple(OUTPUT_FORMATS)


@pytest.mark.parametrize("name", ["n_best", "scores", "alignments", "token_scores", "attention"])
@pytest.mark.parametrize("output_format", OUTPUT_FORMATS)
def test_a_setting_without_effect_in_a_format_is_refused(name: str, output_format: str) -> None:
    value = 2 if name == "n_best" else True
    chosen: dict[str, Any] = {name: value, "output_format": output_format}
    # The translator finds fewer translations without --n-best, so Moses' writer need not know it.
    if written(**chosen) != written(output_format=output_format) or chosen == MOSES_LIST:
        build(TranslateRecipe, chosen)
    else:
        with refuses(ConfigError, f"{name} {value} --output-format"):
            build(TranslateRecipe, chosen)


def test_a_misspelt_format_is_the_only_reported_problem() -> None:
    with refuses(ConfigError, "output_format jsn text moses json") as caught:
        build(TranslateRecipe, {"output_format": "jsn", "n_best": 2})
    assert "n_best" not in str(caught.value)


def test_a_format_is_an_entry_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    loud = InputFormat(lambda line, where: Request(f"{where}: {line}"), can_be_malformed=False)
    monkeypatch.setitem(INPUT_FORMATS, "loud", loud)
    monkeypatch.setitem(
        OUTPUT_FORMATS,
        "loud",
        lambda _, answer, number: [f"{number} {answer.translation.text.upper()}"],
    )
    found = [one.source for one in requests("a", "b", input_format="loud")]
    assert found == ["x:1: a", "x:2: b"]
    assert written(7, output_format="loud") == ["7 EIN ER"]
