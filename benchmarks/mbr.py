"""Expected utilities of samples: time per line, and agreement of exact and aggregated choices.

    nmtkit translate MODEL --sample --n-best 64 --output-format json < SOURCE > SAMPLES
    python -m benchmarks.mbr SAMPLES

Aggregated utilities may choose another sample than exact ones. The utility lost by that is the
exact utility of the exact choice minus that of the aggregated one.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean, median

from benchmarks.common import print_json, print_table
from nmtkit.config.metrics import MetricsConfig
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.rerank.mbr import UTILITIES, expected_utilities
from nmtkit.text.lines import open_bytes
from nmtkit.text.translations import read_translations


@dataclass(frozen=True)
class Line:
    """The choices for one line.

    Attributes:
        num_distinct: number of different samples.
        exact_s, aggregated_s: seconds.
        is_equal: both choose the same text.
        lost: exact utility lost by the aggregated choice, 0 to 100.
    """

    num_distinct: int
    exact_s: float
    aggregated_s: float
    is_equal: bool
    lost: float


def main() -> None:
    """Compute the utilities of each line in both ways; print a table, then all numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("samples", type=Path, help="JSON lines with n_best")
    parser.add_argument("--lines", type=int, help="the first lines only")
    parser.add_argument("--num-samples", type=int, help="the first samples of each line only")
    arguments = parser.parse_args()
    samples = list(islice(read_samples(arguments.samples, arguments.num_samples), arguments.lines))
    found = {utility: [compare(utility, texts) for texts in samples] for utility in UTILITIES}
    rows = [("utility", "lines", "distinct", "exact ms", "aggregated ms", "same choice", "lost")]
    for utility, lines in found.items():
        row = (
            utility,
            str(len(lines)),
            f"{fmean(one.num_distinct for one in lines):.1f}",
            f"{1000 * median(one.exact_s for one in lines):.2f}",
            f"{1000 * median(one.aggregated_s for one in lines):.2f}",
            f"{100 * fmean(one.is_equal for one in lines):.1f} %",
            f"{fmean(one.lost for one in lines):.3f}",
        )
        rows.append(row)
    print_table(rows)
    print_json({utility: [asdict(one) for one in lines] for utility, lines in found.items()})


def read_samples(path: Path, num_samples: int | None) -> Iterator[list[str]]:
    """Yield the texts of `n_best` of each line."""
    with open_bytes(path) as stream:
        for line in read_translations(stream, str(path)):
            yield [one.text for one in line.candidates[:num_samples]]


def compare(utility: str, texts: list[str]) -> Line:
    """Choose one of the samples in both ways."""
    (metric,) = make_metrics(MetricsConfig(metric=utility))
    start = time.perf_counter()
    exact = expected_utilities(utility, metric, texts, is_aggregated=False)
    between = time.perf_counter()
    aggregated = expected_utilities(utility, metric, texts, is_aggregated=True)
    end = time.perf_counter()
    best, other = (values.index(max(values)) for values in (exact, aggregated))
    return Line(
        num_distinct=len({*texts}),
        exact_s=between - start,
        aggregated_s=end - between,
        is_equal=texts[best] == texts[other],
        lost=exact[best] - exact[other],
    )


if __name__ == "__main__":
    main()
