"""A dataset that changes while training reads it through a memory map."""

import faulthandler
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.data.prepare import SIZES, Sizes, prepare
from nmtkit.errors import DamagedError
from nmtkit.progress.counting import SILENT
from nmtkit.training.run import train
from tests.faults.harness import start, wait
from tests.faults.moments import in_update
from tests.faults.results import Result, result_of
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, tiny_corpus, tiny_dataset, tiny_recipe, tiny_train_recipe

RECIPE = tiny_train_recipe(max_updates=5, dropout=0.1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tiny_dataset(tmp_path)


@pytest.fixture
def expected(data: Path, tmp_path: Path) -> Result:
    train(RECIPE, data, tmp_path / "undisturbed")
    return result_of(tmp_path / "undisturbed")


def test_truncating_a_dataset_in_use_kills_training_and_nothing_else(
    data: Path, tmp_path: Path, expected: Result
) -> None:
    """The kernel ends whoever reads beyond the end of a mapped file; nobody can tell it then."""
    ids, run, log = data / "train.00000.source.ids", tmp_path / "run", tmp_path / "log"
    whole = ids.read_bytes()

    def train_on_what_is_cut() -> None:
        faulthandler.disable()  # pytest's, which would tell of the signal
        with in_update(4, lambda: os.truncate(ids, 0)):
            train(RECIPE, data, run)

    assert wait(start(train_on_what_is_cut, log)) == -signal.SIGBUS, log.read_text()
    with refuses(DamagedError, "train.00000.source.ids 0"):
        train(RECIPE, data, run)
    ids.write_bytes(whole)
    train(RECIPE, data, run)
    assert result_of(run) == expected


def overwritten(data: Path, sizes: Sizes = SIZES) -> Callable[[], None]:
    """Return what puts another dataset, of reversed lines, in the place of one."""
    corpus = data.with_name("other")
    corpus.mkdir()
    recipe = tiny_recipe(*tiny_corpus(corpus, [line[::-1] for line in TRAIN_LINES]))

    def overwrite() -> None:
        prepare(recipe, data, 1, overwrite=True, reporter=SILENT, sizes=sizes)

    return overwrite


def test_training_reads_a_shard_to_its_end_while_another_dataset_takes_its_place(
    data: Path, tmp_path: Path, expected: Result
) -> None:
    with in_update(4, overwritten(data)):
        train(RECIPE, data, tmp_path / "run")
    assert result_of(tmp_path / "run") == expected


def test_training_reads_no_shard_of_a_dataset_that_replaced_its_own(
    tmp_path: Path,
) -> None:
    sizes = Sizes(shard=4)
    data = tiny_dataset(tmp_path, sizes=sizes)
    with (
        in_update(2, overwritten(data, sizes)),
        refuses(DamagedError, data, recorded=False),
    ):
        train(RECIPE, data, tmp_path / "run")
