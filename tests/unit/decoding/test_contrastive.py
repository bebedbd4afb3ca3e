"""Contrastive suites: judgements by scores of single pairs, intervals by their definition."""

import gzip
import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.schema import ScoringConfig
from nmtkit.decoding import contrastive
from nmtkit.decoding.contrastive import (
    Accuracy,
    Example,
    Judgement,
    Tally,
    judge,
    read_examples,
    wilson_interval,
)
from nmtkit.decoding.forced import score_pairs
from nmtkit.decoding.scorer import Scorer
from nmtkit.errors import DataError
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model

TEXT = st.text(st.sampled_from("ab \u00e9\u4f60")).filter(lambda text: text.strip())


def tiny_scorer(config: ScoringConfig | None = None) -> Scorer:
    codec = tiny_codec()
    return Scorer([tiny_model(codec)], codec, config or ScoringConfig())


def example(source: str, right: str, *wrong: str, category: str = "number") -> Example:
    return Example(source, right, wrong, category, "suite:1")


def judged(*examples: Example, config: ScoringConfig | None = None) -> list[Judgement]:
    chunks = judge(tiny_scorer(config), examples, lambda _pairs, _tokens: None)
    return [one for chunk in chunks for one in chunk]


# ---------------------------------------------------------------------------------- judgements


def test_log_probabilities_are_those_of_each_pair_alone() -> None:
    codec = tiny_codec()
    model = tiny_model(codec)
    lines = [line.upper() for line in TRAIN_LINES]
    examples = [
        example(source, right, *(other for other in lines[: 1 + number % 4] if other != right), "A")
        for number, (source, right) in enumerate(zip(TRAIN_LINES, lines, strict=True))
    ]
    found = judged(*examples, config=ScoringConfig(max_tokens=20))
    assert [one.example for one in found] == examples
    for one in found:
        source = codec.encode_source(one.example.source)
        expected = [
            score_pairs(model, [(source, codec.encode_target(text))], 1, None)[0].log_prob
            for text in (one.example.right, *one.example.wrong)
        ]
        # 1e-4: batches change the last digits in float32.
        assert [one.log_prob, *one.wrong_log_probs] == pytest.approx(expected, abs=1e-4)
        assert one.is_right == all(expected[0] > other for other in expected[1:])
    assert {one.is_right for one in found} == {True, False}


def test_translations_of_equal_tokens_are_a_tie_and_a_tie_is_wrong() -> None:
    # Both words are unknown to the vocabulary.
    (one,) = judged(example("a b", "A xyz", "A qqq", "A"))
    assert one.wrong_log_probs[0] == one.log_prob
    assert not one.is_right
    assert not Judgement(example("a", "A", "B"), -1.0, (-1.0,)).is_right
    assert Judgement(example("a", "A", "B"), -1.0, (-1.5, -2.0)).is_right
    assert not Judgement(example("a", "A", "B"), -1.0, (-1.5, -0.5)).is_right


def test_examples_are_read_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contrastive, "CHUNK_EXAMPLES", 5)
    read: list[int] = []

    def endless() -> Iterator[Example]:
        for number in count():
            read.append(number)
            yield example("a b", "A B", "A C")

    batches: list[int] = []
    chunks = judge(tiny_scorer(), endless(), lambda pairs, _tokens: batches.append(pairs))
    assert [len(next(chunks)) for _ in range(2)] == [5, 5]
    assert len(read) == 10
    assert sum(batches) == 20


def test_a_text_that_is_too_long_is_named_by_its_place() -> None:
    config = ScoringConfig(max_length=3)
    with refuses(DataError, "suite:1 4 3; --max-length"):
        judged(example("a b", "A B", "A B C"), config=config)
    with refuses(DataError, "suite:1 4 3; --max-length"):
        judged(example("a b c", "A B", "A C"), config=config)


# ---------------------------------------------------------------------------------- files


def suite(folder: Path, data: bytes) -> Path:
    path = folder / "suite.tsv"
    path.write_bytes(data)
    return path


@given(
    rows=st.lists(
        st.tuples(TEXT, TEXT, st.lists(TEXT, min_size=1, max_size=3), TEXT).filter(
            lambda row: row[1].split() not in [one.split() for one in row[2]]
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_written_suite_is_read_back(
    rows: list[tuple[str, str, list[str], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = ["\t".join([source, right, *wrong, name]) for source, right, wrong, name in rows]
    data = "".join(f"{line}\n" for line in lines).encode()
    folder = tmp_path_factory.mktemp("suite")
    for content in (data, gzip.compress(data)):
        path = suite(folder, content)
        found = list(read_examples(path))
        assert [(one.source, one.right, [*one.wrong], one.category) for one in found] == rows
        assert [one.place for one in found] == [f"{path}:{i}" for i in range(1, len(rows) + 1)]


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (b"a\tA\tB", "3 4"),
        (b"", "1 4"),
        (b"a\t\tB\tx", "column 2"),
        (b"a\tA\tB\t \tx", "column 4"),
        (b" \tA\tB\tx", "column 1"),
        (b"a\tA\tB\t", "column 4"),
        (b"a\tA\tB\tA \tx", "column 4"),
        (b"a\tA\xff\tB\tx", "UTF-8 byte 4 line; iconv"),
        (b"a\tA\tB\t" + b"x" * 2**20, "1MiB"),
    ],
)
def test_a_line_that_is_no_example_is_named(tmp_path: Path, line: bytes, keys: str) -> None:
    path = suite(tmp_path, b"a\tA\tB\tx\n" + line + b"\n")
    with refuses(DataError, f"{path}:2 {keys}"):
        list(read_examples(path))


def test_a_suite_without_lines_is_an_error(tmp_path: Path) -> None:
    path = suite(tmp_path, b"")
    with refuses(DataError, "suite.tsv"):
        list(read_examples(path))


# ---------------------------------------------------------------------------------- accuracy


@given(number=st.integers(1, 100_000), share=st.floats(0, 1))
def test_the_ends_of_an_interval_are_the_proportions_at_the_edge_of_the_test(
    number: int, share: float
) -> None:
    """Source: Wilson 1927: the proportions p with |share - p| = z sqrt(p (1 - p) / n)."""
    num_right = round(share * number)
    observed, z = num_right / number, NormalDist().inv_cdf(0.975)
    lower, upper = wilson_interval(num_right, number)
    assert 0 <= lower <= observed <= upper <= 1
    for end in (lower, upper):
        if 0 < end < 1:
            width = z * math.sqrt(end * (1 - end) / number)
            assert abs(observed - end) == pytest.approx(width, abs=1e-9)
    assert (lower == 0) == (num_right == 0)
    assert (upper == 1) == (num_right == number)


def test_the_quantile_is_that_of_the_normal_distribution() -> None:
    expected = NormalDist().inv_cdf(0.975)
    assert expected == pytest.approx(contrastive.NORMAL_QUANTILE, abs=1e-12)


def test_a_tally_counts_each_category_in_order_of_appearance_and_then_all() -> None:
    tally = Tally()
    for name, is_right in [("b", True), ("a", False), ("b", False), ("b", True), ("a", False)]:
        one = Judgement(example("a", "A", "B", category=name), -1.0, (-2.0 if is_right else -0.5,))
        tally.add([one])
    assert tally.accuracies() == [Accuracy("b", 3, 2), Accuracy("a", 2, 0), Accuracy(None, 5, 2)]


def test_accuracy_is_in_percent() -> None:
    one = Accuracy("a", 8, 6)
    assert one.percent == 75
    assert one.interval == tuple(100 * end for end in wilson_interval(6, 8))
