import json
from array import array
from typing import Any

import pytest

from nmtkit.config.fields import fields_of
from nmtkit.config.schema import OutputConfig, TranslateRecipe
from nmtkit.config.toml import build
from nmtkit.decoding.annotations import Annotations
from nmtkit.decoding.formats import (
    INPUT_FORMATS,
    OUTPUT_FORMATS,
    make_writer,
    read_requests,
)
from nmtkit.decoding.requests import Answer, Request, Translation
from nmtkit.errors import ConfigError, DataError
from nmtkit.text.lines import LINE_BYTES, MAX_LINE_BYTES

JSON = OutputConfig(input_format="json")
DETAILS = Annotations(
    source_tokens=("_one", "</s>"),
    tokens=("_ein", "er", "</s>"),
    token_log_probs=(-0.5, -0.25, -0.125),
    alignment=((0, 0), (2, 1)),
    num_words=(3, 2),
    attention=(array("f", (1.0, 0.0)),) * 3,
)
MOSES_LIST = {"n_best": 2, "output_format": "moses"}
BEST = Translation("ein er", -0.875, -0.7, 3, DETAILS)
SECOND = Translation("zwei ||| er", -1.75, -1.5, 2)
ANSWER = Answer(Request("one he", others={"id": 7, "tags": ["\u00e4"]}), [BEST, SECOND])


def written(number: int = 0, **settings: object) -> list[str]:
    return make_writer(OutputConfig(**settings))(ANSWER, number)  # type: ignore[arg-type]


def test_text_is_the_best_translation_alone() -> None:
    assert written() == ["ein er"]


def test_text_has_scores_and_alignments_in_columns() -> None:
    assert written(scores=True) == ["ein er\t-0.700000"]
    assert written(alignments=True) == ["ein er\t0-0 2-1"]
    assert written(scores=True, alignments=True) == ["ein er\t-0.700000\t0-0 2-1"]


def test_moses_n_best_lists_have_one_line_per_translation() -> None:
    best = "12 ||| ein er ||| LogProb= -0.875000 Tokens= 3 ||| -0.700000"
    second = "12 ||| zwei | | | er ||| LogProb= -1.750000 Tokens= 2 ||| -1.500000"
    assert written(12, output_format="moses", n_best=2) == [best, second]
    lines = written(12, output_format="moses", n_best=2, alignments=True)
    assert lines == [f"{best} ||| 0-0 2-1", f"{second} ||| "]


def test_json_passes_other_keys_through() -> None:
    (line,) = written(output_format="json")
    assert "\u00e4" in line
    assert json.loads(line) == {
        "id": 7,
        "tags": ["\u00e4"],
        "source": "one he",
        "translation": "ein er",
        "score": -0.7,
        "log_prob": -0.875,
    }


def test_halves_of_characters_that_are_passed_on_remain_escapes() -> None:
    line = r'{"source": "a", "\udc80": ["\ud800", "\ud83d\ude00"]}'
    (request,) = read_requests([line], JSON, "x")
    (out,) = make_writer(OutputConfig(output_format="json"))(Answer(request, [BEST]), 0)
    assert r'"\udc80": ["\ud800", "' in out
    assert out.encode().decode() == out
    assert json.loads(out).items() > json.loads(line).items()


def test_keys_of_the_answer_replace_other_keys() -> None:
    request = Request("a", others={"translation": "old", "score": 3, "id": 1})
    (line,) = make_writer(OutputConfig(output_format="json"))(Answer(request, [BEST]), 0)
    values = json.loads(line)
    assert (values["translation"], values["score"], values["id"]) == ("ein er", -0.7, 1)


def test_a_source_is_written_unchanged() -> None:
    line = json.dumps({"source": "two\nlines\tand a tab"})
    (request,) = read_requests([line], JSON, "x")
    (out,) = make_writer(OutputConfig(output_format="json"))(Answer(request, [BEST]), 0)
    assert json.loads(out)["source"] == "two\nlines\tand a tab"


def test_tabs_of_a_translation_are_no_columns() -> None:
    answer = Answer(Request("a"), [Translation("ein\ter", -0.875, -0.7, 3)])
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


def test_lines_of_text_are_requests() -> None:
    assert list(read_requests(['{"source": 1}', ""], OutputConfig(), "x")) == [
        Request('{"source": 1}'),
        Request(""),
    ]


def test_objects_have_source_prefix_and_other_keys() -> None:
    lines = ['{"source": "a", "target_prefix": "b", "id": 1}', '{"source": "line\\nend"}']
    assert list(read_requests(lines, JSON, "x")) == [
        Request("a", "b", {"id": 1}),
        Request("line\nend"),
    ]


def test_a_text_that_may_be_left_out_may_be_null() -> None:
    assert list(
        read_requests(['{"source": "a", "target_prefix": null, "id": null}'], JSON, "x")
    ) == [Request("a", "", {"id": None})]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("plain text", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('["source"]', 'not an object with a text as "source"'),
        ('{"text": "a"}', 'not an object with a text as "source"'),
        ('{"source": null}', 'not an object with a text as "source"'),
        ('{"source": "a", "target_prefix": 3}', '"target_prefix" is not a text'),
        (
            r'{"source": "A \ud800 car."}',
            r'"source" holds half a character \(\\ud800\); write both',
        ),
        (r'{"source": "a", "target_prefix": "\udfff"}', r'"target_prefix" holds half a character'),
        ('{"source": "a", "id": NaN}', r"cannot be read as JSON \(NaN is not a finite number\)"),
        ('{"source": "a", "id": -Infinity}', r"cannot be read as JSON \(-Infinity is not a finite"),
        (
            '{"source": "a", "id": 1e999}',
            r"cannot be read as JSON \(1e999 is not a finite number\)",
        ),
        (
            f'{{"source": "a", "id": {"1" * 1001}}}',
            r"cannot be read as JSON \(a number of 1001 digits;",
        ),
        (
            f'{{"source": "{"a" * (MAX_LINE_BYTES + 1)}"}}',
            '"source" has more than 1,048,576 characters; break it into several lines',
        ),
        ('{"source": "a", "source": "b"}', r'cannot be read as JSON \(the key "source" is twice'),
    ],
)
def test_a_malformed_line_is_named(line: str, what: str) -> None:
    requests = read_requests(['{"source": "a"}', line], JSON, "standard input")
    next(requests)
    with pytest.raises(DataError, match=f"^standard input, line 2: {what}"):
        next(requests)


def test_an_error_counts_lines_from_the_first_one() -> None:
    with pytest.raises(DataError, match=r"^x, line 8: not an object"):
        list(read_requests(['{"source": "a"}', "[]"], JSON, "x", first_line=7))


def test_the_settings_name_exactly_the_existing_formats() -> None:
    fields = fields_of(TranslateRecipe)
    assert fields["input_format"].setting.choices == tuple(INPUT_FORMATS) == tuple(LINE_BYTES)
    assert fields["output_format"].setting.choices == tuple(OUTPUT_FORMATS)


@pytest.mark.parametrize("name", ["n_best", "scores", "alignments", "token_scores", "attention"])
@pytest.mark.parametrize("output_format", OUTPUT_FORMATS)
def test_a_setting_without_effect_in_a_format_is_refused(name: str, output_format: str) -> None:
    value = 2 if name == "n_best" else True
    chosen: dict[str, Any] = {name: value, "output_format": output_format}
    # The translator finds fewer translations without --n-best, so Moses' writer need not know it.
    if written(**chosen) != written(output_format=output_format) or chosen == MOSES_LIST:
        build(TranslateRecipe, chosen)
    else:
        with pytest.raises(ConfigError, match=rf"^{name} \({value}\) has no effect without --out"):
            build(TranslateRecipe, chosen)


def test_a_misspelt_format_is_the_only_reported_problem() -> None:
    with pytest.raises(ConfigError) as caught:
        build(TranslateRecipe, {"output_format": "jsn", "n_best": 2})
    assert str(caught.value).startswith("output_format ('jsn') must be one of: text, moses, json")
    assert "n_best" not in str(caught.value)


def test_a_format_is_an_entry_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        INPUT_FORMATS, "loud", lambda lines, name, _: (Request(f"{name}: {line}") for line in lines)
    )
    monkeypatch.setitem(
        OUTPUT_FORMATS,
        "loud",
        lambda _, answer, number: [f"{number} {answer.translations[0].text.upper()}"],
    )
    config = OutputConfig(input_format="loud", output_format="loud")
    assert [one.source for one in read_requests(["a", "b"], config, "in")] == ["in: a", "in: b"]
    assert written(7, output_format="loud") == ["7 EIN ER"]
