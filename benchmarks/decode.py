r"""Decoding speed of nmtkit and its peers: sentences per second and peak memory.

    python -m benchmarks.decode --shape small --save MODEL && nmtkit export MODEL ctranslate2 FOLDER
    python -m benchmarks.decode --corpus CORPUS --peers marian loop --peer-python PYTHON \
        --ctranslate2 FOLDER
    python -m benchmarks.decode --corpus CORPUS --shape small --peer-python PYTHON \
        --ctranslate2 FOLDER --precisions float32 --threads 1 --beam 1 --batch-sizes 1 8 32 128

CORPUS is a folder with test.src, segmented into words w00000, w00001, ... Weights are random, and
equal in nmtkit and CTranslate2. Batches of sentences sorted by length are decoded, then single
sentences, with beam 4 by default. Every hypothesis has 30 tokens and the end symbol, which is
impossible before. nmtkit runs in float32, bfloat16 and int8, the bare PyTorch loop in float32 and
bfloat16, CTranslate2 in float32 and int8, the others in float32. PYTHON is an interpreter with the
requirements of nmtkit and of the peers, which compute on the CPU.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from benchmarks.common import (
    OWN_NAME,
    Contender,
    add_peer_options,
    compare,
    module,
    peer,
    print_measurement,
    read_words,
)
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import SearchConfig, TrainRecipe
from nmtkit.config.toml import build
from nmtkit.decoding.search import beam_search
from nmtkit.model.state import DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.runtime.devices import set_up
from nmtkit.storage.model_folder import write_model
from nmtkit.symbols import EOS_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec

UNIT = "sent/s"
NUM_WORDS = {"small": 8000, "base": 32_000}
FIRST_WORD_ID = EOS_ID + 1
PRECISIONS = ("float32", "bfloat16", "int8")
COMPUTE_TYPES = ("float32", "int8")
"""Those of CTranslate2."""
SLOWER_ALONE = 10
"""Single sentences are this many times fewer."""

Sentence = TypeVar("Sentence")


def main() -> None:
    """Compare with the peers, or with --one measure one contender."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_peer_options(parser)
    parser.add_argument("--corpus", type=Path, help="folder with test.src")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 1])
    parser.add_argument("--length", type=int, default=30, help="forced tokens")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of nmtkit")
    parser.add_argument("--beam", type=int, default=4, help="beam; that of --peers is 4")
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    parser.add_argument("--precisions", choices=PRECISIONS, nargs="+", default=list(PRECISIONS))
    parser.add_argument("--ctranslate2", type=Path, help="exported model; default: left out")
    parser.add_argument("--save", type=Path, help="only write the model with random weights")
    parser.add_argument("--compute-type", choices=COMPUTE_TYPES, help="with --one: CTranslate2's")
    parser.add_argument("--one", action="store_true", help="measure nmtkit only, once")
    options = parser.parse_args()
    if options.save:
        save_model(options, options.save)
    elif options.one and options.compute_type:
        decode_by_ctranslate2(options)
    elif options.one:
        decode_once(options)
    else:
        for batch_size in options.batch_sizes:
            compare(contenders(options, batch_size), options, UNIT)


def contenders(options: argparse.Namespace, batch_size: int) -> list[Contender]:
    """List nmtkit in each precision and the available peers."""
    num_sentences = options.sentences if batch_size > 1 else options.sentences // SLOWER_ALONE
    theirs = ["decode", "--shape", options.shape, "--corpus", options.corpus]
    theirs += ["--sentences", num_sentences, "--batch-size", batch_size]
    theirs += ["--length", options.length, "--threads", options.threads]
    sizes = (num_sentences, batch_size, options.length)
    found = [own(options, precision, *sizes) for precision in options.precisions]
    if options.ctranslate2:
        found += [ctranslate2_of(options, kind, *sizes) for kind in COMPUTE_TYPES]
    found += [peer(name, theirs, options) for name in options.peers]
    if "loop" in options.peers:
        low = peer("loop", [*theirs, "--precision", "bfloat16"], options)
        found.append(Contender(f"{low.name} bfloat16", low.command))
    return found


def own(
    options: argparse.Namespace, precision: str, num_sentences: int, batch_size: int, length: int
) -> Contender:
    """Return one measurement of nmtkit as a contender."""
    arguments = ["--one", "--shape", options.shape, "--corpus", options.corpus, "--length", length]
    arguments += ["--sentences", num_sentences, "--batch-sizes", batch_size, "--beam", options.beam]
    arguments += ["--threads", options.threads, "--device", options.device]
    arguments += ["--precision", precision]
    name = OWN_NAME if precision == PRECISIONS[0] else f"{OWN_NAME} {precision}"
    return Contender(name, module("benchmarks.decode", arguments))


def ctranslate2_of(
    options: argparse.Namespace, compute_type: str, num_sentences: int, batch_size: int, length: int
) -> Contender:
    """Return one measurement of CTranslate2 as a contender; arguments as for `own`."""
    _, *rest = own(options, PRECISIONS[0], num_sentences, batch_size, length).command
    extra = ["--ctranslate2", str(options.ctranslate2), "--compute-type", compute_type]
    return Contender(f"CTranslate2 {compute_type}", [options.peer_python, *rest, *extra])


@torch.inference_mode()
def decode_once(options: argparse.Namespace) -> None:
    """Translate all sentences and print the rate."""
    model = make_model(options)
    model.prepare(getattr(torch, options.precision))
    print_rate(
        options,
        read_batches(options),
        lambda batch: decode(model, batch, options.length, options.beam),
    )


def decode_by_ctranslate2(options: argparse.Namespace) -> None:
    """Translate all sentences by CTranslate2 and print the rate."""
    import ctranslate2  # type: ignore[import-not-found,import-untyped,unused-ignore]

    translator = ctranslate2.Translator(
        str(options.ctranslate2),
        compute_type=options.compute_type,
        inter_threads=1,
        intra_threads=options.threads,
    )
    batches = [
        [[f"w{number - FIRST_WORD_ID:05d}" for number in ids[:-1]] + ["</s>"] for ids in batch]
        for batch in read_batches(options)
    ]
    search = {
        "beam_size": options.beam,
        "min_decoding_length": options.length,
        "max_decoding_length": options.length,
    }
    print_rate(options, batches, lambda batch: translator.translate_batch(batch, **search))


def print_rate(
    options: argparse.Namespace,
    batches: Sequence[list[Sentence]],
    translate: Callable[[list[Sentence]], object],
) -> None:
    """Translate batches, the first one twice, and print the sentences per second."""
    translate(batches[0])
    start = time.perf_counter()
    for batch in batches:
        translate(batch)
    seconds = time.perf_counter() - start
    print_measurement(f"decode {options.shape}", sum(map(len, batches)) / seconds, UNIT)


def save_model(options: argparse.Namespace, folder: Path) -> None:
    """Write the measured model, for the exporters."""
    words = Words([f"w{number:05d}" for number in range(NUM_WORDS[options.shape])])
    codec = TextCodec("en", "de", words, words, is_shared=True)
    tensors = make_model(options).state_dict()
    recipe = build(TrainRecipe, PRESETS[options.shape], {})
    write_model(folder, tensors, recipe, codec, {}, overwrite=False)


def make_model(options: argparse.Namespace) -> Transformer:
    """Set up the process and return a model with random weights."""
    machine = {"device": options.device, "threads": options.threads}
    recipe = build(TrainRecipe, PRESETS[options.shape], machine)
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
