"""Noise on training pairs: a draw follows from seed and update, and a pair comes once."""

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.binary import Dataset, Pairs, Sequences
from nmtkit.data.sampler import Position
from nmtkit.errors import ConfigError
from nmtkit.parsing.vocabulary import TreeTokens
from nmtkit.text.words import Words
from nmtkit.training.noise import Noise
from nmtkit.training.update_reader import PairIds, UpdateReader
from tests.made_up import made_up_pairs
from tests.messages import refuses
from tests.tiny import prepared, tiny_corpus, tiny_recipe
from tests.unit.data.test_prepare import write_pairs

NUM_PAIRS = 300
TAG = "<bt>"
ALL = "join-lines=0.3,drop-final-punctuation=0.3,typo=0.3,title=0.2,upper=0.2"

Texts = list[tuple[str, str]]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Return a dataset of two texts of made-up languages; the sources of the second have a tag."""
    folder = tmp_path_factory.mktemp("noise")
    pairs = [(f"{source}.", f"{target}.") for source, target in made_up_pairs(NUM_PAIRS)]
    train = write_pairs(folder, "train", pairs[::2])
    tagged = write_pairs(folder, "tagged", pairs[1::2])
    recipe = tiny_recipe(train, write_pairs(folder, "valid", pairs[:10]))
    corpus = replace(recipe.corpus, train=(str(train), str(tagged)), tag=(f"{tagged}={TAG}",))
    vocabulary = VocabularyConfig(segmentation="bpe", vocab_size=600)
    prepared(replace(recipe, corpus=corpus, vocabulary=vocabulary), folder / "data")
    return Dataset.open(folder / "data")


@pytest.fixture
def pairs(dataset: Dataset) -> Pairs:
    return dataset.train[0]


def recipe_with(noise: str, **settings: object) -> TrainRecipe:
    return build(TrainRecipe, {"noise": noise, **settings})  # type: ignore[dict-item]


def lists(sequences: Sequences) -> list[list[int]]:
    ends = np.cumsum(sequences.lengths, dtype=np.int64)[:-1]
    return [part.tolist() for part in np.split(sequences.ids, ends)]


def texts_of(dataset: Dataset, ids: PairIds) -> Texts:
    codec = dataset.codec
    sides = [
        [vocabulary.decode(one) for one in lists(side)]
        for vocabulary, side in zip((codec.source, codec.target), ids, strict=True)
    ]
    return [*zip(*sides, strict=True)]


def read(noise: Noise, pairs: Pairs, update: int) -> tuple[list[int], PairIds]:
    indices, source, target = noise.read(pairs, noise.lines(pairs, every(pairs), update))
    return indices.tolist(), (source, target)


def every(pairs: Pairs) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    lengths = np.diff(pairs.source.offsets), np.diff(pairs.target.offsets)
    return np.lexsort(lengths)


def stored(pairs: Pairs) -> PairIds:
    return pairs.source.take(every(pairs)), pairs.target.take(every(pairs))


def test_without_noise_ids_are_those_of_the_dataset(dataset: Dataset, pairs: Pairs) -> None:
    noise = Noise.of(TrainRecipe(), dataset)
    assert not noise.is_active
    indices, found = read(noise, pairs, update=1)
    assert indices == every(pairs).tolist()
    for new, old in zip(found, stored(pairs), strict=True):
        assert new.ids.tobytes() == old.ids.tobytes()
        assert new.lengths.tobytes() == old.lengths.tobytes()


def test_pairs_that_are_not_drawn_keep_their_ids(dataset: Dataset, pairs: Pairs) -> None:
    noise = Noise.of(recipe_with("upper=0.1"), dataset)
    lines = noise.lines(pairs, every(pairs), update=1)
    drawn = {*lines.touched().tolist()}
    assert 0 < len(drawn) < NUM_PAIRS / 4
    _, found = read(noise, pairs, update=1)
    for side, (new, old) in enumerate(zip(found, stored(pairs), strict=True)):
        changed = {
            i
            for i, pair in enumerate(zip(lists(new), lists(old), strict=True))
            if pair[0] != pair[1]
        }
        assert changed <= (drawn if side == 0 else set())


def test_upper_changes_the_source_alone_and_keeps_its_tag(dataset: Dataset, pairs: Pairs) -> None:
    noise = Noise.of(recipe_with("upper=1"), dataset)
    _, found = read(replace(noise, growth=(9.0, 9.0)), pairs, update=1)
    num_tagged = 0
    for (source, target), (before, same) in zip(
        texts_of(dataset, found), texts_of(dataset, stored(pairs)), strict=True
    ):
        tag = f"{TAG} " * before.startswith(TAG)
        assert (source, target) == (tag + before.removeprefix(tag).upper(), same)
        num_tagged += bool(tag)
    assert num_tagged == NUM_PAIRS / 2


def test_final_marks_are_dropped_on_both_sides(dataset: Dataset, pairs: Pairs) -> None:
    noise = Noise.of(recipe_with("drop-final-punctuation=1"), dataset)
    _, found = read(noise, pairs, update=1)
    expected = [
        (source.removesuffix("."), target.removesuffix("."))
        for source, target in texts_of(dataset, stored(pairs))
    ]
    assert texts_of(dataset, found) == expected


@pytest.mark.parametrize("probability", [0.3, 1.0])
def test_each_pair_comes_once_also_if_it_is_joined(
    probability: float, dataset: Dataset, pairs: Pairs
) -> None:
    noise = Noise.of(recipe_with(f"join-lines={probability}"), dataset)
    lines = noise.lines(pairs, every(pairs), update=1)
    joined = lines.second[lines.second >= 0].tolist()
    assert sorted([*lines.first.tolist(), *joined]) == list(range(NUM_PAIRS))
    assert len(joined) == pytest.approx(probability * NUM_PAIRS / 2, abs=5 * NUM_PAIRS**0.5 / 4)
    # Texts with a tag and without one are not joined: a tag is of the whole line.
    _, found = read(noise, pairs, update=1)
    texts = texts_of(dataset, found)
    assert len(texts) < NUM_PAIRS
    before = texts_of(dataset, stored(pairs))
    for side in (0, 1):
        sentences = [
            sentence for pair in texts for sentence in pair[side].removeprefix(TAG).split(".")
        ]
        known = [
            sentence for pair in before for sentence in pair[side].removeprefix(TAG).split(".")
        ]
        assert Counter(map(str.strip, filter(str.strip, sentences))) == Counter(
            map(str.strip, filter(str.strip, known))
        )
    assert all(source.count(".") == target.count(".") <= 2 for source, target in texts)


def test_lines_are_sorted_by_length_and_have_at_most_the_longest(
    dataset: Dataset, pairs: Pairs
) -> None:
    longest = 60
    noise = Noise.of(recipe_with("join-lines=1", update_tokens=longest), dataset)
    lines = noise.lines(pairs, every(pairs), update=1)
    assert 0 < len(lines) < NUM_PAIRS
    _, found = read(noise, pairs, update=1)
    assert max(side.lengths.max() for side in found) <= longest
    assert (lines.second >= 0).any()


@pytest.mark.parametrize("seed", range(3))
def test_no_pair_grows_beyond_the_measured_growth(
    seed: int, dataset: Dataset, pairs: Pairs
) -> None:
    noise = Noise.of(recipe_with("typo=0.5,upper=0.5", seed=seed), dataset)
    _, found = read(noise, pairs, update=1)
    for new, old, growth in zip(found, stored(pairs), noise.growth, strict=True):
        assert (new.lengths <= np.maximum(old.lengths * growth, old.lengths)).all()
    endless = replace(noise, growth=(99.0, 99.0))
    _, grown = read(endless, pairs, update=1)
    assert grown[0].lengths.sum() >= found[0].lengths.sum()


def test_draws_repeat_and_differ_by_update_and_seed(dataset: Dataset, pairs: Pairs) -> None:
    noise = Noise.of(recipe_with(ALL), dataset)
    other = Noise.of(recipe_with(ALL, seed=2), dataset)
    first, again, second, seeded = (
        texts_of(dataset, read(one, pairs, update)[1])
        for one, update in ((noise, 1), (noise, 1), (noise, 2), (other, 1))
    )
    assert first == again
    assert first != second
    assert first != seeded


def test_modifiers_are_drawn_independently_with_their_probabilities(
    dataset: Dataset, pairs: Pairs
) -> None:
    probabilities = {"typo": 0.3, "title": 0.1, "upper": 0.5}
    text = ",".join(f"{name}={value}" for name, value in probabilities.items())
    noise = Noise.of(recipe_with(text), dataset)
    updates = 200
    draws = np.concatenate(
        [noise.lines(pairs, every(pairs), update).draws != 0 for update in range(updates)], axis=1
    )
    number = NUM_PAIRS * updates
    chances = np.array([noise.probabilities[name] for name in noise.probabilities])
    # Each of the 8 combinations; chi-square with 7 degrees of freedom, 0.001.
    found = np.bincount(draws.T @ (1 << np.arange(3)), minlength=8)
    expected = [
        number * np.prod(np.where([i >> bit & 1 for bit in range(3)], chances, 1 - chances))
        for i in range(8)
    ]
    assert ((found - expected) ** 2 / expected).sum() < 24.3
    assert noise.share == pytest.approx(1 - 0.7 * 0.9 * 0.5)


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
@pytest.mark.parametrize("num_micro_batches", [1, 6])
def test_ranks_and_micro_batches_share_the_lines_of_an_update(
    num_ranks: int, num_micro_batches: int, dataset: Dataset
) -> None:
    recipe = recipe_with(ALL, update_tokens=600)

    def texts(ranks: int, parts: int) -> list[Texts]:
        begin = (Position(0, 0, 0), 1, parts)
        readers = [UpdateReader.of(recipe, dataset, rank, ranks) for rank in range(ranks)]
        streams = zip(*(reader.updates(*begin) for reader in readers), strict=True)
        return [
            sorted(
                text
                for _, _, own in ranks_of_update
                for part in own
                if part.weight
                for text in texts_of(dataset, part.pairs)
            )
            for ranks_of_update in islice(streams, 5)
        ]

    assert texts(num_ranks, num_micro_batches) == texts(1, 1)


def test_an_update_without_its_predecessors_has_the_same_noise(dataset: Dataset) -> None:
    reader = UpdateReader.of(recipe_with(ALL, update_tokens=600), dataset, 0, 1)
    first, *_, last = islice(reader.updates(Position(0, 0, 0), 1, 2), 4)
    position = [*islice(reader.updates(Position(0, 0, 0), 1, 2), 3)][-1][0]
    resumed = next(reader.updates(position, 4, 2))
    assert [lists(part.pairs[0]) for part in resumed[2]] == [
        lists(part.pairs[0]) for part in last[2]
    ]
    assert first[2][0].pairs[0].ids.tolist() != last[2][0].pairs[0].ids.tolist()


@pytest.mark.parametrize(
    ("segmentation", "target", "noise", "keys"),
    [
        (
            "words",
            "same",
            "upper=0.1",
            "noise upper source; --segmentation bpe unigram training.noise",
        ),
        ("words", "same", "join-lines=0.1", "noise join-lines source target; --segmentation"),
        (
            "bpe",
            "words",
            "drop-final-punctuation=0.1",
            "noise drop-final-punctuation target; --segmentation",
        ),
        (
            "bpe",
            "same",
            "drop-final-punctuation=0.1",
            "noise drop-final-punctuation; training.noise",
        ),
    ],
)
def test_noise_that_does_not_fit_the_dataset_is_refused(
    segmentation: str, target: str, noise: str, keys: str, tmp_path: Path
) -> None:
    sizes = {"vocab_size": 276} if segmentation == "bpe" else {}
    vocabulary = VocabularyConfig(
        segmentation=segmentation,
        target_segmentation=target,
        **sizes,  # type: ignore[arg-type]
    )
    recipe = replace(tiny_recipe(*tiny_corpus(tmp_path)), vocabulary=vocabulary)
    prepared(recipe, tmp_path / "data")
    with refuses(ConfigError, keys):
        Noise.of(recipe_with(noise), Dataset.open(tmp_path / "data"))


@pytest.mark.parametrize("name", ["join-lines", "drop-final-punctuation"])
def test_brackets_are_not_changed(name: str, dataset: Dataset) -> None:
    trees = TreeTokens(Words(["(S", ")S"]))
    codec = replace(dataset.codec, target=trees, is_shared=False)
    with refuses(ConfigError, f"noise {name}"):
        Noise.of(recipe_with(f"{name}=0.1"), replace(dataset, codec=codec))
    assert Noise.of(recipe_with("upper=0.1"), replace(dataset, codec=codec)).is_active
