"""What earlier versions wrote is still read, and a training run still computes the same.

The frozen examples are made by freeze.py. A refactoring leaves these tests as they are.
"""

import json
import shutil
from pathlib import Path

import pytest

from nmtkit.data.binary import Dataset
from nmtkit.durable import verify_files
from nmtkit.training.run import train
from tests.golden.freeze import FROZEN, NUM_UPDATES, losses, recipe, translations
from tests.tiny import TRAIN_LINES

EXPECTED = json.loads((FROZEN / "expected.json").read_text(encoding="utf-8"))


def test_a_frozen_dataset_is_read_to_the_last_token() -> None:
    dataset = Dataset.open(FROZEN / "dataset")
    verify_files(FROZEN / "dataset", dataset.manifest)
    (shard,) = dataset.train
    decoded = [dataset.codec.source.decode(shard.source[i].tolist()) for i in range(len(shard))]
    assert sorted(decoded) == sorted(TRAIN_LINES)


def test_a_frozen_model_translates_as_it_did() -> None:
    assert translations(FROZEN / "run") == EXPECTED["translations"]


def test_a_frozen_run_is_continued(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FROZEN / "run", run)
    train(recipe(NUM_UPDATES + 1), FROZEN / "dataset", run)
    assert len(losses(run)) == NUM_UPDATES + 1


def test_twenty_updates_have_the_losses_they_had(tmp_path: Path) -> None:
    train(recipe(20), FROZEN / "dataset", tmp_path / "run")
    # Another processor adds in another order: a change in the seventh digit, which grows with
    # every update.
    assert losses(tmp_path / "run") == pytest.approx(EXPECTED["losses"][:20], rel=1e-4)
