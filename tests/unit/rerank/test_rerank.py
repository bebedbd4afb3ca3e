import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import RerankRecipe, fields_of
from nmtkit.config.toml import MAX_CHARACTERS
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.evaluation.texts import Text
from nmtkit.progress.counting import SILENT
from nmtkit.rerank.rerank import (
    OUTPUT_FORMATS,
    make_dev_set,
    read_candidates,
    read_weights,
    rerank,
)
from nmtkit.rerank.tuning import DevSet, tune
from nmtkit.text.translations import TranslatedLine, read_translation
from tests.messages import refuses
from tests.unit.rerank.builders import features_of, line_of, program

LINE: dict[str, Any] = {"source": "a", "translation": "A", "score": -1.0}


# ------------------------------------------------------------------------------- candidates


def candidates(**systems: Sequence[dict[str, Any]]) -> Iterator[TranslatedLine]:
    texts = {
        name: "".join(f"{json.dumps(line)}\n" for line in lines) for name, lines in systems.items()
    }
    return read_candidates([(io.BytesIO(text.encode()), name) for name, text in texts.items()])


def texts(line: TranslatedLine) -> list[str]:
    return [one.text for one in line.candidates]


def test_a_line_has_the_candidates_of_its_list_or_its_only_one() -> None:
    with_list = LINE | {"target_prefix": "A", "id": 1, "n_best": [LINE, {"translation": "B"}]}
    first, second = candidates(x=[with_list, LINE | {"target_prefix": ""}])
    assert (texts(first), texts(second)) == (["A", "B"], ["A"])
    assert (first.where, first.source, first.target_prefix) == ("x:1", "a", "A")
    assert first.others == {"id": 1}
    assert "system" not in first.candidates[0].values


def test_the_candidates_of_several_systems_follow_each_other_and_name_theirs() -> None:
    (line,) = candidates(
        one=[LINE | {"id": 1, "system": "older"}],
        two=[LINE | {"id": 2, "more": 3, "translation": "B"}],
    )
    assert texts(line) == ["A", "B"]
    assert [one.values["system"] for one in line.candidates] == ["one", "two"]
    assert [one.named("score") for one in line.candidates] == ['one:1: "score"', 'two:1: "score"']
    assert line.others == {"id": 1, "more": 3}


@pytest.mark.parametrize("other", [{"source": "b"}, {"target_prefix": "A"}])
def test_another_line_is_an_error_that_names_both(other: dict[str, str]) -> None:
    found = candidates(x=[LINE, LINE], y=[LINE, LINE | other])
    next(found)
    with refuses(DataError, "y:2 source target_prefix x:2; files"):
        next(found)


@pytest.mark.parametrize(("ones", "twos", "shorter"), [(1, 2, "ones"), (2, 1, "twos")])
def test_a_file_that_is_shorter_is_an_error_that_names_it(
    ones: int, twos: int, shorter: str
) -> None:
    with refuses(DataError, f"{shorter} 1 lines; files"):
        list(candidates(ones=[LINE] * ones, twos=[LINE] * twos))


def test_no_line_is_read_ahead() -> None:
    stream = io.BytesIO(b'{"source": "a", "translation": "A"}\nno JSON\n')
    found = read_candidates([(stream, "x")])
    assert texts(next(found)) == ["A"]
    with refuses(DataError, "x:2 JSON"):
        next(found)


# ------------------------------------------------------------------------------- their order


def ranked(line: TranslatedLine, **weights: float) -> TranslatedLine:
    features = features_of(",".join(weights))
    ((found,),) = rerank([line], features, [*weights.values()], 10)
    return found


def test_candidates_are_ordered_by_the_weighted_sum_of_their_features() -> None:
    line = line_of("a", "A", "B B B", "C C", scores=[-1, -4, -2])
    assert texts(ranked(line, model=1)) == ["A", "C C", "B B B"]
    assert texts(ranked(line, model=-1)) == ["B B B", "C C", "A"]
    found = ranked(line, model=0.5, length=2)
    assert texts(found) == ["B B B", "C C", "A"]
    assert [one.values["rerank_score"] for one in found.candidates] == [4.0, 3.0, 1.5]
    assert found.best.values["features"] == {"model": -4.0, "length": 3.0}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_equal_scores_keep_the_order_of_the_input(scores: list[int]) -> None:
    names = [f"{number}" for number in range(len(scores))]
    found = texts(ranked(line_of("a", *names, scores=scores), model=1))
    assert found == sorted(names, key=lambda name: (-scores[int(name)], int(name)))


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_sum_that_is_not_finite_is_an_error_that_names_the_line() -> None:
    line = line_of("a", "A", scores=[1.7e308])
    with refuses(DataError, "x:1 features; weights scores"):
        ranked(line, model=10)


def test_the_candidates_of_a_blank_line_stay() -> None:
    assert texts(ranked(line_of("", "", "A", scores=[1, 2]), model=1)) == ["", "A"]


def test_no_line_is_read_beyond_a_chunk() -> None:
    read: list[int] = []

    def endless() -> Iterator[TranslatedLine]:
        while True:
            read.append(1)
            yield line_of("a", "A")

    chunks = rerank(endless(), features_of("length"), [1], 5)
    assert [len(next(chunks)) for _ in range(3)] == [5, 5, 5]
    assert len(read) == 15


def test_text_is_the_best_candidate_on_one_line() -> None:
    assert OUTPUT_FORMATS["text"](ranked(line_of("a", "A", "B\n\x85B B"), length=1)) == "B  B B"


def test_json_has_the_candidates_in_their_new_order() -> None:
    (line,) = candidates(
        x=[
            {"source": "a\nb", "target_prefix": "p", "id": 7, "\ud800": 1, "translation": "A"}
            | {"n_best": [{"translation": text} for text in ("A", "B B", "C C C")]}
        ]
    )
    text = OUTPUT_FORMATS["json"](ranked(line, length=1))
    assert text.encode()
    assert texts(read_translation(text, "x:1")) == ["C C C", "B B", "A"]
    best, *others = (
        {"translation": text, "features": {"length": length}, "rerank_score": length}
        for text, length in (("C C C", 3.0), ("B B", 2.0), ("A", 1.0))
    )
    head = {"schema": "nmtkit-translations/1", "source": "a\nb", "target_prefix": "p"}
    expected = head | {"id": 7, "\ud800": 1} | best | {"n_best": [best, *others]}
    assert list(json.loads(text).items()) == list(expected.items())


def test_the_settings_name_exactly_the_existing_formats() -> None:
    setting = fields_of(RerankRecipe)["output_format"]
    assert setting.choices == tuple(OUTPUT_FORMATS)


# ------------------------------------------------------------------------------- the dev set

DEV = [
    line_of("a", "the cat sat on the mat", "a cat sat", "the cat sat on the mat", scores=[1, 2, 3]),
    line_of("b", "it rained all day", "it is raining all of the day", scores=[-1, -3]),
    line_of("", "", scores=[0]),
    line_of("c", "no\none saw it", scores=[5]),
]
REFERENCES = [
    Text("one", ["the cat sat on a mat", "it was raining all day", "", "nobody saw it"]),
    Text("two", ["a cat sat on the mat", "all day it rained", "", "no one has seen it"]),
]


def dev_set_of(config: MetricsConfig, num_references: int) -> DevSet:
    metric, *_ = make_metrics(config)
    features = features_of("model,length")
    return make_dev_set(DEV, REFERENCES[:num_references], features, metric, 3, SILENT)


@pytest.mark.parametrize("name", ["bleu", "chrf", "chrf++", "ter"])
@pytest.mark.parametrize("num_references", [1, 2])
def test_the_objective_is_the_score_of_the_chosen_text(name: str, num_references: int) -> None:
    config = MetricsConfig(metric=name)
    dev_set = dev_set_of(config, num_references)
    assert dev_set.values.tolist() == [[1, 6], [2, 3], [3, 6], [-1, 4], [-3, 7], [0, 0], [5, 4]]
    assert dev_set.sizes.tolist() == [3, 2, 1, 1]
    weights = tune(dev_set, 1, SILENT)
    (chosen,) = rerank(DEV, features_of("model,length"), weights.tolist(), 10)
    lines = [one.best.text.replace("\n", " ") for one in chosen]
    references = [one.lines for one in REFERENCES[:num_references]]
    (score,) = score_corpus(make_metrics(config), lines, references)
    sign = 1 if score.is_higher_better else -1
    # 1e-12: the sums are exact; the score is computed once from integers, once from floats.
    assert sign * dev_set.score(weights) == pytest.approx(score.score, rel=1e-12)


def test_a_program_scores_by_its_mean() -> None:
    words = program("len(texts[0]) * len(texts[1].split()) - len(texts) - texts[2].count(' ')")
    config = MetricsConfig(metric="none", metric_command=(f"words={words}", "other=false"))
    dev_set = dev_set_of(config, 2)
    expected = [-3, -6, -3, -4, -1, -4, -2]
    assert dev_set.statistics.tolist() == [[score, 1] for score in expected]
    assert dev_set.score(tune(dev_set, 1, SILENT)) == (-3 - 1 - 4 - 2) / 4


# ------------------------------------------------------------------------------- weights


def test_weights_have_the_order_of_the_features(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text('{"length": 1, "forced:a b/\\u00e9": -0.5}', "utf-8")
    assert read_weights(path, ["forced:a b/\u00e9", "length"]) == [-0.5, 1.0]


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"weights",
        b"[" * 100_000,
        b" " * MAX_CHARACTERS + b'{"model": 1, "length": 1}',
        b"[1, 1]",
        b'{"model": 1}',
        b'{"model": 1, "length": 1, "size": 1}',
        b'{"model": 1, "length": "1"}',
        b'{"model": 1, "length": true}',
        b'{"model": 1, "length": NaN}',
        b'{"model": 1, "length": 1e999}',
        b'{"model": 1, "length": 1' + b"0" * 400 + b"}",
    ],
    ids=range(12),
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_it(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "weights.json"
    path.write_bytes(content)
    with refuses(ConfigError, f"{path} JSON model length; --tune"):
        read_weights(path, ["model", "length"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with refuses(ConfigError, f"{tmp_path}/none; --weights"):
        read_weights(tmp_path / "none", ["model"])
