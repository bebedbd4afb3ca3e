"""Freeze a dataset of version 2: weights, tags, drops, several shards.

Run once, as `python -m tests.golden.freeze_dataset`; see freeze.py.
"""

from contextlib import chdir
from dataclasses import replace
from pathlib import Path

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.prepare import Sizes, prepare
from nmtkit.progress.counting import SILENT
from tests.tiny import tiny_corpus, tiny_recipe, write_lines

FROZEN = Path(__file__).parent / "formats-2"
MORE_LINES = ("a b c", "", "h h", "g", "g")


def main() -> None:
    """Write the example; what stands there is an error."""
    FROZEN.mkdir()
    with chdir(FROZEN):  # so that the manifest holds no path of this machine
        recipe = tiny_recipe(*tiny_corpus(Path()))
        write_lines(Path("more.en"), MORE_LINES)
        write_lines(Path("more.de"), [line.upper() for line in MORE_LINES])
        corpus = replace(recipe.corpus, train=("train", "more=0.5"), tag=("more=<bt>",))
        filters = FilterConfig(drop_duplicates=True)
        prepare(
            replace(recipe, corpus=corpus, filters=filters),
            Path("dataset"),
            workers=1,
            overwrite=False,
            reporter=SILENT,
            sizes=Sizes(shard=8),
        )
    for path in FROZEN.glob("*.*"):
        path.unlink()


if __name__ == "__main__":
    main()
