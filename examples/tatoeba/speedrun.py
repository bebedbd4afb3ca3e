"""Compare rows of the speedrun: BLEU of several seeds, and whether a change may enter.

    python speedrun.py CORPUS TARGET SPEEDRUN/OLD SPEEDRUN/NEW ...

CORPUS has valid.TARGET and test.TARGET; a row has them in a folder per seed, as `make speedrun`
writes them. A change enters if each of at least three seeds is better than the same seed of the
first row, and the paired bootstrap over sentences, each with its translations of all seeds, has
p < 0.01, on both texts.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from nmtkit.config.metrics import MetricsConfig
from nmtkit.errors import ConfigError, DataError, NmtkitError
from nmtkit.evaluation.metric import Metric, Score, Statistics
from nmtkit.evaluation.metrics import count_corpus, make_metrics
from nmtkit.evaluation.significance import paired_bootstrap
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.text.lines import read_lines

RESAMPLES = 1000
LARGEST_P = 0.01
FEWEST_SEEDS = 3
SPLITS = ("valid", "test")


@dataclass(frozen=True)
class Results:
    """The results of a row on one text.

    Attributes:
        by_seed: BLEU of each seed, in the order of their names.
        pooled: per sentence, the statistics of BLEU, summed over the seeds.
        score: BLEU of `pooled`, with its bootstrap interval.
    """

    by_seed: dict[str, float]
    pooled: Statistics
    score: Score

    @staticmethod
    def read(metric: Metric, row: Path, name: str, reference: Text) -> "Results":
        """Score the translations `ROW/SEED/NAME` of every seed.

        Raises:
            DataError: there are none, or they have another number of lines than the reference.
        """
        files = sorted(row.glob(f"*/{name}"))
        if not files:
            raise DataError(f"{row}: no translations SEED/{name}; run `make speedrun` for it")
        by_seed, counted = {}, []
        for file in files:
            system = Text(str(file), list(read_lines(file)))
            Texts([system], [reference]).check()
            statistics = count_corpus(metric, system.lines, [reference.lines])
            by_seed[file.parent.name] = metric.score(statistics, resamples=0).score
            counted.append(statistics)
        pooled = [
            [sum(values) for values in zip(*lines, strict=True)]
            for lines in zip(*counted, strict=True)
        ]
        return Results(by_seed, pooled, metric.score(pooled, RESAMPLES))

    @property
    def mean(self) -> float:
        """The mean BLEU of the seeds."""
        return fmean(self.by_seed.values())

    def is_better(self, other: "Results") -> bool:
        """Return whether each seed is better than the same seed of another row."""
        scores = other.by_seed
        return all(score > scores[seed] for seed, score in self.by_seed.items())


def table(corpus: Path, rows: Sequence[Path], target: str) -> list[str]:
    """Return the lines of a Markdown table with a row per folder.

    Args:
        corpus: has the references valid.TARGET and test.TARGET.
        rows: the folders; the first is what the others are compared with.
        target: the suffix of the target language.

    Raises:
        DataError: a row has no translations, other seeds, or other numbers of lines.
        ConfigError: a file is missing.
    """
    (metric,) = make_metrics(MetricsConfig(metric="bleu"))
    names = [f"{split}.{target}" for split in SPLITS]
    references = [Text(name, list(read_lines(corpus / name))) for name in names]
    results = [[Results.read(metric, row, one.name, one) for one in references] for row in rows]
    lines = ["| row | valid | test | p, valid and test | enters |", "|---|---|---|---|---|"]
    for row, scored in zip(rows, results, strict=True):
        pairs = list(zip(results[0], scored, strict=True))
        verdict = ["", ""] if scored is results[0] else _verdict(metric, row, pairs)
        lines.append(f"| {' | '.join([row.name, *map(_cell, scored), *verdict])} |")
    return lines


def _verdict(metric: Metric, row: Path, pairs: Sequence[tuple[Results, Results]]) -> list[str]:
    """Return the p-values and whether a row enters, from its results next to the first row's."""
    _check_seeds(row, pairs)
    p_values = [paired_bootstrap(metric, old.pooled, new.pooled, RESAMPLES) for old, new in pairs]
    enters = (
        all(new.is_better(old) and len(new.by_seed) >= FEWEST_SEEDS for old, new in pairs)
        and max(p_values) < LARGEST_P
    )
    return [", ".join(f"{p:.3f}" for p in p_values), "yes" if enters else "no"]


def _check_seeds(row: Path, pairs: Sequence[tuple[Results, Results]]) -> None:
    """Raise DataError if the first row has translations of other seeds."""
    for old, new in pairs:
        if odd := sorted(old.by_seed.keys() ^ new.by_seed.keys()):
            raise DataError(
                f"{row}: seeds that only one of both rows has: {', '.join(odd)}; run `make "
                "speedrun` with the same SEEDS for both"
            )


def _cell(results: Results) -> str:
    interval = results.score.interval
    assert interval is not None, "scored with resamples"
    seeds = ", ".join(f"{score:.1f}" for score in results.by_seed.values())
    return f"{results.mean:.1f} \u00b1 {interval.half_width:.1f} ({seeds})"


def main() -> int:
    """Print the table; return the exit code."""
    if len(sys.argv) < 4:
        sys.stderr.write("usage: speedrun.py CORPUS TARGET ROW ...\n")
        return ConfigError.exit_code
    corpus, target, *rows = sys.argv[1:]
    try:
        lines = table(Path(corpus), [*map(Path, rows)], target)
    except NmtkitError as error:
        sys.stderr.write(f"speedrun: error: {error}\n")
        return error.exit_code
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
