"""The updates of `nmtkit train` as benchmarks run them, without logging, saving or validation."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.common import SHAPES, module
from nmtkit.config.schema import TrainRecipe, Values
from nmtkit.config.toml import build
from nmtkit.progress.records import TrainingRecord
from nmtkit.progress.reporter import ProgressReporter
from nmtkit.runtime.devices import choose_precision, set_up
from nmtkit.runtime.processor import keep_freed_memory
from nmtkit.signals import StopRequest
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.distributed import Ranks
from nmtkit.training.run import make_train_state, make_trainer, open_dataset
from nmtkit.training.state import Progress, RunContext
from nmtkit.training.trainer import Trainer
from nmtkit.training.validation import ValidationHistory

LARGE_VOCABULARY = 100_000
"""Entries of the vocabulary of a segmented corpus, so that it holds all words."""


class Workbench:
    """Runs updates of a trainer.

    Attributes:
        trainer: the trainer of a new run.
        context: recipe, dataset and device of that run.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.context = trainer.context

    @staticmethod
    @contextmanager
    def opened(settings: Values, data_dir: Path, ranks: Ranks) -> Iterator["Workbench"]:
        """Begin a run in a temporary folder.

        Args:
            settings: settings of the recipe.
            data_dir: a dataset of `nmtkit preprocess`.
            ranks: all processes of the run.
        """
        recipe = build(TrainRecipe, settings)
        keep_freed_memory()
        device = set_up(recipe.runtime)
        dataset = open_dataset(recipe, data_dir)
        with tempfile.TemporaryDirectory() as folder:
            context = RunContext(
                recipe=recipe,
                dataset=dataset,
                folder=RunFolder(Path(folder)),
                device=device,
                low_precision=choose_precision(
                    recipe.engine.precision, device, recipe.model.model_size
                ),
                ranks=ranks,
                stop=StopRequest(),  # not entered: a signal ends a benchmark immediately
                reporter=ProgressReporter(),
                logs=(),
                parents=(),
                clock=time.monotonic,
            )
            train_state = make_train_state(context, Progress())
            history = ValidationHistory(recipe.validation.best_metric, [])
            with closing(make_trainer(context, train_state, history)) as trainer:
                yield Workbench(trainer)

    def run(self, num_updates: int) -> None:
        """Run the next updates."""
        self.trainer.meter.clear()
        for _ in range(num_updates):
            self.trainer.update()

    def record(self) -> TrainingRecord:
        """Return the sums of the last call of `run`."""
        self.trainer.read_results()
        return self.trainer.meter.record(self.trainer.train_state.progress, learning_rate=0.0)


def settings_of(shape: str, tokens: int, others: Values) -> Values:
    """Return the settings of a shape, with updates of one micro-batch of a number of tokens."""
    own = {"update_tokens": tokens, "max_tokens": tokens, "clip_norm": 1.0}
    return {**SHAPES[shape], **own, **others}


def make_dataset(corpus: Path | None, out: Path) -> None:
    """Preprocess a corpus by the command.

    Args:
        corpus: folder with segmented train.src, train.tgt, valid.src and valid.tgt; None = the
            demo's corpus.
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
