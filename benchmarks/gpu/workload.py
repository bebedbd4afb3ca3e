"""The workloads of the parts: updates, models and sentence pairs."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.common import SHAPES
from benchmarks.updates import Workbench, settings_of
from nmtkit.config.preprocessing import CorpusConfig, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe, RuntimeConfig, TrainRecipe, Values
from nmtkit.config.toml import build
from nmtkit.data.batch import make_batch
from nmtkit.data.binary import PairIds, Sequences
from nmtkit.data.prepare import prepare
from nmtkit.data.sampler import Update
from nmtkit.errors import ConfigError
from nmtkit.model.kernels import unpadded
from nmtkit.model.transformer import Transformer
from nmtkit.progress.counting import SILENT
from nmtkit.runtime.devices import background_thread, make_deterministic, set_up
from nmtkit.symbols import EOS_ID
from nmtkit.training.distributed import Ranks
from nmtkit.training.updates import LoadedUpdate, Start, UpdateLoader, UpdateStream

VOCABULARY = 37_000
SIDES = ("src", "tgt")
FIRST_WORD_ID = EOS_ID + 1
LENGTH, SPREAD = 30, 1.5
"""Tokens of a sentence where no other length is asked for, and the deviation from any length."""


def open_device(name: str) -> torch.device:
    """Return the device of a part; exit with a message if there is none."""
    try:
        device = set_up(RuntimeConfig(device=name))
    except ConfigError as error:
        sys.exit(f"benchmarks.gpu: {error}")
    if device.type == "cuda":
        # torch reads the cuBLAS setting for equal bits only once, at the first product.
        make_deterministic()
        torch.use_deterministic_algorithms(mode=False)
    return device


def add_update_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the parts that compute updates: shape, tokens and vocabulary."""
    parser.add_argument("--shape", choices=SHAPES, default="base")
    parser.add_argument("--tokens", type=int, default=25_000, help="per side of an update")
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY, help="entries")


def draw_pairs(length: int, tokens: int, vocabulary: int, seed: int = 1) -> list[list[list[int]]]:
    """Draw the ids of sentence pairs, about `tokens` per side in total.

    Args:
        length: approximate length of the sentences.
        tokens: tokens per side.
        vocabulary: size of the vocabulary of the words.
        seed: seed of the random numbers.
    """
    random = np.random.default_rng(seed)
    shape = (2, max(1, tokens // length))
    sizes = random.normal(length, SPREAD, shape).round().clip(2).astype(int).tolist()
    return [
        [[*random.integers(FIRST_WORD_ID, vocabulary, size - 1).tolist(), EOS_ID] for size in side]
        for side in sizes
    ]


def words_dataset(folder: Path, vocabulary: int, tokens: int) -> Path:
    """Return a dataset of random words; create it on first use.

    Args:
        folder: folder of the datasets.
        vocabulary: entries per side, special symbols included.
        tokens: least number of tokens per side; every word occurs.
    """
    corpus, out = folder / f"corpus-{vocabulary}", folder / f"dataset-{vocabulary}"
    if out.exists():
        return out
    num_words = vocabulary - FIRST_WORD_ID
    words = [f"w{number % num_words:05d}" for number in range(max(tokens, num_words))]
    lines = [words[first : first + LENGTH] for first in range(0, len(words), LENGTH)]
    text = "".join(f"{' '.join(line)}\n" for line in lines)
    corpus.mkdir()
    for side in SIDES:
        (corpus / f"text.{side}").write_text(text, encoding="ascii")
    prefix = str(corpus / "text")
    recipe = PreprocessRecipe(
        corpus=CorpusConfig(
            source_lang=SIDES[0], target_lang=SIDES[1], train=(prefix,), valid=(prefix,)
        ),
        vocabulary=VocabularyConfig(segmentation="words", vocab_size=vocabulary),
    )
    prepare(recipe, out, workers=1, overwrite=False, reporter=SILENT)
    return out


@contextmanager
def training(shape: str, tokens: int, settings: Values, dataset: Path) -> Iterator[Workbench]:
    """Begin a run of training.

    Args:
        shape: one of `SHAPES`.
        tokens: tokens per side of an update.
        settings: settings of the recipe that override the preset's.
        dataset: a dataset of `words_dataset`.
    """
    if settings.get("deterministic"):
        make_deterministic()
    values = settings_of(shape, tokens, settings)
    try:
        with Workbench.opened(values, dataset, Ranks()) as bench:
            yield bench
    finally:
        torch.use_deterministic_algorithms(mode=False)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def repeat(bench: Workbench, pairs: Sequence[Sequence[Sequence[int]]]) -> None:
    """Make every update of a run compute the same pairs, loaded as from a dataset."""
    source, target = (Sequences.pack(side, "uint32") for side in pairs)
    numbers = np.arange(len(source.lengths))
    update = Update(0, numbers, int(source.lengths.sum()), int(target.lengths.sum()))

    def stream(start: Start) -> UpdateStream:
        for number in count(start.number + 1):
            following = replace(start, number=number)
            yield LoadedUpdate(update, following, {0: PairIds(source, target)})

    device = bench.context.device
    bench.trainer.loader.close()
    background = background_thread("loader") if device.type == "cuda" else None
    to_batch = partial(make_batch, device=device)
    bench.trainer.loader = UpdateLoader(stream, to_batch, background)


@contextmanager
def padded_up_to(length: int) -> Iterator[None]:
    """Make attention pad batches of sequences of up to a length, and use flash attention above."""
    before = unpadded.MAX_PADDED_LENGTH
    unpadded.MAX_PADDED_LENGTH = length
    try:
        yield
    finally:
        unpadded.MAX_PADDED_LENGTH = before


def make_model(shape: str, vocabulary: int, precision: str, device: torch.device) -> Transformer:
    """Return a model with random weights, prepared for decoding.

    Args:
        shape: one of `SHAPES`.
        vocabulary: entries, shared by both sides.
        precision: precision of matrix products.
        device: the device of the model.
    """
    torch.manual_seed(1)
    config = build(TrainRecipe, SHAPES[shape]).model
    model = Transformer(config, vocabulary, vocabulary, is_shared=True).to(device)
    model.prepare(getattr(torch, precision))
    return model


def weights(bench: Workbench) -> list[nn.Parameter]:
    """Return the trained weights of a run."""
    return list(bench.trainer.train_state.model.parameters())


def num_micro_batches(bench: Workbench) -> int:
    """Return the number of micro-batches of the next update."""
    return bench.trainer.schedule.at(bench.trainer.train_state.progress.update + 1)
