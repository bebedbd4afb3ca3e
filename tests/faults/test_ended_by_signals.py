"""A command that a signal ends before any one of its changes leaves nothing unfinished.

Every later change, those of the cleanup too, is preceded by another signal.
"""

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from nmtkit.interop import marian
from nmtkit.interop.marian_reading import read
from nmtkit.interop.parity import NUM_POSITIONS, Pair, Peer, own_scores
from nmtkit.text.codec import TextCodec
from nmtkit_cli.command_line import run
from tests.conversions import shared_codec, write_marian, write_random_model
from tests.faults.harness import Fault, fault_points, run_in_child
from tests.faults.scenarios import everything_in
from tests.snapshots import tiny_run
from tests.thoroughness import sample
from tests.tiny import tiny_corpus, tiny_dataset

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
CORPUS = "-s en -t de --train train --valid valid --segmentation words --workers 1"
COMMANDS = {
    "preprocess": f"preprocess {CORPUS} --drop-duplicates --out deep/out",
    "average-checkpoints": "average-checkpoints run --last 2 --out deep/out",
    "shortlist": "shortlist data --out deep/out",
    "export": "export own marian deep/out",
    "import": "import marian marian deep/out",
}


@dataclass
class Signals(Fault):
    """A signal before a change, and before every later one."""

    def before_change(self) -> None:
        self.num_changes += 1
        if self.num_changes >= self.at:
            os.kill(os.getpid(), SIGNALS[self.num_changes % len(SIGNALS)])


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the commands read."""
    root = tmp_path_factory.mktemp("inputs")
    tiny_corpus(root)
    tiny_dataset(root)
    tiny_run(root / "run", 1, 2, 3)
    write_marian(write_random_model(root / "own", shared_codec(), {}), root / "marian")
    return root


@pytest.fixture(autouse=True)
def peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the library of export and import by our own reader."""

    def open_peer(folder: Path, _codec: TextCodec) -> Peer:
        def score(pairs: Sequence[Pair]) -> list[float]:
            return own_scores(read(folder).model, pairs)

        return Peer("library 1.2", NUM_POSITIONS, score)

    monkeypatch.setattr(marian, "open_peer", open_peer)


def act(root: Path, line: str) -> None:
    """Run a command line in a folder; SystemExit with its exit code, unless it is 0."""
    with chdir(root):
        code = run(line.split())
    if code:
        sys.exit(code)


@pytest.mark.sampled
@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS)
def test_it_leaves_nothing_unfinished(line: str, inputs: Path, tmp_path: Path) -> None:
    before, complete = tmp_path / "before", tmp_path / "complete"
    for folder in (before, complete):
        shutil.copytree(inputs, folder)
        (folder / "deep").mkdir()
    for point in sample(fault_points(partial(act, complete, line)), 14, line):
        root = tmp_path / str(point)
        shutil.copytree(before, root)
        outcome = run_in_child(partial(act, root, line), Signals("signal", point))
        expected = 128 + SIGNALS[point % len(SIGNALS)]
        assert outcome.exception == f"SystemExit: {expected}", point
        assert everything_in(root) in (everything_in(before), everything_in(complete)), point
        shutil.rmtree(root)
