"""The work of a peer: the same updates and searches for each, and the line that is printed.

A peer is a model with a loss and a search; data, batches, Adam and clocks are here. Batches are
those of fairseq: sorted by length, at most 4096 padded tokens of the longer side.
"""

import argparse
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common import read_words

PAD, BOS, EOS, FIRST_WORD_ID = 0, 1, 2, 4
BATCH_TOKENS, NUM_PAIRS = 4096, 200_000
LEARNING_RATE, BETAS, CLIP_NORM = 5e-4, (0.9, 0.98), 1.0
DROPOUT, SMOOTHING, NUM_POSITIONS = 0.1, 0.1, 256
MULTIPLE = 8
"""Sentences of a batch are a multiple of this."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a post-norm Transformer with shared embeddings."""

    model_size: int
    feed_forward: int
    heads: int
    layers: int
    vocabulary: int


SHAPES = {"small": Shape(256, 1024, 4, 3, 8008), "base": Shape(512, 2048, 8, 6, 32_008)}

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Loss per token of source, decoder input and output, padded (sentences, tokens)."""

Search = Callable[[list[list[int]]], object]
"""Translates sentences."""


def read_options() -> argparse.Namespace:
    """Read the command line of a peer."""
    parser = argparse.ArgumentParser(description="Train or decode, and print the speed.")
    parser.add_argument("mode", choices=("train", "decode"))
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=30, help="forced tokens")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--precision", choices=("float32", "bfloat16", "int8"), default="float32")
    parser.add_argument("--model", type=Path, help="exported model, for CTranslate2")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    return options


def run(
    name: str,
    options: argparse.Namespace,
    model: nn.Module,
    loss: Loss,
    search: Callable[[Tensor], object],
) -> None:
    """Train or decode with torch, and print the speed and the peak memory."""
    if options.mode == "train":
        rate, unit = train(options, model, loss), "tgt tok/s"
    else:
        model.eval()
        rate, unit = decode(options, lambda sentences: search(pad(sentences))), "sent/s"
    print_speed(name, options, rate, unit)


def print_speed(name: str, options: argparse.Namespace, rate: float, unit: str) -> None:
    """Print the line that the benchmark reads."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    peak = max(usage.ru_maxrss for usage in usages) / 1024
    print(f"{name} {options.mode} {options.shape}: {rate:.2f} {unit} peak RSS {peak:.0f} MiB")


def train(options: argparse.Namespace, model: nn.Module, loss: Loss) -> float:
    """Return the target tokens per second of updates, without those of the warm-up."""
    pairs = [read_ids(options.corpus / f"train.{side}", NUM_PAIRS) for side in ("src", "tgt")]
    adam = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=BETAS, fused=True)
    model.train()
    num_tokens, start = 0, 0.0
    num_updates = options.warm_up + options.updates
    for number, batch in enumerate(islice(batches(*pairs), num_updates)):
        if number == options.warm_up:
            num_tokens, start = 0, time.perf_counter()
        source, target = ([side[index] for index in batch] for side in pairs)
        output = pad([[*ids, EOS] for ids in target])
        loss(
            pad([[*ids, EOS] for ids in source]), pad([[EOS, *ids] for ids in target]), output
        ).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        adam.step()
        adam.zero_grad()
        num_tokens += int((output != PAD).sum())
    return num_tokens / (time.perf_counter() - start)


@torch.inference_mode()
def decode(options: argparse.Namespace, search: Search) -> float:
    """Return the sentences per second of a search, the first batch being decoded once more."""
    sentences = read_ids(options.corpus / "test.src", options.sentences)
    sentences.sort(key=len, reverse=True)
    size = options.batch_size
    blocks = [
        [[*ids, EOS] for ids in sentences[first : first + size]]
        for first in range(0, len(sentences), size)
    ]
    search(blocks[0])
    start = time.perf_counter()
    for block in blocks:
        search(block)
    return len(sentences) / (time.perf_counter() - start)


def read_ids(path: Path, count: int) -> list[list[int]]:
    """Read the ids of the first lines of a corpus of words."""
    return [[word + FIRST_WORD_ID for word in line] for line in read_words(path, count)]


def batches(source: Sequence[list[int]], target: Sequence[list[int]]) -> Iterator[list[int]]:
    """Yield the sentences of each batch, the batches in random order."""
    lengths = np.array([[len(ids) + 1 for ids in side] for side in (source, target)])
    found: list[list[int]] = []
    batch: list[int] = []
    for index in np.lexsort((lengths[1], lengths[0])).tolist():
        longest = int(lengths[:, [*batch, index]].max())
        if batch and longest * (len(batch) + 1) > BATCH_TOKENS:
            full = max(MULTIPLE * (len(batch) // MULTIPLE), len(batch) % MULTIPLE)
            found.append(batch[:full])
            batch = batch[full:]
        batch.append(index)
    found.append(batch)
    for number in np.random.default_rng(1).permutation(len(found)):
        yield found[number]


def pad(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Return sentences as a block (sentences, tokens)."""
    block = torch.full((len(sentences), max(map(len, sentences))), PAD)
    for row, ids in zip(block, sentences, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    return block
