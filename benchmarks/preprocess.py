"""Speed of preprocessing, compared with SentencePiece alone.

    python -m benchmarks.preprocess --text PREFIX -s en -t de

The text is --pairs pairs of lines of about 25 tokens, with words drawn at random from PREFIX. The
contenders are interleaved, each in a separate process: SentencePiece encoding all lines in one
thread; `prepare` with an existing vocabulary, in one process; and the same with workers. A rate
counts the lines of both sides. Reading the text, starting processes and other programs can keep a
contender from using all its cores.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from benchmarks.common import print_json, print_table
from nmtkit.config.preprocessing import CorpusConfig, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.prepare import prepare
from nmtkit.progress.counting import SILENT
from nmtkit.text.lines import read_lines, resolve
from nmtkit.text.subword import Subword

WORDS_PER_LINE = 17
"""About 25 tokens in English and German text with 8 000 entries."""

NUM_VALID = 1000


@dataclass(frozen=True)
class Speed:
    """Rounds of one contender.

    Attributes:
        name: the contender.
        lines_per_second: lines per second of each round.
        cores: processor time of all its processes divided by time, median of the rounds.
        ratio: speed divided by that of one nmtkit process, median of the rounds.
    """

    name: str
    lines_per_second: list[float]
    cores: float
    ratio: float


@dataclass(frozen=True)
class Times:
    """Elapsed seconds of a process, and processor seconds with its child processes."""

    elapsed: float
    processor: float


def main() -> None:
    """Measure, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", required=True, metavar="PREFIX")
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recipe, num_tokens = make_text(folder, options)
        contenders: dict[str, Callable[[], None]] = {
            "nmtkit, one process": partial(run_prepare, recipe, folder / "data", 1),
            f"nmtkit, {options.workers} workers": partial(
                run_prepare, recipe, folder / "data", options.workers
            ),
            "SentencePiece alone": partial(run_sentencepiece, recipe),
        }
        times = [[measure(run) for run in contenders.values()] for _ in range(options.rounds)]
    results = [
        Speed(
            name,
            [2 * options.pairs / one[index].elapsed for one in times],
            median(one[index].processor / one[index].elapsed for one in times),
            median(one[0].elapsed / one[index].elapsed for one in times),
        )
        for index, name in enumerate(contenders)
    ]
    print(f"{num_tokens / 2 / options.pairs:.1f} tokens per line, end symbols counted")
    rows = [
        [one.name, f"{median(one.lines_per_second):.0f}", f"{one.cores:.2f}", f"{one.ratio:.2f}"]
        for one in results
    ]
    print_table([["", "lines/s", "cores", "ratio"], *rows])
    print_json([asdict(result) for result in results])


def make_text(folder: Path, options: argparse.Namespace) -> tuple[PreprocessRecipe, int]:
    """Write text and its vocabulary; return the recipe and the number of tokens."""
    languages = (options.source_lang, options.target_lang)
    prefixes = {"train": options.pairs, "valid": NUM_VALID}
    generator = random.Random(1)
    for language in languages:
        lines = read_lines(resolve(options.text, language))
        words = [word for line in lines for word in line.split()]
        for name, num_lines in prefixes.items():
            with (folder / f"{name}.{language}").open("w", encoding="utf-8") as file:
                for _ in range(num_lines):
                    file.write(" ".join(generator.choices(words, k=WORDS_PER_LINE)) + "\n")
    recipe = PreprocessRecipe(
        corpus=CorpusConfig(
            source_lang=languages[0],
            target_lang=languages[1],
            train=(str(folder / "train"),),
            valid=(str(folder / "valid"),),
        ),
        vocabulary=VocabularyConfig(vocab_size=options.vocab_size, sample_lines=20_000),
    )
    counts = prepare(recipe, folder / "first", options.workers, False, SILENT)["train"]
    model = str(folder / "first" / "codec" / "shared.model")
    given = VocabularyConfig(source_vocabulary=model, target_vocabulary=model)
    num_tokens = counts["source"]["tokens"] + counts["target"]["tokens"]
    return PreprocessRecipe(corpus=recipe.corpus, vocabulary=given), num_tokens


def run_prepare(recipe: PreprocessRecipe, out: Path, workers: int) -> None:
    """Preprocess the text."""
    prepare(recipe, out, workers, True, SILENT)


def run_sentencepiece(recipe: PreprocessRecipe) -> None:
    """Read the text and encode each line by SentencePiece."""
    model = Subword.load(Path(recipe.vocabulary.source_vocabulary))
    for language in (recipe.corpus.source_lang, recipe.corpus.target_lang):
        for line in read_lines(resolve(recipe.corpus.train[0], language)):
            model.encode(line)


def measure(run: Callable[[], Any]) -> Times:
    """Run a function in a new process and time it."""
    process = get_context("spawn").Process(target=run)
    start, used_before = time.monotonic(), getrusage(RUSAGE_CHILDREN)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"a contender failed with exit code {process.exitcode}")
    elapsed, used = time.monotonic() - start, getrusage(RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime - used_before.ru_utime - used_before.ru_stime
    return Times(elapsed, processor)


if __name__ == "__main__":
    main()
