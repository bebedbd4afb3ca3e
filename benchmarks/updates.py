"""The updates of `nmtkit train` as benchmarks do them, without what training does between them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from nmtkit.training.reading import Reader
from nmtkit.training.slots import Cut
from nmtkit.training.updating import Sums, Updater

from benchmarks.common import module
from nmtkit.config.fields import Values
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Update
from nmtkit.runtime import set_up
from nmtkit.training.compiling import choose_execution
from nmtkit.training.distributed import Ranks
from nmtkit.training.optimizer import learning_rate
from nmtkit.training.run import make_learner, make_objective
from nmtkit.training.stopping import StopRequest

WHOLE = Cut(num_slots=1, num_pieces=1)
LARGE_VOCABULARY = 100_000
"""Of a corpus that is segmented already, all words are taken."""


class Workbench:
    """A model in training, that does one update after another.

    Attributes:
        recipe: its settings.
        dataset: what it is trained on.
        device: where.
        updater: does the updates.
    """

    def __init__(self, settings: Values, dataset: Path, cut: Cut, ranks: Ranks) -> None:
        """Make a new model.

        Args:
            settings: of the recipe, a preset's with others over them.
            dataset: made by `nmtkit preprocess`.
            cut: how each update is divided.
            ranks: all processes that share the work.
        """
        self.recipe = build(TrainRecipe, settings)
        self.device = set_up(self.recipe.runtime)
        self.dataset = Dataset.open(dataset)
        target_size = self.dataset.codec.target.size
        report = partial(print, file=sys.stderr)
        execution = choose_execution(self.recipe, target_size, self.device, report)
        learner = make_learner(self.recipe, self.dataset, self.device, execution)
        objective = make_objective(self.recipe, learner.model, execution).train()
        self.updater = Updater(objective, learner, self.recipe, ranks, StopRequest())
        self._reader = Reader.of(self.recipe, self.dataset, ranks, self.device)
        self._cut = cut
        self._position, self._number = Position(0, 0, 0), 0

    @contextmanager
    def again(self) -> Iterator[None]:
        """Have the updates within come once more after it; what was learnt is kept."""
        place = self._position, self._number
        yield
        self._position, self._number = place

    def run(self) -> tuple[Update, Sums]:
        """Do the next update; returns it with its sums."""
        self._number += 1
        reading = self._reader.read(self._position, self._number, self._cut)
        self._position = reading.position
        sums = self.updater.compute(reading, lambda: 0.0)
        assert sums is not None, "nobody asks a benchmark to stop"
        model_size = self.recipe.model.model_size
        rate = learning_rate(self._number, model_size, self.recipe.training)
        self.updater.apply(self._number, rate)
        return reading.update, sums

    def close(self) -> None:
        """Stop reading ahead."""
        self._reader.close()


def settings_of(shape: str, tokens: int, others: Values) -> Values:
    """Return the settings of a preset, with updates of so many tokens a side in one piece."""
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
