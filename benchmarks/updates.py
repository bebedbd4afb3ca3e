"""The updates of `nmtkit train` as benchmarks run them, without logging, saving or validation."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.common import module
from nmtkit.config.fields import Values
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.progress.records import TrainingRecord
from nmtkit.training.distributed import Ranks
from nmtkit.training.run import temporary_run
from nmtkit.training.trainer import Trainer

LARGE_VOCABULARY = 100_000
"""Entries of the vocabulary of a segmented corpus, so that it holds all words."""


class Workbench:
    """Runs updates of a trainer.

    Attributes:
        trainer: of a new run.
        context: of that run: recipe, dataset and device.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.context = trainer.context

    @staticmethod
    @contextmanager
    def opened(settings: Values, data_dir: Path, ranks: Ranks) -> Iterator["Workbench"]:
        """Begin a run in a temporary folder.

        Args:
            settings: of the recipe.
            data_dir: a dataset made by `nmtkit preprocess`.
            ranks: all processes of the run.
        """
        report = partial(print, file=sys.stderr)
        recipe = build(TrainRecipe, settings)
        with temporary_run(recipe, data_dir, ranks, report, time.monotonic) as trainer:
            yield Workbench(trainer)

    @contextmanager
    def repeated_after(self) -> Iterator[None]:
        """Have the updates of the block run once more after it; the weights are kept."""
        state = self.trainer.train_state
        before = replace(state.progress)
        yield
        state.progress = before

    def run(self, num_updates: int) -> None:
        """Run the next updates."""
        self.trainer.meter.clear(self.trainer.train_state.progress)
        for _ in range(num_updates):
            self.trainer.update()

    def record(self) -> TrainingRecord:
        """Return the sums of the last call of `run`."""
        return self.trainer.meter.record(self.trainer.train_state.progress, learning_rate=0.0)


def settings_of(shape: str, tokens: int, others: Values) -> Values:
    """Return the settings of a preset, with updates of one micro-batch of a number of tokens."""
    own = {"update_tokens": tokens, "max_tokens": tokens, "clip_norm": 1.0}
    return {**PRESETS[shape], **own, **others}


def make_dataset(corpus: Path | None, out: Path) -> None:
    """Convert a corpus as a user would.

    Args:
        corpus: folder with train.src, train.tgt, valid.src and valid.tgt, segmented already; None
            for the demonstration's.
        out: the dataset.
    """
    if corpus is None:
        corpus = out.parent / "corpus"
        subprocess.run(module("examples.demo.corpus", [corpus]), check=True)
        languages = ["-s", "en", "-t", "de", "--vocab-size", 4000]
    else:
        languages = ["-s", "src", "-t", "tgt", "--segmentation", "words"]
        languages += ["--vocab-size", LARGE_VOCABULARY]
    files = ["--train", corpus / "train", "--valid", corpus / "valid", "--out", out]
    subprocess.run(module("nmtkit_cli", ["preprocess", *languages, *files]), check=True)
