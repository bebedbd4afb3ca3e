"""Training pairs that are cut anew: what is drawn follows from seed, update, pair and side."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import Batch, batch_of, gather
from nmtkit.data.binary import Dataset, Pairs
from nmtkit.errors import ConfigError
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from nmtkit.text.tokenised import Tokenised
from nmtkit.training.subword_sampling import SubwordSampling
from tests.tiny import tiny_codec, tiny_subword_dataset

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(tiny_subword_dataset(tmp_path_factory.mktemp("corpus")))


@pytest.fixture
def pairs(dataset: Dataset) -> Pairs:
    return dataset.train[0]


def segmentation_of(dataset: Dataset, sides: str, **settings: int) -> SubwordSampling:
    alpha = {} if sides == "none" else {"subword_alpha": 0.5}
    recipe = build(TrainRecipe, {"subword_sampling": sides, **alpha, **settings})
    return SubwordSampling.of(recipe, dataset.codec)


def sides_of(batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
    sources = batch.source.values.split(batch.source.layout.lengths)
    targets = batch.target_out.split(batch.target_in.layout.lengths)
    return [one.tolist() for one in sources], [one.tolist() for one in targets]


def read(
    segmentation: SubwordSampling, pairs: Pairs, indices: list[int], update: int
) -> tuple[list[list[int]], list[list[int]]]:
    return sides_of(batch_of(*segmentation.read(pairs, np.array(indices), update), CPU))


@pytest.mark.parametrize(
    ("sides", "changes"),
    [
        ("none", (False, False)),
        ("source", (True, False)),
        ("target", (False, True)),
        ("both", (True, True)),
    ],
)
def test_the_chosen_sides_are_cut_anew_and_spell_the_same(
    sides: str, changes: tuple[bool, bool], dataset: Dataset, pairs: Pairs
) -> None:
    indices = list(range(len(pairs)))
    stored = sides_of(gather(pairs, np.array(indices), CPU))
    drawn = read(segmentation_of(dataset, sides), pairs, indices, update=1)
    vocabularies = (dataset.codec.source, dataset.codec.target)
    for changed, old, new, vocabulary in zip(changes, stored, drawn, vocabularies, strict=True):
        assert (old != new) == changed
        assert [vocabulary.decode(ids) for ids in new] == [vocabulary.decode(ids) for ids in old]
        assert all(ids.index(EOS_ID) == len(ids) - 1 for ids in new)


def test_how_a_pair_is_cut_does_not_depend_on_the_others_of_its_slot(
    dataset: Dataset, pairs: Pairs
) -> None:
    segmentation = segmentation_of(dataset, "both")
    together = read(segmentation, pairs, [3, 1, 4, 8], update=5)
    for place, pair in enumerate([3, 1, 4, 8]):
        source, target = read(segmentation, pairs, [pair], update=5)
        assert (source[0], target[0]) == (together[0][place], together[1][place])


def test_other_updates_pairs_sides_and_seeds_draw_on_their_own(
    dataset: Dataset, pairs: Pairs
) -> None:
    """Were two of them one, what is drawn for them would be equal throughout."""
    first = segmentation_of(dataset, "both")
    other = segmentation_of(dataset, "both", seed=2)
    indices = list(range(len(pairs)))
    drawn = [read(first, pairs, indices, update) for update in (1, 2)]
    assert drawn[0] != drawn[1]
    assert drawn[0] != read(other, pairs, indices, update=1)
    twins = replace(pairs, target=pairs.source)
    source, target = read(first, twins, indices, update=1)
    assert source != target


def test_one_that_would_be_too_long_stays_as_it_is_stored(dataset: Dataset, pairs: Pairs) -> None:
    indices = list(range(len(pairs)))
    stored = sides_of(gather(pairs, np.array(indices), CPU))
    longest = max(len(ids) for side in stored for ids in side)
    free = segmentation_of(dataset, "both")
    bounded = replace(free, longest=longest)
    num_stored = 0
    for update in range(10):
        drawn, kept = (read(one, pairs, indices, update) for one in (free, bounded))
        for all_drawn, all_kept, all_stored in zip(drawn, kept, stored, strict=True):
            for new, now, old in zip(all_drawn, all_kept, all_stored, strict=True):
                assert now == (new if len(new) <= longest else old)
                num_stored += len(new) > longest
    assert num_stored


@pytest.mark.parametrize(
    ("settings", "longest"),
    [
        ({}, 25_000),
        ({"update_tokens": 700}, 700),
        ({"positions": "learned", "max_positions": 60}, 60),
    ],
)
def test_none_may_be_longer_than_an_update_or_the_learned_positions(
    settings: dict[str, int], longest: int, dataset: Dataset
) -> None:
    assert segmentation_of(dataset, "both", **settings).longest == longest


@pytest.mark.parametrize(
    ("chosen", "side"), [("source", "source"), ("target", "target"), ("both", "source")]
)
def test_a_closed_vocabulary_has_nothing_to_draw_from(chosen: str, side: str) -> None:
    recipe = build(TrainRecipe, {"subword_sampling": chosen})
    expected = (
        rf"subword_sampling \('{chosen}'\) has no effect: the {side} vocabulary has only one "
        r"segmentation of a text; leave it out, or preprocess with --segmentation bpe or unigram"
    )
    with pytest.raises(ConfigError, match=expected):
        SubwordSampling.of(recipe, tiny_codec())
    assert SubwordSampling.of(TrainRecipe(), tiny_codec()).source is None


@pytest.mark.parametrize(("closed", "other"), [("source", "target"), ("target", "source")])
def test_where_one_side_alone_can_be_cut_anew_the_message_names_it(
    closed: str, other: str, dataset: Dataset
) -> None:
    words, cut = tiny_codec().source, dataset.codec.target
    source, target = (words, cut) if closed == "source" else (cut, words)
    codec = TextCodec("en", "de", source, target, is_shared=False)
    recipe = build(TrainRecipe, {"subword_sampling": "both"})
    told = (
        rf"the {closed} vocabulary has only one segmentation of a text; take --subword-sampling "
        rf"{other}, or preprocess with "
    )
    with pytest.raises(ConfigError, match=told):
        SubwordSampling.of(recipe, codec)


def test_text_that_moses_has_tokenised_is_cut_anew_by_the_vocabulary_behind_it(
    dataset: Dataset, pairs: Pairs
) -> None:
    recipe = build(TrainRecipe, {"subword_sampling": "target", "subword_alpha": 0.5})
    assert isinstance(dataset.codec.target, Subword)
    codec = replace(dataset.codec, target=Tokenised(dataset.codec.target, "en"))
    indices = list(range(len(pairs)))
    expected = read(SubwordSampling.of(recipe, dataset.codec), pairs, indices, update=1)
    assert read(SubwordSampling.of(recipe, codec), pairs, indices, update=1) == expected


def test_growth_is_how_much_longer_texts_become(dataset: Dataset, pairs: Pairs) -> None:
    assert segmentation_of(dataset, "none").growth(pairs) == (1.0, 1.0)
    source, target = segmentation_of(dataset, "target").growth(pairs)
    indices = list(range(len(pairs)))
    _, stored = sides_of(gather(pairs, np.array(indices), CPU))
    sizes = []
    for update in range(10):
        _, drawn = read(segmentation_of(dataset, "target"), pairs, indices, update)
        sizes.append(sum(map(len, drawn)) / sum(map(len, stored)))
    assert source == 1.0
    assert abs(target - np.mean(sizes)) < 4 * np.std(sizes)
    assert target > 1.1
