"""A teacher and its students, in nmtkit and CTranslate2: size, sentences per second, BLEU, chrF.

    PYTHON -m benchmarks.students teacher/ student/ --shortlist student.shortlist/ \
      --source test.en --reference test.de

PYTHON is an interpreter with the requirements of nmtkit and, for its rows, with ctranslate2. Every
model translates by beam search and greedily, with and without the shortlist, if there is one.
CTranslate2 computes in float32 and in int8, from the same exported model. All ways of all models
are interleaved; the sentences per second are medians of the rounds, without loading.
"""

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import torch

from benchmarks.common import print_json, print_table
from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import RuntimeConfig, SearchConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.answers import Request
from nmtkit.decoding.loading import load_translator
from nmtkit.errors import ConfigError
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.interop.conversion import export
from nmtkit.interop.parity import import_extra
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import find_model
from nmtkit.text.lines import numbered_chunks, read_lines

BATCH = 64
CPU = torch.device("cpu")
HEADER = ("model", "parameters", "MB", "by", "search", "sentences/s", "BLEU", "chrF2")


Translate = Callable[[Sequence[str]], list[str]]


@dataclass
class Way:
    """A way to translate the text.

    Attributes:
        model: name of the model.
        parameters: number of its parameters.
        megabytes: its weights on disk.
        library, search: names of the way in the table.
        translate: translates the lines.
        seconds: the time of each round.
    """

    model: str
    parameters: int
    megabytes: float
    library: str
    search: str
    translate: Translate
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    """Measure all ways; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--shortlist", default="", help="shortlist of all models")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=0, help="0 = all")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sources = list(read_lines(options.source))[: options.lines]
    references = list(read_lines(options.reference))[: options.lines]
    with tempfile.TemporaryDirectory() as folder:
        exports = (Path(folder) / str(number) for number in itertools.count())
        ways = [way for path in options.models for way in ways_of(path, options, next(exports))]
        for way in ways:
            way.translate(sources[: len(sources) // 10])  # warms up
        for _ in range(options.rounds):
            for way in ways:
                start = time.perf_counter()
                way.translate(sources)
                way.seconds.append(time.perf_counter() - start)
        rows = [row_of(way, sources, references) for way in ways]
    print_table([HEADER, *rows])
    print_json({"lines": len(sources), "header": HEADER, "rows": rows})


def ways_of(path: Path, options: argparse.Namespace, exported: Path) -> Iterator[Way]:
    """Yield the ways to translate with a model; exports it into a new folder."""
    weights = find_model(path) / "model.safetensors"
    model = load_model(path, CPU).model
    size = sum(one.numel() for one in model.parameters())
    facts = path.name, size, weights.stat().st_size / 1e6
    beam = SearchConfig(beam=options.beam, length_penalty=options.length_penalty)
    greedy = SearchConfig(beam=1)
    for search, shortlist in itertools.product((beam, greedy), {"": 0, options.shortlist: 0}):
        name = name_of(search) + (", shortlist" if shortlist else "")
        yield Way(*facts, "nmtkit", name, own(path, search, shortlist, options.threads))
    try:
        export(path, "ctranslate2", exported, overwrite=False, report=print)
    except ConfigError as error:
        print(f"not measured: {error}")
        return
    for precision, search in itertools.product(("float32", "int8"), (beam, greedy)):
        peer = by_peer(path, exported, precision, search, options.threads)
        yield Way(*facts, f"CTranslate2 {precision}", name_of(search), peer)


def own(path: Path, search: SearchConfig, shortlist: str, threads: int) -> Translate:
    """Return a function that translates with nmtkit."""
    recipe = TranslateRecipe(
        search=search,
        translation=TranslationConfig(batch_size=BATCH, shortlist=shortlist),
        runtime=RuntimeConfig(device="cpu", threads=threads),
    )
    translator = load_translator([path], recipe, print)

    def translate(sources: Sequence[str]) -> list[str]:
        chunks = numbered_chunks(map(Request, sources), recipe.translation.chunk_lines)
        results = translator.answer_all(chunks)
        return [answer.translation.text for result in results for answer in result.answers]

    return translate


def by_peer(
    path: Path, exported: Path, precision: str, search: SearchConfig, threads: int
) -> Translate:
    """Return a function that translates with CTranslate2, which sorts and batches by itself."""
    codec = load_model(path, CPU).codec
    peer = import_extra("ctranslate2", "ctranslate2").Translator(
        str(exported), device="cpu", compute_type=precision, intra_threads=threads
    )
    source, target = codec.source, codec.target
    ids = {target.piece(index): index for index in range(target.size)}

    def translate(sources: Sequence[str]) -> list[str]:
        results = peer.translate_batch(
            [[source.piece(index) for index in source.encode(line)] for line in sources],
            beam_size=search.beam,
            length_penalty=search.length_penalty,
            max_batch_size=BATCH,
        )
        return [target.decode([ids[piece] for piece in one.hypotheses[0]]) for one in results]

    return translate


def name_of(search: SearchConfig) -> str:
    """Return the name of a search in the table."""
    return "greedy" if search.beam == 1 else f"beam {search.beam}"


def row_of(way: Way, sources: Sequence[str], references: Sequence[str]) -> tuple[str, ...]:
    """Return the row of a measured way."""
    metrics = make_metrics(MetricsConfig(metric="bleu,chrf"))
    scores = score_corpus(metrics, way.translate(sources), [references])
    return (
        way.model,
        f"{way.parameters:,}",
        f"{way.megabytes:.1f}",
        way.library,
        way.search,
        f"{len(sources) / median(way.seconds):.1f}",
        *(f"{score.score:.2f}" for score in scores),
    )


if __name__ == "__main__":
    main()
