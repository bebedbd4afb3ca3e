"""`make` in examples/terminology: from raw text to scores of terms and tags, tiny."""

import re
from pathlib import Path

from examples.alignment.word_for_word import write_corpus
from nmtkit.text.lines import read_lines
from tests.recipes import TERMINOLOGY, make
from tests.tiny import write_lines

SIZES = {"train": 100, "valid": 10, "test": 4}
TINY = (
    "--update-tokens 300 --max-tokens 300 --device cpu --save-every 1 --validate-every 2 "
    "--encoder-layers 1 --decoder-layers 2 --model-size 16 --feed-forward-size 32 --heads 2"
)


def made(target: str, corpus: Path, work: Path, *settings: str) -> str:
    done = make(
        *(target, f"CORPUS={corpus}", f"WORK={work}", f"TERMS={corpus / 'terms'}"),
        *(f"MARKED={corpus / 'marked'}", "TARGET=fr", "VOCABULARY=320", "MARKS=4"),
        *("UPDATES=2", "MARKED_UPDATES=2", "PREPROCESS_FLAGS=--workers 1", f"MODEL={TINY}"),
        "TRANSLATE_FLAGS=--device cpu --max-length-offset 4 --max-length-ratio 1",
        *settings,
        folder=TERMINOLOGY,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_text_to_scores_of_terms_and_tags(tmp_path: Path) -> None:
    corpus, work = tmp_path / "the corpus", tmp_path / "work"
    write_corpus(corpus, SIZES)
    source, target = (next(iter(read_lines(corpus / f"test.{one}"))) for one in ("en", "fr"))
    write_lines(corpus / "terms", [f"{source.split()[0]}\t{target.split()[0]}"])
    for lang, line in (("en", source), ("fr", target)):
        first, rest = line.split(" ", 1)
        write_lines(corpus / f"marked.{lang}", [f"<b>{first}</b> {rest}"])
    scores = made("score", corpus, work)
    modes = ["none", "soft", "hard", "both"]
    assert re.findall(r"^\| \S+/test/(\S+) +\|", scores, re.MULTILINE) == [*modes, *modes]
    assert "Structure = 100.00" in made("markup", corpus, work)
    again = made("score", corpus, work, "--dry-run")
    assert set(re.findall(r"nmtkit_cli (\S+)", again)) == {"score"}
