"""Ranks do not exchange frozen weights, and a run with them continues with any ranks."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from tests.launching import parameters
from tests.ranks import DONE, RankEnd, recipe_of, train_on
from tests.training import assert_same_tensors, last_model, with_updates

PARTS = ("encoder", "source-embeddings")
EVERYTHING = ("embeddings", "encoder", "decoder", "output")


def freezing(*parts: str, ema_decay: float = 0.0) -> TrainRecipe:
    recipe = recipe_of(dropout=0.1, micro_batches=6, max_updates=4)
    model = replace(recipe.model, tie_embeddings=False)
    return replace(
        recipe, model=model, training=replace(recipe.training, freeze=parts, ema_decay=ema_decay)
    )


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_frozen_weights_are_the_same_on_any_number_of_ranks_also_resumed(
    ema_decay: float, data: Path, tmp_path: Path
) -> None:
    recipe = freezing(*PARTS, ema_decay=ema_decay)
    for size in (1, 3):
        for run, ends in (("whole", (4,)), ("resumed", (2, 4))):
            for updates in ends:
                done = train_on(
                    size, with_updates(recipe, updates), data, tmp_path / f"{run}-{size}"
                )
                assert done == [DONE] * size
        whole, resumed = (tmp_path / f"{run}-{size}" for run in ("whole", "resumed"))
        assert torch.equal(parameters(resumed), parameters(whole))
        alone = tmp_path / "whole-1"
        torch.testing.assert_close(parameters(whole), parameters(alone), rtol=0, atol=1e-9)
        first = tmp_path / f"first-{size}"
        assert train_on(size, with_updates(recipe, 1), data, first) == [DONE] * size
        frozen = [name for name in last_model(first) if name.startswith(("encoder", "source_"))]
        assert_same_tensors(*({n: last_model(run)[n] for n in frozen} for run in (first, whole)))
        assert frozen


def test_a_model_frozen_whole_is_refused_once(data: Path, tmp_path: Path) -> None:
    first, second = train_on(2, freezing(*EVERYTHING), data, tmp_path)
    assert first == RankEnd(
        2,
        "freeze (embeddings, encoder, decoder, output) leaves no parameter to train; leave out a "
        "part [training.freeze]",
    )
    assert second == RankEnd(2, "")
