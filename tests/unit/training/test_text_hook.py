"""Noise and subword sampling: draws follow from seed, update and pair, and a pair comes once."""

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from nmtkit.config.preprocessing import CorpusConfig, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe, TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.binary import Dataset, Indices, PairIds, Pairs, Sequences
from nmtkit.data.sampler import Position
from nmtkit.errors import ConfigError
from nmtkit.parsing.vocabulary import TreeTokens
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.noise import EditableText
from nmtkit.text.subword import Subword
from nmtkit.text.vocabulary import Steps
from nmtkit.training.text_hook import TrainingText
from nmtkit.training.updates import Start, UpdateReader
from tests.made_up import made_up_pairs
from tests.messages import refuses
from tests.tiny import prepared, tiny_codec, tiny_recipe, write_lines
from tests.unit.data.test_prepare import write_pairs

NUM_PAIRS = 300
TAG = "<bt>"
ALL = "join-lines=0.3,drop-final-punctuation=0.3,typo=0.3,title=0.2,upper=0.2"
SAMPLED = {"subword_sampling": "both", "subword_alpha": 0.5}

SCRIPTS = {  # two sentences of a language, and how it joins them
    "zh": ("\u4f60\u597d\u3002", "\u518d\u89c1\u3002", ""),
    "ja": ("\u3053\u3093\u306b\u3061\u306f\u3002", "\u306f\u3044\u3002", ""),
    "th": ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0e25\u0e32\u0e01\u0e48\u0e2d\u0e19", " "),
    "hi": (
        "\u0928\u092e\u0938\u094d\u0924\u0947\u0964",
        "\u0905\u0932\u0935\u093f\u0926\u093e",
        " ",
    ),
    "ar": ("\u0645\u0631\u062d\u0628\u0627.", "\u0648\u062f\u0627\u0639\u0627\u061f", " "),
}

Texts = list[tuple[str, str]]
Ids = list[tuple[list[int], list[int]]]
"""Ids of source and target of each pair."""


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


def recipe_with(**settings: object) -> TrainRecipe:
    return build(TrainRecipe, settings)  # type: ignore[arg-type]


def text_of(dataset: Dataset, **settings: object) -> TrainingText:
    return TrainingText.of(recipe_with(**settings), dataset)


def split_ids(side: Sequences) -> list[list[int]]:
    """Return the ids of each line."""
    ends = np.cumsum(side.lengths, dtype=np.int64)
    return [ids.tolist() for ids in np.split(side.ids, ends[:-1])]


def lists(pairs: PairIds) -> Ids:
    return [*zip(split_ids(pairs.source), split_ids(pairs.target), strict=True)]


def texts_of(dataset: Dataset, ids: Ids) -> Texts:
    codec = dataset.codec
    return [(codec.source.decode(source), codec.target.decode(target)) for source, target in ids]


def every(pairs: Pairs) -> Indices:
    return np.lexsort((pairs.source.lengths(), pairs.target.lengths()))


def stored(pairs: Pairs) -> Ids:
    return lists(pairs.take(every(pairs)))


def read(text: TrainingText, pairs: Pairs, update: int = 1, indices: Indices | None = None) -> Ids:
    """Read an update with some pairs; by default, with all."""
    lines = text.draw(pairs, every(pairs) if indices is None else indices, update)
    return lists(text.read(pairs, lines, update))


def test_without_noise_and_sampling_ids_are_those_of_the_dataset(
    dataset: Dataset, pairs: Pairs
) -> None:
    text = text_of(dataset)
    assert not text.is_active
    found = text.read(pairs, text.draw(pairs, every(pairs), update=1), update=1)
    whole = pairs.take(every(pairs))
    for new, old in ((found.source, whole.source), (found.target, whole.target)):
        assert new.ids.tobytes() == old.ids.tobytes()
        assert new.lengths.tobytes() == old.lengths.tobytes()


def test_pairs_that_are_not_drawn_keep_their_ids(dataset: Dataset, pairs: Pairs) -> None:
    text = text_of(dataset, noise="upper=0.1")
    assert text.is_active
    lines = text.draw(pairs, every(pairs), update=1)
    (drawn,) = lines.draws != 0
    assert 0 < drawn.sum() < NUM_PAIRS / 4
    found = text.read(pairs, lines, update=1)
    assert found.source.ids.dtype == pairs.source.ids.dtype
    for new, old, is_drawn in zip(lists(found), stored(pairs), drawn, strict=True):
        assert (new[0] != old[0]) == is_drawn
        assert new[1] == old[1]


def test_upper_changes_the_source_alone_and_keeps_its_tag(dataset: Dataset, pairs: Pairs) -> None:
    found = texts_of(dataset, read(text_of(dataset, noise="upper=1"), pairs))
    before = texts_of(dataset, stored(pairs))
    tags = [f"{TAG} " * source.startswith(TAG) for source, _ in before]
    assert sum(map(bool, tags)) == NUM_PAIRS / 2
    assert found == [
        (tag + source.removeprefix(tag).upper(), target)
        for tag, (source, target) in zip(tags, before, strict=True)
    ]


def test_noise_has_the_language_of_each_pair(tmp_path: Path) -> None:
    for lang, word in (("tr", "ki"), ("en", "hi")):
        for side in (lang, "de"):
            write_lines(tmp_path / f"{lang}.{side}", [f"{word}."] * 20)
    texts = tuple(f"{tmp_path / lang}:{lang}-de" for lang in ("tr", "en"))
    vocabulary = VocabularyConfig(segmentation="bpe", vocab_size=270)
    corpus = CorpusConfig(train=texts, valid=texts)
    prepared(PreprocessRecipe(corpus=corpus, vocabulary=vocabulary), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    text = text_of(dataset, noise="join-lines=1,upper=1")
    found = {source for source, _ in texts_of(dataset, read(text, dataset.train[0]))}
    # Pairs of different languages are not joined.
    assert {one for one in found if one.count(".") == 2} == {
        "<2de> K\u0130. K\u0130.",
        "<2de> HI. HI.",
    }
    assert found.isdisjoint(["<2de> KI.", "<2de> H\u0130."])


def test_final_marks_are_dropped_on_both_sides(dataset: Dataset, pairs: Pairs) -> None:
    found = read(text_of(dataset, noise="drop-final-punctuation=1"), pairs)
    assert texts_of(dataset, found) == [
        (source.removesuffix("."), target.removesuffix("."))
        for source, target in texts_of(dataset, stored(pairs))
    ]


@pytest.mark.parametrize("probability", [0.3, 1.0])
def test_each_pair_comes_once_also_if_it_is_joined(
    probability: float, dataset: Dataset, pairs: Pairs
) -> None:
    text = text_of(dataset, noise=f"join-lines={probability}")
    lines = text.draw(pairs, every(pairs), update=1)
    joined = lines.second[lines.second >= 0].tolist()
    assert sorted([*lines.first.tolist(), *joined]) == list(range(NUM_PAIRS))
    assert len(joined) == pytest.approx(probability * NUM_PAIRS / 2, abs=5 * NUM_PAIRS**0.5 / 4)
    texts, before = texts_of(dataset, read(text, pairs)), texts_of(dataset, stored(pairs))
    # Texts with a tag and without one are not joined: a tag is of the whole line.
    assert len(lines) < len(texts) < NUM_PAIRS
    for side in (0, 1):
        found, known = (
            Counter(
                sentence.strip()
                for pair in some
                for sentence in pair[side].removeprefix(TAG).split(".")
                if sentence
            )
            for some in (texts, before)
        )
        assert found == known
    assert all(source.count(".") == target.count(".") <= 2 for source, target in texts)


def test_joined_text_is_the_text_of_both_in_any_script(tmp_path: Path) -> None:
    lines = [line for *both, _ in SCRIPTS.values() for line in both]
    train = write_pairs(tmp_path, "train", [(line, line) for line in lines])
    vocabulary = VocabularyConfig(segmentation="bpe", vocab_size=310)
    prepared(replace(tiny_recipe(train, train), vocabulary=vocabulary), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    text = text_of(dataset, noise="join-lines=1")
    for first, second, between in SCRIPTS.values():
        two = np.array([lines.index(first), lines.index(second)])
        ((source, target),) = texts_of(dataset, read(text, dataset.train[0], 1, two))
        assert source == target
        assert source in (f"{first}{between}{second}", f"{second}{between}{first}")
    # None of these scripts has capitals.
    capitals = text_of(dataset, noise="title=1,upper=1")
    assert read(capitals, dataset.train[0]) == stored(dataset.train[0])


def test_joined_lines_are_sorted_by_length_and_have_at_most_the_longest(
    dataset: Dataset, pairs: Pairs
) -> None:
    longest = 60
    text = text_of(dataset, noise="join-lines=1", update_tokens=longest)
    lines = text.draw(pairs, every(pairs), update=1)
    assert (lines.second >= 0).any()
    lengths = [
        np.where(lines.second < 0, first, first + side.lengths()[lines.second] - 1)
        for side in (pairs.source, pairs.target)
        for first in [side.lengths()[lines.first].astype(int)]
    ]
    assert (np.diff(lengths[1]) >= 0).all()
    assert np.max(lengths) <= longest
    assert max(len(ids) for pair in read(text, pairs) for ids in pair) <= longest


@pytest.mark.parametrize("settings", [{"noise": "upper=1"}, SAMPLED])
def test_a_side_that_becomes_too_long_keeps_its_ids(
    settings: dict[str, object], dataset: Dataset, pairs: Pairs
) -> None:
    longest = max(len(ids) for pair in stored(pairs) for ids in pair)
    free = text_of(dataset, **settings)
    bounded = text_of(dataset, **settings, update_tokens=longest)
    num_clean = 0
    for new, now, old in zip(read(free, pairs), read(bounded, pairs), stored(pairs), strict=True):
        for side in (0, 1):
            is_clean = len(new[side]) > longest
            assert now[side] == (old if is_clean else new)[side]
            num_clean += is_clean
    assert num_clean


def test_joined_lines_that_noise_makes_too_long_stay_joined(dataset: Dataset, pairs: Pairs) -> None:
    two = every(pairs)[[*np.flatnonzero(every(pairs) < NUM_PAIRS / 2)[:2]]]  # without tags
    text = text_of(dataset, noise="join-lines=1,upper=1")
    ((joined, _),) = read(text_of(dataset, noise="join-lines=1"), pairs, 1, two)
    ((longer, _),) = read(text, pairs, 1, two)
    assert len(longer) > len(joined)
    assert read(replace(text, longest=len(longer)), pairs, 1, two)[0][0] == longer
    assert read(replace(text, longest=len(longer) - 1), pairs, 1, two)[0][0] == joined


def test_a_pair_that_no_text_spells_is_not_joined(
    dataset: Dataset, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = every(pairs)[:2]
    old = lists(pairs.take(two))
    decode = EditableText.decode
    for pair in old:
        monkeypatch.setattr(
            EditableText,
            "decode",
            lambda self, ids, kept=pair[1]: None if ids == kept else decode(self, ids),
        )
        text = text_of(dataset, noise="join-lines=1,upper=1")
        assert sorted(read(text, pairs, 1, two)) == sorted(old)


def test_draws_repeat_and_differ_by_update_and_seed(dataset: Dataset, pairs: Pairs) -> None:
    text, other = text_of(dataset, noise=ALL), text_of(dataset, noise=ALL, seed=2)
    one, again, two, seeded = (
        read(of, pairs, update) for of, update in ((text, 1), (text, 1), (text, 2), (other, 1))
    )
    assert one == again
    assert one != two
    assert one != seeded
    typos, joined = text_of(dataset, noise="typo=1"), text_of(dataset, noise="join-lines=1")
    assert read(typos, pairs, update=1) != read(typos, pairs, update=2)
    first, second = (joined.draw(pairs, every(pairs), n).second.tolist() for n in (1, 2))
    assert first != second


def test_modifiers_are_drawn_independently_with_their_probabilities(
    dataset: Dataset, pairs: Pairs
) -> None:
    text = text_of(dataset, noise="upper=0.5,typo=0.3,title=0.1")
    updates = 200
    draws = np.concatenate(
        [text.draw(pairs, every(pairs), update).draws != 0 for update in range(updates)], axis=1
    )
    chances = np.array([0.3, 0.1, 0.5])  # in the order in which they are applied
    # Each of the 8 combinations; chi-square with 7 degrees of freedom, 0.001.
    found = np.bincount(draws.T @ (1 << np.arange(3)), minlength=8)
    expected = [
        NUM_PAIRS
        * updates
        * np.prod(np.where([i >> bit & 1 for bit in range(3)], chances, 1 - chances))
        for i in range(8)
    ]
    assert ((found - expected) ** 2 / expected).sum() < 24.3


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("num_ranks", [1, 2, 3])
@pytest.mark.parametrize("num_micro_batches", [1, 6])
def test_ranks_and_micro_batches_share_the_lines_of_an_update(
    num_ranks: int, num_micro_batches: int, dataset: Dataset
) -> None:
    recipe = recipe_with(noise=ALL, update_tokens=600, **SAMPLED)

    def updates(ranks: int, parts: int) -> list[Ids]:
        begin = Start(Position(0, 0, 0), 1, parts)
        readers = [UpdateReader.of(recipe, dataset, rank, ranks) for rank in range(ranks)]
        streams = zip(*(reader.updates(begin) for reader in readers), strict=True)
        return [
            sorted(
                pair
                for loaded in ranks_of_update
                for part in loaded.micro_batches.values()
                for pair in lists(part)
            )
            for ranks_of_update in islice(streams, 5)
        ]

    assert updates(num_ranks, num_micro_batches) == updates(1, 1)


def test_an_update_without_its_predecessors_is_the_same(dataset: Dataset) -> None:
    reader = UpdateReader.of(recipe_with(noise=ALL, update_tokens=600, **SAMPLED), dataset, 0, 1)
    planned = [*islice(reader.updates(Start(Position(0, 0, 0), 1, 2)), 4)]
    resumed = next(reader.updates(planned[2].following))
    ids = [
        [lists(part) for part in loaded.micro_batches.values()] for loaded in (*planned, resumed)
    ]
    assert ids[4] == ids[3]
    assert ids[0] != ids[3]


@pytest.mark.parametrize(
    ("sides", "changes"),
    [("source", (True, False)), ("target", (False, True)), ("both", (True, True))],
)
def test_the_chosen_sides_are_sampled_and_decode_to_the_same_text(
    sides: str, changes: tuple[bool, bool], dataset: Dataset, pairs: Pairs
) -> None:
    text = text_of(dataset, **SAMPLED | {"subword_sampling": sides})
    assert text.is_active
    drawn = read(text, pairs)
    for side, is_sampled in enumerate(changes):
        new, old = ([pair[side] for pair in ids] for ids in (drawn, stored(pairs)))
        assert (new != old) == is_sampled
        assert all(ids.index(EOS_ID) == len(ids) - 1 for ids in new)
    assert texts_of(dataset, drawn) == texts_of(dataset, stored(pairs))


def test_updates_pairs_sides_and_seeds_draw_independently(dataset: Dataset, pairs: Pairs) -> None:
    """If two of them were the same, all draws would be equal."""
    text = text_of(dataset, **SAMPLED)
    first = read(text, pairs)
    assert first != read(text, pairs, update=2)
    assert first != read(text_of(dataset, **SAMPLED, seed=2), pairs)
    twins = replace(pairs, target=pairs.source)
    assert all(source != target for source, target in read(text, twins))


def test_noised_text_is_sampled(dataset: Dataset, pairs: Pairs) -> None:
    noised = read(text_of(dataset, noise=ALL), pairs)
    both = read(text_of(dataset, noise=ALL, **SAMPLED), pairs)
    assert texts_of(dataset, both) == texts_of(dataset, noised)
    assert all(new != old for new, old in zip(both, noised, strict=True))
    # A pair that noise did not change is sampled as without noise, also if it could not be joined.
    alone = text_of(dataset, noise="join-lines=1")
    unchanged = {*map(str, read(alone, pairs))} & {*map(str, stored(pairs))}
    sampled = read(text_of(dataset, noise="join-lines=1", **SAMPLED), pairs)
    known = {*map(str, read(text_of(dataset, **SAMPLED), pairs))}
    assert sum(str(pair) in known for pair in sampled) == len(unchanged) > 0


@pytest.mark.parametrize(
    ("settings", "longest"),
    [
        ({}, 25_000),
        ({"update_tokens": 700}, 700),
        ({"positions": "learned", "max_positions": 60}, 60),
    ],
)
def test_the_longest_line_is_that_of_an_update_or_the_learned_positions(
    settings: dict[str, object], longest: int, dataset: Dataset
) -> None:
    assert text_of(dataset, **settings).longest == longest


def with_closed(dataset: Dataset, *sides: str) -> Dataset:
    """Return a dataset of which some sides have a closed list of words."""
    source, target = (
        tiny_codec().source if side in sides else dataset.codec.source
        for side in ("source", "target")
    )
    codec = TextCodec("en", "de", source, target, is_shared=source is target)
    return replace(dataset, codec=codec)


@pytest.mark.parametrize(
    ("sides", "noise", "keys"),
    [
        ("source target", "upper", "source; --segmentation bpe unigram training.noise"),
        ("source target", "join-lines", "source target; --segmentation"),
        ("target", "drop-final-punctuation", "target; --segmentation"),
    ],
)
def test_noise_that_does_not_fit_the_dataset_is_refused(
    sides: str, noise: str, keys: str, dataset: Dataset
) -> None:
    with refuses(ConfigError, f"noise {noise} {keys}"):
        text_of(with_closed(dataset, *sides.split()), noise=f"{noise}=0.1")


@pytest.mark.parametrize("name", ["join-lines", "drop-final-punctuation"])
def test_brackets_are_not_changed(name: str, dataset: Dataset, pairs: Pairs) -> None:
    trees = TreeTokens(["(S", ")S"])
    parsing = replace(dataset, codec=replace(dataset.codec, target=trees, is_shared=False))
    with refuses(ConfigError, f"noise {name}"):
        text_of(parsing, noise=f"{name}=0.1")
    found = read(text_of(parsing, noise="upper=1"), pairs)
    assert found == read(text_of(dataset, noise="upper=1"), pairs)


@pytest.mark.parametrize(
    ("chosen", "side"), [("source", "source"), ("target", "target"), ("both", "source")]
)
def test_a_vocabulary_with_one_segmentation_is_not_sampled(
    chosen: str, side: str, dataset: Dataset
) -> None:
    closed = with_closed(dataset, "source", "target")
    with refuses(ConfigError, f"subword_sampling {chosen} {side}; --segmentation"):
        text_of(closed, subword_sampling=chosen)
    assert not text_of(closed).is_active


@pytest.mark.parametrize(("closed", "other"), [("source", "target"), ("target", "source")])
def test_the_message_names_the_side_that_can_be_sampled(
    closed: str, other: str, dataset: Dataset
) -> None:
    with refuses(ConfigError, f"{closed}; --subword-sampling {other} --segmentation"):
        text_of(with_closed(dataset, closed), subword_sampling="both")


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_prepared_text_is_sampled_by_its_vocabulary(
    is_cleaned: bool, dataset: Dataset, pairs: Pairs
) -> None:
    assert isinstance(dataset.codec.target, Subword)
    steps = Steps(is_cleaned, moses_lang="en")
    codec = replace(dataset.codec, target=dataset.codec.target.with_steps(steps))
    found = read(text_of(replace(dataset, codec=codec), **SAMPLED), pairs)
    assert found == read(text_of(dataset, **SAMPLED), pairs)
