r"""How fast nmtkit and its peers decode: sentences per second and peak memory.

    python -m benchmarks.decode --shape small --save MODEL && nmtkit export MODEL ctranslate2 FOLDER
    python -m benchmarks.decode --corpus CORPUS --shape small --peers PEERS --peer-python PYTHON \
        --ctranslate2 FOLDER
    python -m benchmarks.decode --corpus CORPUS --shape small --growth
    python -m benchmarks.decode --corpus CORPUS --shape small --beam 21 --batch-sizes 12 \
        --sentences 24 --lengths 50 100 200 300

CORPUS is a folder with test.src, segmented into words w00000 and on. Random weights, the same ones
in nmtkit and CTranslate2; beam 4 where no other is given, batches of sentences sorted by length,
then sentence by sentence; every hypothesis has 30 tokens and the end symbol, which is made
impossible before. nmtkit runs in float32 and in bfloat16, the bare PyTorch loop as well, the others
in float32. With --growth the question is another: what a step costs after how many tokens, and how
much of it is attention to them; with --lengths, what hypotheses of other lengths take in time and
memory, each in a process of its own.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from benchmarks.common import (
    OWN_NAME,
    Contender,
    add_peer_options,
    compare,
    measure,
    module,
    peer,
    print_json,
    print_measurement,
    print_table,
    read_words,
)
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import SearchConfig, TrainRecipe
from nmtkit.config.toml import build
from nmtkit.decoding.search import beam_search
from nmtkit.model.kernels.attend import attend_step
from nmtkit.model.state import DecoderState
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.runtime.devices import set_up
from nmtkit.storage.model_folder import write_model
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.words import Words

UNIT = "sent/s"
NUM_WORDS = {"small": 8000, "base": 32_000}
FIRST_WORD_ID = EOS_ID + 1
GROWTH_LENGTH = 210
GROWTH_POSITIONS = (10, 25, 50, 100, 150, 200)
PRECISIONS = ("float32", "bfloat16")
SLOWER_ALONE = 10
"""Where sentences are decoded one by one, this times fewer are."""
WINDOW = 10
"""Steps around a position whose median is taken."""

Step = Callable[[Tensor, DecoderState], Tensor]


@dataclass(frozen=True)
class StepTime:
    """What happened between two calls of the step function.

    Attributes:
        num_entries: stored entries of a sentence that the step's self-attention reads.
        seconds: from the call to the next one: the model and the search.
    """

    num_entries: int
    seconds: float


def main() -> None:
    """Compare, or with --one, --growth or --lengths measure nmtkit alone."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_peer_options(parser)
    parser.add_argument("--corpus", type=Path, help="folder with test.src")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 1])
    parser.add_argument("--length", type=int, default=30, help="forced tokens")
    parser.add_argument("--lengths", type=int, nargs="+", help="time and memory by forced tokens")
    parser.add_argument("--beam", type=int, default=4, help="nmtkit's; the peers have 4")
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    parser.add_argument("--ctranslate2", type=Path, help="the exported model; else it is left out")
    parser.add_argument("--save", type=Path, help="write the model with random weights, no more")
    parser.add_argument("--one", action="store_true", help="measure nmtkit alone, once")
    parser.add_argument("--growth", action="store_true", help="cost of a step by its position")
    options = parser.parse_args()
    if options.save:
        save_model(options)
    elif options.growth:
        show_growth(options)
    elif options.lengths:
        show_lengths(options)
    elif options.one:
        decode_once(options)
    else:
        for batch_size in options.batch_sizes:
            compare(contenders(options, batch_size), options, UNIT)


def contenders(options: argparse.Namespace, batch_size: int) -> list[Contender]:
    """List nmtkit in each precision and the peers that are at hand."""
    num_sentences = options.sentences if batch_size > 1 else options.sentences // SLOWER_ALONE
    amounts = ["--n", num_sentences, "--bs", batch_size, "--len", options.length]
    theirs = ["decode", "--shape", options.shape, "--data", options.corpus, *amounts]
    sizes = (num_sentences, batch_size, options.length)
    found = [own(options, precision, *sizes) for precision in PRECISIONS]
    if options.ctranslate2:
        source = options.corpus / "test.src"
        threads = ["--intra", options.threads]
        found += peer("ct2.py", [options.ctranslate2, source, *amounts, *threads], options)
    found += peer("hf.py", theirs, options)
    found += peer("floor.py", theirs, options)
    return found + peer("floor.py", [*theirs, "--fullbf16"], options, "floor bfloat16")


def own(
    options: argparse.Namespace, precision: str, num_sentences: int, batch_size: int, length: int
) -> Contender:
    """Return nmtkit alone, measured once, as a contender."""
    arguments = ["--one", "--shape", options.shape, "--corpus", options.corpus, "--length", length]
    arguments += ["--sentences", num_sentences, "--batch-sizes", batch_size, "--beam", options.beam]
    arguments += ["--threads", options.threads, "--precision", precision]
    name = OWN_NAME if precision == PRECISIONS[0] else f"{OWN_NAME} {precision}"
    return Contender(name, module("benchmarks.decode", arguments))


def show_lengths(options: argparse.Namespace) -> None:
    """Print what hypotheses of some lengths take, a process each."""
    (batch_size,) = options.batch_sizes
    measured = [
        measure(
            own(options, options.precision, options.sentences, batch_size, length),
            options.threads,
            UNIT,
        )
        for length in options.lengths
    ]
    rows = [
        (str(length), f"{one.rate:.3f}", f"{one.rate * length:.1f}", f"{one.peak_mib:.0f}")
        for length, one in zip(options.lengths, measured, strict=True)
    ]
    print_table([("tokens", UNIT, "tokens/s", "peak MiB"), *rows])
    named = zip(options.lengths, map(asdict, measured), strict=True)
    print_json({"shape": options.shape, "beam": options.beam, "lengths": dict(named)})


@torch.inference_mode()
def decode_once(options: argparse.Namespace) -> None:
    """Translate all sentences and print the rate."""
    model = make_model(options)
    model.prepare(getattr(torch, options.precision))
    batches = read_batches(options)
    decode(model, batches[0], options.length, options.beam)
    start = time.perf_counter()
    for batch in batches:
        decode(model, batch, options.length, options.beam)
    seconds = time.perf_counter() - start
    num_sentences = sum(map(len, batches))
    print_measurement(f"decode {options.shape}", num_sentences / seconds, UNIT)


def save_model(options: argparse.Namespace) -> None:
    """Write the model that is measured, for the exporters."""
    words = Words([f"w{number:05d}" for number in range(NUM_WORDS[options.shape])])
    codec = TextCodec("en", "de", words, words, is_shared=True)
    tensors = make_model(options).state_dict()
    recipe = build(TrainRecipe, PRESETS[options.shape], {})
    write_model(options.save, tensors, recipe, codec, {}, overwrite=False)


def make_model(options: argparse.Namespace) -> Transformer:
    """Set the process up and make a model with random weights."""
    machine = {"device": "cpu", "threads": options.threads}
    recipe = build(TrainRecipe, PRESETS[options.shape], machine)
    set_up(recipe.runtime)
    torch.manual_seed(recipe.seed.seed)
    size = NUM_WORDS[options.shape] + FIRST_WORD_ID
    return Transformer(recipe.model, size, size, is_shared=True).eval()


def read_batches(options: argparse.Namespace) -> list[list[list[int]]]:
    """Read the sentences as ids, the longest first."""
    words = read_words(options.corpus / "test.src", options.sentences)
    sentences = [[FIRST_WORD_ID + word for word in line] + [EOS_ID] for line in words]
    sentences.sort(key=len, reverse=True)
    (size,) = options.batch_sizes
    return [sentences[first : first + size] for first in range(0, len(sentences), size)]


def decode(model: Transformer, batch: list[list[int]], length: int, beam: int) -> list[StepTime]:
    """Search for hypotheses of `length` tokens and the end symbol; return the time of each step."""
    times: list[StepTime] = []
    called = 0.0

    def step(tokens: Tensor, state: DecoderState) -> Tensor:
        nonlocal called
        assert len(times) <= length, f"a search of more than {length + 1} steps"
        now = time.perf_counter()
        if called:
            times.append(StepTime(state.prefix_bias.shape[-1], now - called))
        called = now
        logits = model.step(tokens, state)
        if len(times) < length:
            logits[:, :, EOS_ID] = float("-inf")
        return logits

    device = model.output_weight.device
    memory = model.encode(pack_sequences(batch, device))
    max_lengths = torch.full((len(batch),), length + 1, device=device)
    found = beam_search(step, model.start(memory), max_lengths, SearchConfig(beam=beam))
    lengths = {len(hypothesis.ids) for hypotheses in found for hypothesis in hypotheses}
    assert lengths == {length + 1}, f"hypotheses of {lengths} tokens"
    return times


@torch.inference_mode()
def show_growth(options: argparse.Namespace) -> None:
    """Print what a step costs after how many tokens, with and without attention to them."""
    model = make_model(options)
    model.prepare(getattr(torch, options.precision))
    options.batch_sizes = options.batch_sizes[:1]
    batch = read_batches(options)[0]
    rounds = [decode(model, batch, GROWTH_LENGTH, options.beam) for _ in range(options.rounds)]
    rows = []
    for position in GROWTH_POSITIONS:
        window = slice(position - WINDOW // 2, position + WINDOW // 2)
        steps = [one for times in rounds for one in times[window]]
        num_entries = round(median(one.num_entries for one in steps))
        attention = attention_seconds(model, len(batch), num_entries, options)
        rows.append(GrowthRow(position, num_entries, median(s.seconds for s in steps), attention))
    header = ("tokens so far", "entries", "step ms", "attention ms", "the rest ms")
    cells = [
        (
            str(row.position),
            str(row.num_entries),
            f"{row.step_s * 1e3:.2f}",
            f"{row.attention_s * 1e3:.2f}",
            f"{(row.step_s - row.attention_s) * 1e3:.2f}",
        )
        for row in rows
    ]
    print_table([header, *cells])
    print_json({"shape": options.shape, "growth": [asdict(row) for row in rows]})


@dataclass(frozen=True)
class GrowthRow:
    """What a step costs at a position: all of it, and its self-attention alone."""

    position: int
    num_entries: int
    step_s: float
    attention_s: float


def attention_seconds(
    model: Transformer, num_sentences: int, num_entries: int, options: argparse.Namespace
) -> float:
    """Time the attention of all layers over `num_entries` entries, alone."""
    config = model.config
    num_matrices, size = num_sentences * config.heads, config.model_size // config.heads
    query = torch.randn(num_sentences, options.beam, config.model_size)
    keys = torch.randn(num_matrices, num_entries, size).mT
    values = torch.randn(num_matrices, num_entries, size)
    bias = torch.zeros(num_matrices, options.beam, num_entries)
    seconds = []
    for _ in range(WINDOW * options.rounds):
        start = time.perf_counter()
        for _ in range(config.decoder_layers):
            attend_step(query, keys, values, bias, config.heads)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


if __name__ == "__main__":
    main()
