"""Sampled segmentations: text unchanged, a function of ids and seed, the right distribution."""

import math
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.symbols import UNK_ID
from nmtkit.text.subword import Algorithm, Subword, load_processor
from nmtkit.text.subword_sampler import SAMPLED, SubwordSampler, _Dropout
from tests.unit.text.test_subword import trained_elsewhere

ALGORITHMS: tuple[Algorithm, ...] = ("bpe", "unigram")
TAG = "<bt>"
SIZE = 450


@cache
def corpus() -> tuple[str, ...]:
    generator = random.Random(1)
    words = ["".join(generator.choices("abdeinrt", k=generator.randint(1, 5))) for _ in range(300)]
    return tuple(" ".join(generator.choices(words, k=6)) + "." for _ in range(300))


@cache
def model(algorithm: Algorithm) -> Subword:
    return Subword.train(corpus(), algorithm, SIZE, "xx", [TAG])


@cache
def sampler_of(algorithm: Algorithm, alpha: float) -> SubwordSampler:
    return SubwordSampler(model(algorithm).data, alpha)


def draws(algorithm: Algorithm, text: str, alpha: float, count: int) -> Counter[tuple[int, ...]]:
    """Count the segmentations of a text drawn with the seeds from 0."""
    ids = model(algorithm).encode(text)
    sampler = sampler_of(algorithm, alpha)
    return Counter(tuple(sampler.sample(ids, seed)) for seed in range(count))


def chi_square(
    found: Mapping[tuple[int, ...], int], expected: Mapping[tuple[int, ...], float]
) -> float:
    """Return the statistic in standard deviations above its mean; rare outcomes are merged."""
    total = sum(found.values())
    common = [one for one, share in expected.items() if share * total >= 5]
    pairs = [(found.get(one, 0), expected[one] * total) for one in common]
    rest = total - sum(number for number, _ in pairs), total - sum(mean for _, mean in pairs)
    pairs += [rest] if rest[1] >= 5 else []
    statistic = sum((number - mean) ** 2 / mean for number, mean in pairs)
    freedom = len(pairs) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


# Text that Hypothesis rarely draws: names of symbols, all kinds of spaces, NFKC's changes.
SPICE = st.sampled_from([TAG, "</s>", "<unk>", "<0x41>", "\u2581", "\u00a0", "\u200b", "\ufb01"])
TEXT = st.lists(st.one_of(st.text(), SPICE, st.sampled_from(corpus()))).map("".join)


@given(
    TEXT, st.sampled_from(ALGORITHMS), st.sampled_from([0.01, 0.1, 0.5, 1.0]), st.integers(0, 99)
)
def test_every_draw_spells_the_text(
    line: str, algorithm: Algorithm, alpha: float, seed: int
) -> None:
    stored = model(algorithm).encode(line)
    drawn = sampler_of(algorithm, alpha).sample(stored, seed)
    assert model(algorithm).decode(drawn) == model(algorithm).decode(stored)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_draw_depends_only_on_text_and_seed(algorithm: Algorithm) -> None:
    stored = [model(algorithm).encode(line) for line in corpus()[:20]]
    first, second = (SubwordSampler(model(algorithm).data, 0.2) for _ in range(2))
    forwards = [first.sample(ids, seed) for seed, ids in enumerate(stored)]
    backwards = [second.sample(stored[seed], seed) for seed in reversed(range(20))]
    assert forwards == backwards[::-1]
    assert forwards != [first.sample(ids, seed + 1) for seed, ids in enumerate(stored)]


def test_every_process_draws_the_same(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\n"
        "from nmtkit.text.subword_sampler import SubwordSampler\n"
        "for path, ids in zip(sys.argv[1::2], sys.argv[2::2]):\n"
        "    sampler = SubwordSampler(pathlib.Path(path).read_bytes(), 0.3)\n"
        "    print([sampler.sample(eval(ids), seed) for seed in range(5)])"
    )
    command, expected = [sys.executable, "-c", program], ""
    for algorithm in ALGORITHMS:
        (tmp_path / algorithm).write_bytes(model(algorithm).data)
        ids, sampler = model(algorithm).encode(corpus()[0]), sampler_of(algorithm, 0.3)
        command += [str(tmp_path / algorithm), str(ids)]
        expected += f"{[sampler.sample(ids, seed) for seed in range(5)]}\n"
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == expected


def test_bpe_with_all_merges_equals_sentencepiece() -> None:
    vocabulary, cutter = model("bpe"), sampler_of("bpe", 0.1)._segmenter
    assert isinstance(cutter, _Dropout)
    for word in {word for line in corpus() for word in line.split()}:
        merged = cutter._merge(f"\u2581{word}", len(word), random.Random(1))
        assert merged == [vocabulary.piece(index) for index in vocabulary.encode(word)]


def test_without_merges_bpe_gives_characters() -> None:
    drawn = sampler_of("bpe", 1.0).sample(model("bpe").encode("batine"), 1)
    assert [model("bpe").piece(index) for index in drawn] == ["\u2581", *"batine"]


@pytest.mark.parametrize("alpha", [0.1, 0.4])
def test_the_only_merge_of_a_text_is_left_out_with_probability_alpha(alpha: float) -> None:
    pieces = map(model("bpe").piece, range(SIZE))
    letter = next(one[1] for one in pieces if len(one) == 2 and one[0] == "\u2581")
    found = draws("bpe", letter, alpha, count=3000)
    whole, split = sorted(found, key=len)
    assert (len(whole), len(split), len(found)) == (1, 2, 2)
    spread = math.sqrt(3000 * alpha * (1 - alpha))
    assert found[split] == pytest.approx(3000 * alpha, abs=4 * spread)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_unigram_draws_in_proportion_to_the_power_of_the_probability(alpha: float) -> None:
    """The oracle is the sum over all segmentations of the text."""
    text = "derebatinditeraneb"
    processor = load_processor(model("unigram").data, "x")
    weights = {
        ids: math.exp(alpha * sum(map(processor.get_score, ids)))
        for ids in segmentations(
            f"\u2581{text}", {processor.id_to_piece(i): i for i in range(3, SIZE)}
        )
    }
    total = sum(weights.values())
    expected = {ids: weight / total for ids, weight in weights.items()}
    assert len(expected) > 10
    found = draws("unigram", text, alpha, count=3000)
    assert found.keys() <= expected.keys()
    assert abs(chi_square(found, expected)) < 4


def segmentations(text: str, pieces: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    if not text:
        yield ()
    for end in range(1, len(text) + 1):
        if text[:end] in pieces:
            yield from ((pieces[text[:end]], *rest) for rest in segmentations(text[end:], pieces))


def test_bpe_segmentations_are_as_frequent_as_those_of_sentencepiece() -> None:
    text, count = "derebatinditeraneb", 1000
    processor = load_processor(model("bpe").data, "x")
    sentencepiece.set_random_generator_seed(1)
    stream = Counter(
        tuple(processor.encode(text, enable_sampling=True, alpha=0.2, nbest_size=-1))
        for _ in range(20 * count)
    )
    expected = {ids: number / (20 * count) for ids, number in stream.items()}
    assert len(expected) > 20
    assert abs(chi_square(draws("bpe", text, 0.2, count), expected)) < 4


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_tag_keeps_its_id_and_place(algorithm: Algorithm) -> None:
    vocabulary, sampler = model(algorithm), sampler_of(algorithm, 0.5)
    tag = vocabulary.encode(TAG)
    stored = [[*tag, *vocabulary.encode(line)] for line in corpus()[:50]]
    drawn = [sampler.sample(ids, seed) for seed, ids in enumerate(stored)]
    assert drawn != stored
    assert all(ids[: len(tag)] == tag for ids in drawn)


def given_model(kind: str, lines: Sequence[str], size: int = 200, **options: bool) -> Subword:
    """Return a model of an algorithm as other tools train it."""
    data = trained_elsewhere(lines, size, model_type=kind, hard_vocab_limit=False, **options)
    return Subword(data, "given")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_unknown_tokens_stay_and_the_words_around_them_are_sampled(algorithm: Algorithm) -> None:
    vocabulary = given_model(algorithm, corpus())
    sampler = SubwordSampler(vocabulary.data, 0.5)
    first, last = vocabulary.encode("bati"), vocabulary.encode("derani")
    stored = vocabulary.encode("bati \u4e16 derani")
    unknown = stored[len(first) : len(stored) - len(last)]
    assert UNK_ID in unknown
    drawn = [sampler.sample(stored, seed) for seed in range(20)]
    for ids in drawn:
        assert vocabulary.decode(ids) == vocabulary.decode(stored)
        assert ids.count(UNK_ID) == stored.count(UNK_ID)
    assert any(ids != stored for ids in drawn)


def test_a_model_of_characters_or_words_has_only_one_segmentation() -> None:
    assert all(model(algorithm).segmentation in SAMPLED for algorithm in ALGORITHMS)
    found = {given_model(kind, corpus()).segmentation for kind in ("char", "word")}
    assert found.isdisjoint(SAMPLED)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pieces_with_spaces_inside_are_drawn_too(algorithm: Algorithm) -> None:
    """A model may merge across spaces; then words are not segmented independently."""
    lines = ["an er", "an er te", "te an er"] * 20
    vocabulary = given_model(algorithm, lines, 24, split_by_whitespace=False)
    sampler = SubwordSampler(vocabulary.data, 0.3)
    stored = vocabulary.encode("te an er")
    assert any("\u2581" in vocabulary.piece(index)[1:] for index in stored)
    drawn = [sampler.sample(stored, seed) for seed in range(50)]
    assert any(ids != stored for ids in drawn)
    assert all(vocabulary.decode(ids) == "te an er" for ids in drawn)


def test_memory_does_not_grow_with_text_that_has_no_spaces() -> None:
    """Such a text is one word that rarely repeats, so its lattice is not cached."""
    vocabulary, sampler = model("unigram"), sampler_of("unigram", 0.2)
    lines = [line.replace(" ", "") * 3 for line in corpus()[:60]]
    stored = [vocabulary.encode(line) for line in lines]
    tracemalloc.start()
    for ids in stored:
        sampler.sample(ids, 1)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 20 * sum(map(len, lines))
