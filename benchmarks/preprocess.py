"""Speed, memory and disk space of preprocessing, and memory of reading, by corpus size.

    python -m benchmarks.preprocess --train PREFIX --valid PREFIX -s en -t de

The corpus is copied --times times; the lines of each copy end with its number. Each step is a
separate process with its own peak, which includes the mapped pages of the dataset. SentencePiece
holds the lines that it learns from, so --sample-lines must be at most the pairs of the smallest
corpus: otherwise the peaks show only its growth.

Then the largest corpus is preprocessed with the vocabulary that was learnt, in one process and with
workers, and encoded by SentencePiece alone in one thread, all interleaved. A rate counts the lines
of both sides.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median

from benchmarks.common import peaks, print_json, print_table
from nmtkit.config.preprocessing import CorpusConfig, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.binary import FORMAT, VERSION, Dataset
from nmtkit.data.prepare import prepare
from nmtkit.data.sampler import Position, Sampler, check_budget
from nmtkit.progress.counting import SILENT
from nmtkit.storage.durable import read_manifest
from nmtkit.text.lines import read_lines, read_pair, resolve
from nmtkit.text.subword import Subword

UPDATE_TOKENS = 25_000


@dataclass(frozen=True)
class Growth:
    """The costs of one corpus size; memory is a process's peak in MiB.

    Attributes:
        pairs: sentence pairs.
        seconds: time of `prepare`.
        preprocess: memory of the process that runs `prepare`.
        worker: memory of its largest worker process; 0 = none.
        reading: memory of a process that opens the dataset and reads every pair.
        opening_seconds: time of a process that opens the dataset, checks it like training, and
            plans the first shard of an epoch.
        opening: memory of that process.
        bytes_per_token: bytes per token of the dataset on disk.
    """

    pairs: int
    seconds: float
    preprocess: float
    worker: float
    reading: float
    opening_seconds: float
    opening: float
    bytes_per_token: float


def main() -> None:
    """Measure each size, then the speeds of the largest; print tables and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", required=True, metavar="PREFIX")
    parser.add_argument("--valid", required=True, metavar="PREFIX")
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--times", type=int, nargs="+", default=[3, 60], help="copies of the text")
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--sample-lines", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each speed")
    options = parser.parse_args()
    results = []
    for times in options.times:
        with tempfile.TemporaryDirectory() as folder:
            train, out = Path(folder) / "train", Path(folder) / "data"
            num_pairs = write_copies(train, times, options)
            results.append(grow(train, out, num_pairs, options))
            if times == options.times[-1]:
                rates = speeds(train, out, num_pairs, options)
    rows = [[f"{value:.4g}" for value in asdict(result).values()] for result in results]
    print_table([[name.replace("_", " ") for name in asdict(results[0])], *rows])
    print_table([["", "lines/s"], *([name, f"{median(rate):.0f}"] for name, rate in rates.items())])
    print_json({"growth": [asdict(result) for result in results], "lines_per_s": rates})


def grow(train: Path, out: Path, num_pairs: int, options: argparse.Namespace) -> Growth:
    """Preprocess a corpus, learning its vocabulary, and read the dataset."""
    if options.sample_lines > num_pairs:
        raise SystemExit(f"--sample-lines must be at most {num_pairs}, the pairs of a corpus")
    learnt = VocabularyConfig(vocab_size=options.vocab_size, sample_lines=options.sample_lines)
    start = time.monotonic()
    recipe = recipe_of(train, learnt, options)
    preprocess, worker = peaks(run_prepare, recipe, out, options.workers)
    seconds = time.monotonic() - start
    reading, _ = peaks(read_all, out)
    start = time.monotonic()
    opening, _ = peaks(open_and_plan, out)
    opening_seconds = time.monotonic() - start
    counts = read_manifest(out, FORMAT, VERSION)["counts"]["train"]
    num_tokens = counts["source"]["tokens"] + counts["target"]["tokens"]
    num_bytes = sum(path.stat().st_size for path in out.glob("train.*"))
    return Growth(
        pairs=num_pairs,
        seconds=seconds,
        preprocess=preprocess,
        worker=worker,
        reading=reading,
        opening_seconds=opening_seconds,
        opening=opening,
        bytes_per_token=num_bytes / num_tokens,
    )


def speeds(
    train: Path, out: Path, num_pairs: int, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Return the lines per second of each contender, process start counted, by round."""
    model = str(out / "codec" / "shared.model")
    given = VocabularyConfig(source_vocabulary=model, target_vocabulary=model)
    recipe, again = recipe_of(train, given, options), out.parent / "again"
    contenders: dict[str, Callable[[], object]] = {
        "nmtkit, one process": partial(peaks, run_prepare, recipe, again, 1),
        f"nmtkit, {options.workers} workers": partial(
            peaks, run_prepare, recipe, again, options.workers
        ),
        "SentencePiece alone": partial(peaks, run_sentencepiece, recipe),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, run in contenders.items():
            start = time.monotonic()
            run()
            rates[name].append(2 * num_pairs / (time.monotonic() - start))
    return rates


def recipe_of(
    train: Path, vocabulary: VocabularyConfig, options: argparse.Namespace
) -> PreprocessRecipe:
    """Return the recipe of a corpus."""
    return PreprocessRecipe(
        corpus=CorpusConfig(
            source_lang=options.source_lang,
            target_lang=options.target_lang,
            train=(str(train),),
            valid=(options.valid,),
        ),
        vocabulary=vocabulary,
    )


def write_copies(train: Path, times: int, options: argparse.Namespace) -> int:
    """Write numbered copies of a corpus; return the number of pairs."""
    languages = (options.source_lang, options.target_lang)
    source_path, target_path = (resolve(options.train, language) for language in languages)
    num_pairs = 0
    with (
        Path(f"{train}.{languages[0]}").open("w") as source,
        Path(f"{train}.{languages[1]}").open("w") as target,
    ):
        for number in range(times):
            for source_line, target_line in read_pair(source_path, target_path):
                source.write(f"{source_line} {number}\n")
                target.write(f"{target_line} {number}\n")
                num_pairs += 1
    return num_pairs


def run_prepare(recipe: PreprocessRecipe, out: Path, workers: int) -> None:
    """Preprocess silently."""
    prepare(recipe, out, workers=workers, overwrite=True, reporter=SILENT)


def run_sentencepiece(recipe: PreprocessRecipe) -> None:
    """Read the text and encode each line by SentencePiece."""
    model = Subword.load(Path(recipe.vocabulary.source_vocabulary))
    for language in (recipe.corpus.source_lang, recipe.corpus.target_lang):
        for line in read_lines(resolve(recipe.corpus.train[0], language)):
            model.encode(line)


def open_and_plan(out: Path) -> None:
    """Open a dataset, and plan the first shard of its first epoch."""
    dataset = Dataset.open(out)
    check_budget(dataset.train, UPDATE_TOKENS)
    assert next(Sampler(dataset.train, UPDATE_TOKENS, seed=1).updates(Position(0, 0, 0)))


def read_all(out: Path) -> None:
    """Open a dataset and read every pair."""
    dataset = Dataset.open(out)
    num_tokens = 0
    for pairs in chain(dataset.train, [dataset.valid]):
        for side in (pairs.source, pairs.target):
            assert int(side.lengths().sum()) == sum(side[i].size for i in range(len(side)))
            num_tokens += side.ids.size
    assert num_tokens


if __name__ == "__main__":
    main()
