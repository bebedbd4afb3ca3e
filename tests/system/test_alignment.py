"""`make` in examples/alignment: links of plain and guided models, tiny, and their error rates."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.alignment.word_for_word import write_corpus
from nmtkit.text.lines import read_lines
from tests.recipes import ALIGNMENT, PYTHON, ROOT, make

SIZES = {"train": 100, "valid": 10, "test": 10}
METHODS = ["plain", "guided", "eflomal", "guided-eflomal"]
ALIGNER = """\
import sys
from pathlib import Path
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
sources, targets = (Path(arguments[one]).read_text().splitlines() for one in ("-s", "-t"))
for option in ("-f", "-r"):
    with Path(arguments[option]).open("w") as file:
        for source, target in zip(sources, targets, strict=True):
            words = range(min(len(source.split()), len(target.split())))
            print(*(f"{word}-{word}" for word in words), file=file)
"""


def make_links(corpus: Path, work: Path, *settings: str) -> str:
    """Make the error rates of all methods, with an aligner that links words in order."""
    aligner = corpus.parent / "aligner.py"
    aligner.write_text(ALIGNER)
    done = make(
        *("eflomal", f"CORPUS={corpus}", f"WORK={work}", f"EFLOMAL={PYTHON} {aligner}"),
        *("SHORT_UPDATES=2", "UPDATES=2", "GUIDED_UPDATES=2", "VOCABULARY=320", "SHORT_LENGTH=60"),
        *("PREPROCESS_FLAGS=--workers 1", "ALIGN_FLAGS=--device cpu"),
        "SMALL=--update-tokens 300 --max-tokens 300 --device cpu --save-every 1 --validate-every 2 "
        "--encoder-layers 1 --decoder-layers 2 --model-size 16 --feed-forward-size 32 --heads 2",
        *settings,
        folder=ALIGNMENT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_text_to_the_error_rates_of_all_methods(tmp_path: Path) -> None:
    corpus, work = tmp_path / "the corpus", tmp_path / "work"
    write_corpus(corpus, SIZES)
    scores = make_links(corpus, work)
    assert re.findall(r"^\| \S+/test/(\S+) +\|", scores, re.MULTILINE) == METHODS
    for method in METHODS:
        links = list(read_lines(work / "links" / f"{method}.en-fr"))
        assert len(links) == SIZES["train"] + SIZES["test"]
        assert list(read_lines(work / "links" / "test" / method)) == links[-SIZES["test"] :]
    reverse = [one.split() for one in read_lines(work / "links" / "both.fr-en")]
    forward = [one.split() for one in read_lines(work / "links" / "both.en-fr")]
    transposed = [["-".join(one.split("-")[::-1]) for one in links] for links in forward]
    assert transposed == reverse

    again = make_links(corpus, work, "--dry-run")
    assert set(re.findall(r"nmtkit_cli (\S+)", again)) == {"score"}


@pytest.mark.parametrize(
    ("forward", "reverse", "message"),
    [
        ("0-0\n", "", "forward has 1 lines"),
        ("0-0\nx\n", "0-0\n0-0\n", "line 2: 'x' is no link; write SOURCE-TARGET"),
    ],
)
def test_links_that_cannot_be_combined_are_one_line(
    forward: str, reverse: str, message: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "forward", tmp_path / "reverse"]
    for path, content in zip(paths, (forward, reverse), strict=True):
        path.write_text(content)
    command = [sys.executable, str(ALIGNMENT / "symmetrize.py"), *map(str, paths)]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 3
    assert done.stderr.startswith("symmetrize: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
