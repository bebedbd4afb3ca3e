"""Subword sampling of training pairs: a draw follows from seed, update, pair and side."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import Batch, gather, make_batch
from nmtkit.data.binary import Dataset, Pairs
from nmtkit.errors import ConfigError
from nmtkit.symbols import EOS_ID
from nmtkit.text.cleaned import Cleaning, cleaned
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from nmtkit.text.tokenized import Tokenized
from nmtkit.training.subword_sampling import SubwordSampling
from tests.messages import refuses
from tests.tiny import tiny_codec

CPU = torch.device("cpu")


@pytest.fixture
def pairs(subword_dataset: Dataset) -> Pairs:
    return subword_dataset.train[0]


def segmentation_of(subword_dataset: Dataset, sides: str, **settings: int) -> SubwordSampling:
    alpha = {} if sides == "none" else {"subword_alpha": 0.5}
    recipe = build(TrainRecipe, {"subword_sampling": sides, **alpha, **settings})
    return SubwordSampling.of(recipe, subword_dataset.codec)


def sides_of(batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
    sources = batch.source.values.split(batch.source.layout.lengths)
    targets = batch.target_out.split(batch.target_in.layout.lengths)
    return [one.tolist() for one in sources], [one.tolist() for one in targets]


def read(
    segmentation: SubwordSampling, pairs: Pairs, indices: list[int], update: int
) -> tuple[list[list[int]], list[list[int]]]:
    return sides_of(make_batch(*segmentation.read(pairs, np.array(indices), update), CPU))


@pytest.mark.parametrize(
    ("sides", "changes"),
    [
        ("none", (False, False)),
        ("source", (True, False)),
        ("target", (False, True)),
        ("both", (True, True)),
    ],
)
def test_the_chosen_sides_are_sampled_and_decode_to_the_same_text(
    sides: str, changes: tuple[bool, bool], subword_dataset: Dataset, pairs: Pairs
) -> None:
    indices = list(range(len(pairs)))
    stored = sides_of(gather(pairs, np.array(indices), CPU))
    drawn = read(segmentation_of(subword_dataset, sides), pairs, indices, update=1)
    vocabularies = (subword_dataset.codec.source, subword_dataset.codec.target)
    for changed, old, new, vocabulary in zip(changes, stored, drawn, vocabularies, strict=True):
        assert (old != new) == changed
        assert [vocabulary.decode(ids) for ids in new] == [vocabulary.decode(ids) for ids in old]
        assert all(ids.index(EOS_ID) == len(ids) - 1 for ids in new)


def test_a_sample_does_not_depend_on_the_other_pairs_of_its_micro_batch(
    subword_dataset: Dataset, pairs: Pairs
) -> None:
    segmentation = segmentation_of(subword_dataset, "both")
    together = read(segmentation, pairs, [3, 1, 4, 8], update=5)
    for place, pair in enumerate([3, 1, 4, 8]):
        source, target = read(segmentation, pairs, [pair], update=5)
        assert (source[0], target[0]) == (together[0][place], together[1][place])


def test_updates_pairs_sides_and_seeds_draw_independently(
    subword_dataset: Dataset, pairs: Pairs
) -> None:
    """If two of them were the same, all draws would be equal."""
    first = segmentation_of(subword_dataset, "both")
    other = segmentation_of(subword_dataset, "both", seed=2)
    indices = list(range(len(pairs)))
    drawn = [read(first, pairs, indices, update) for update in (1, 2)]
    assert drawn[0] != drawn[1]
    assert drawn[0] != read(other, pairs, indices, update=1)
    twins = replace(pairs, target=pairs.source)
    source, target = read(first, twins, indices, update=1)
    assert source != target


def test_a_sample_that_is_too_long_is_replaced_by_the_stored_ids(
    subword_dataset: Dataset, pairs: Pairs
) -> None:
    indices = list(range(len(pairs)))
    stored = sides_of(gather(pairs, np.array(indices), CPU))
    longest = max(len(ids) for side in stored for ids in side)
    free = segmentation_of(subword_dataset, "both")
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
def test_the_longest_sample_is_that_of_an_update_or_the_learned_positions(
    settings: dict[str, int], longest: int, subword_dataset: Dataset
) -> None:
    assert segmentation_of(subword_dataset, "both", **settings).longest == longest


@pytest.mark.parametrize(
    ("chosen", "side"), [("source", "source"), ("target", "target"), ("both", "source")]
)
def test_a_vocabulary_with_one_segmentation_is_refused(chosen: str, side: str) -> None:
    recipe = build(TrainRecipe, {"subword_sampling": chosen})
    with refuses(ConfigError, f"subword_sampling {chosen} {side}; --segmentation"):
        SubwordSampling.of(recipe, tiny_codec())
    assert SubwordSampling.of(TrainRecipe(), tiny_codec()).source is None


@pytest.mark.parametrize(("closed", "other"), [("source", "target"), ("target", "source")])
def test_the_message_names_the_side_that_can_be_sampled(
    closed: str, other: str, subword_dataset: Dataset
) -> None:
    words, cut = tiny_codec().source, subword_dataset.codec.target
    source, target = (words, cut) if closed == "source" else (cut, words)
    codec = TextCodec("en", "de", source, target, is_shared=False)
    recipe = build(TrainRecipe, {"subword_sampling": "both"})
    with refuses(ConfigError, f"{closed}; --subword-sampling {other} --segmentation"):
        SubwordSampling.of(recipe, codec)


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_prepared_text_is_sampled_by_its_vocabulary(
    subword_dataset: Dataset, pairs: Pairs, is_cleaned: bool
) -> None:
    recipe = build(TrainRecipe, {"subword_sampling": "target", "subword_alpha": 0.5})
    assert isinstance(subword_dataset.codec.target, Subword)
    target = Tokenized(subword_dataset.codec.target, "en")
    cleaning = Cleaning(unescape=is_cleaned, normalize="none")
    codec = replace(subword_dataset.codec, target=cleaned(target, cleaning))
    indices = list(range(len(pairs)))
    expected = read(SubwordSampling.of(recipe, subword_dataset.codec), pairs, indices, update=1)
    assert read(SubwordSampling.of(recipe, codec), pairs, indices, update=1) == expected


def test_growth_is_the_ratio_of_sampled_to_stored_tokens(
    subword_dataset: Dataset, pairs: Pairs
) -> None:
    assert segmentation_of(subword_dataset, "none").growth(pairs) == (1.0, 1.0)
    source, target = segmentation_of(subword_dataset, "target").growth(pairs)
    indices = list(range(len(pairs)))
    _, stored = sides_of(gather(pairs, np.array(indices), CPU))
    sizes = []
    for update in range(10):
        _, drawn = read(segmentation_of(subword_dataset, "target"), pairs, indices, update)
        sizes.append(sum(map(len, drawn)) / sum(map(len, stored)))
    assert source == 1.0
    assert abs(target - np.mean(sizes)) < 4 * np.std(sizes)
    assert target > 1.1
