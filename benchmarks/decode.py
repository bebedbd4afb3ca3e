r"""Decoding speed of nmtkit and its peers: sentences per second and peak memory.

    python -m benchmarks.decode --shape small --save MODEL && nmtkit export MODEL ctranslate2 FOLDER
    python -m benchmarks.decode --corpus CORPUS --peers marian loop fairseq --ctranslate2 FOLDER \
        --peer-python PYTHON

CORPUS is a folder of `python -m benchmarks.peers.corpus`. Weights are random, and equal in nmtkit
and CTranslate2. Batches of sentences sorted by length are decoded, then single sentences. Every
hypothesis has 30 tokens and the end symbol, which is impossible before. PYTHON is an interpreter
with the requirements of nmtkit and of the peers, which compute on the CPU.
"""

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.common import (
    OWN_NAME,
    SHAPES,
    Contender,
    add_peer_options,
    compare,
    module,
    peer,
    print_measurement,
    read_words,
)
from nmtkit.config.schema import SearchConfig, TrainRecipe
from nmtkit.config.toml import build
from nmtkit.decoding.search import beam_search
from nmtkit.model.state import DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.runtime.devices import set_up
from nmtkit.runtime.processor import keep_freed_memory
from nmtkit.storage.model_folder import write_model
from nmtkit.symbols import EOS_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec

UNIT = "sent/s"
NUM_WORDS = {"small": 8000, "base": 32_000}
FIRST_WORD_ID = EOS_ID + 1
PRECISIONS = ("float32", "bfloat16", "int8")
PEER_PRECISIONS = {"loop": PRECISIONS[:2], "ctranslate2": PRECISIONS[::2]}
"""Peers that compute not only in float32."""
SLOWER_ALONE = 10
"""Single sentences are this many times fewer."""


def main() -> None:
    """Compare with the peers, or with --one measure one contender."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_peer_options(parser)
    parser.add_argument("--corpus", type=Path, help="folder with test.src")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 1])
    parser.add_argument("--length", type=int, default=30, help="forced tokens")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of nmtkit")
    parser.add_argument("--beam", type=int, default=4, help="beam size")
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    parser.add_argument("--precisions", choices=PRECISIONS, nargs="+", default=list(PRECISIONS))
    parser.add_argument("--ctranslate2", type=Path, help="exported model of that peer")
    parser.add_argument("--save", type=Path, help="only write the model with random weights")
    parser.add_argument("--one", action="store_true", help="measure nmtkit only, once")
    options = parser.parse_args()
    if options.save:
        save_model(options, options.save)
    elif options.one:
        decode_once(options)
    else:
        for batch_size in options.batch_sizes:
            compare(contenders(options, batch_size), options, UNIT)


def contenders(options: argparse.Namespace, batch_size: int) -> list[Contender]:
    """List nmtkit and the peers, each in its precisions."""
    num_sentences = options.sentences if batch_size > 1 else options.sentences // SLOWER_ALONE
    common = ["--shape", options.shape, "--corpus", options.corpus, "--beam", options.beam]
    common += ["--sentences", num_sentences, "--length", options.length]
    common += ["--threads", options.threads, "--precision"]
    found = []
    for precision in options.precisions:
        own = ["--one", "--batch-sizes", batch_size, "--device", options.device]
        command = module("benchmarks.decode", [*own, *common, precision])
        found.append(Contender(f"{OWN_NAME} {precision}", command))
    theirs = ["decode", "--batch-size", batch_size]
    if options.ctranslate2:
        theirs += ["--model", options.ctranslate2]
    for name in [*options.peers, *(["ctranslate2"] if options.ctranslate2 else [])]:
        for precision in PEER_PRECISIONS.get(name, PRECISIONS[:1]):
            one = peer(name, [*theirs, *common, precision], options)
            found.append(Contender(f"{one.name} {precision}", one.command))
    return found


@torch.inference_mode()
def decode_once(options: argparse.Namespace) -> None:
    """Translate all sentences, the first batch twice, and print the rate."""
    model = make_model(options)
    model.prepare(getattr(torch, options.precision))
    keep_freed_memory()
    batches = read_batches(options)
    decode(model, batches[0], options.length, options.beam)
    start = time.perf_counter()
    for batch in batches:
        decode(model, batch, options.length, options.beam)
    rate = sum(map(len, batches)) / (time.perf_counter() - start)
    print_measurement(f"decode {options.shape}", rate, UNIT)


def save_model(options: argparse.Namespace, folder: Path) -> None:
    """Write the measured model, for the exporters."""
    words = Words([f"w{number:05d}" for number in range(NUM_WORDS[options.shape])])
    codec = TextCodec("en", "de", words, words, is_shared=True)
    tensors = make_model(options).state_dict()
    recipe = build(TrainRecipe, SHAPES[options.shape], {})
    write_model(folder, tensors, recipe, codec, {}, overwrite=False)


def make_model(options: argparse.Namespace) -> Transformer:
    """Set up the process and return a model with random weights."""
    machine = {"device": options.device, "threads": options.threads}
    recipe = build(TrainRecipe, SHAPES[options.shape], machine)
    device = set_up(recipe.runtime)
    torch.manual_seed(recipe.seed.seed)
    size = NUM_WORDS[options.shape] + FIRST_WORD_ID
    return Transformer(recipe.model, size, size, is_shared=True).to(device).eval()


def read_batches(options: argparse.Namespace) -> list[list[list[int]]]:
    """Read the sentences as ids, the longest first."""
    words = read_words(options.corpus / "test.src", options.sentences)
    sentences = [[FIRST_WORD_ID + word for word in line] + [EOS_ID] for line in words]
    sentences.sort(key=len, reverse=True)
    (size,) = options.batch_sizes
    return [sentences[first : first + size] for first in range(0, len(sentences), size)]


def decode(model: Transformer, batch: list[list[int]], length: int, beam: int) -> None:
    """Search for hypotheses of `length` tokens and the end symbol."""
    num_steps = 0

    def step(tokens: Tensor, state: DecoderState) -> Tensor:
        nonlocal num_steps
        logits = model.step(tokens, state)
        if num_steps < length:
            logits[:, :, EOS_ID] = float("-inf")
        num_steps += 1
        return logits

    device = model.output_weight.device
    memory = model.encode(pack_sequences(batch, device))
    max_lengths = torch.full((len(batch),), length + 1, device=device)
    found = beam_search(step, model.start(memory), max_lengths, SearchConfig(beam=beam))
    lengths = {len(hypothesis.ids) for hypotheses in found for hypothesis in hypotheses}
    assert lengths == {length + 1}, f"hypotheses of {lengths} tokens"


if __name__ == "__main__":
    main()
