"""How the parts of a run are connected."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmtkit.data.binary import Dataset
from nmtkit.training import run
from nmtkit.training.memory_search import WorstCases
from nmtkit.training.subword_sampling import SubwordSampling
from tests.tiny import tiny_subword_dataset, tiny_train_recipe
from tests.training import run_context, trainer_of

UPDATE_TOKENS = 60


class _SeenError(Exception):
    """Ends a run when the memory search begins."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_subword_dataset(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize(
    ("update_tokens", "max_tokens"), [(14, 7), (14, 1000), (1_000_000, 30), (1_000_000, 1_000_000)]
)
def test_a_small_text_has_the_micro_batches_of_its_own_size(
    update_tokens: int, max_tokens: int, data: Path, tmp_path: Path
) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    sizes = replace(recipe.training, update_tokens=update_tokens, max_tokens=max_tokens)
    dataset = Dataset.open(data)
    trainer = trainer_of(run_context(replace(recipe, training=sizes), dataset, tmp_path))
    (pairs,) = dataset.train
    tokens = max(int(side.lengths().sum()) for side in (pairs.source, pairs.target))
    expected = math.ceil(min(tokens, update_tokens) / max_tokens)
    assert trainer.micro_batches.at(1) == expected


@pytest.mark.parametrize("sides", ["source", "target", "both"])
def test_the_memory_search_uses_the_lengths_of_sampled_texts(
    sides: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    training = replace(
        recipe.training,
        update_tokens=UPDATE_TOKENS,
        max_tokens=0,
        subword_sampling=sides,
        subword_alpha=0.5,
    )
    recipe = replace(recipe, training=training)
    tried: list[WorstCases] = []

    def see(_objective: object, worst_cases: WorstCases, *_: object) -> None:
        tried.append(worst_cases)
        raise _SeenError

    monkeypatch.setattr(run, "find_num_micro_batches", see)
    dataset = Dataset.open(data)
    with pytest.raises(_SeenError):
        trainer_of(run_context(recipe, dataset, tmp_path))

    (pairs,) = dataset.train
    sampling, everything = SubwordSampling.of(recipe, dataset.codec), np.arange(len(pairs))
    drawn = np.array(
        [
            [len(side.ids) for side in sampling.read(pairs, everything, update)]
            for update in range(20)
        ]
    )
    stored = WorstCases.of(dataset.train, UPDATE_TOKENS)
    for name, side, of_update in (("source", pairs.source, 0), ("target", pairs.target, 1)):
        before, after = (one.updates[of_update][:, of_update] for one in (stored, tried[0]))
        growth = drawn[:, of_update] / side.lengths().sum()
        expected = before.sum() * growth.mean()
        if sides in (name, "both"):
            # One sample is estimated from another; lengths are whole.
            tolerance = 4 * before.sum() * growth.std() + len(before)
            assert after.sum() == pytest.approx(expected, abs=tolerance)
            assert after.sum() > 1.2 * before.sum()
        else:
            assert (after == before).all()
