"""`make` in examples/distillation: a teacher and its students, tiny, from text to their scores."""

import json
import math
import re
import subprocess
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from examples.demo.corpus import split
from nmtkit.data.binary import Dataset
from nmtkit.text.lines import read_lines
from tests.recipes import DISTILLATION, PYTHON, make
from tests.tiny import write_lines

SIZES = {"train": 120, "valid": 10, "test": 10}
STUDENTS = ["references", "distilled", "closest", "filtered"]
N_BEST = 3
KEEP = 0.8


def make_students(corpus: Path, work: Path, *settings: str) -> str:
    """Make the scores of teacher and students; return what make prints."""
    done = make(
        *("score", f"CORPUS={corpus}", f"WORK={work}", "UPDATES=4", f"N_BEST={N_BEST}"),
        *(f"STUDENTS={' '.join(STUDENTS)}", f"KEEP={KEEP}", "SCORE_FLAGS=--device cpu"),
        *("VOCABULARY=500", "PREPROCESS_FLAGS=--workers 1", "VALIDATION=--save-every 1 --keep 4"),
        "TRAIN_FLAGS=--update-tokens 300 --max-tokens 300 --device cpu --model-size 16 "
        "--feed-forward-size 32 --heads 2",
        "TRANSLATE_FLAGS=--max-length-offset 2 --device cpu",
        *settings,
        folder=DISTILLATION,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_text_to_the_scores_of_teacher_and_students(tmp_path: Path) -> None:
    corpus, work = tmp_path / "the corpus", tmp_path / "work"
    corpus.mkdir()
    for part, pairs in split(1, SIZES).items():
        write_lines(corpus / f"{part}.en", [pair.english for pair in pairs])
        write_lines(corpus / f"{part}.de", [pair.german for pair in pairs])
    subprocess.run(["gzip", *corpus.glob("train.*")], check=True)
    scores = make_students(corpus, work)
    found = re.findall(r"^\| \S+/(\w+)\.de +\|.*\d+\.\d\d", scores, re.MULTILINE)
    assert found == ["teacher", *STUDENTS]

    text = work / "text"
    references = list(read_lines(text / "references.de"))
    n_best = [json.loads(line)["n_best"] for line in read_lines(text / "n-best.jsonl")]
    closest = list(read_lines(text / "closest.de"))
    bleu = BLEU(effective_order=True)
    for candidates, chosen, reference in zip(n_best, closest, references, strict=True):
        texts = [one["translation"] for one in candidates]
        assert chosen in texts
        best = max(bleu.sentence_score(one, [reference]).score for one in texts)
        assert bleu.sentence_score(chosen, [reference]).score == best
    sources = list(read_lines(text / "references.en"))
    for name in ("distilled", "closest"):
        assert list(read_lines(text / f"{name}.en")) == sources
    check_filtered(text, list(zip(sources, read_lines(text / "distilled.de"), strict=True)))
    codecs = {
        Dataset.open(work / "data" / name).codec.fingerprint for name in ("teacher", *STUDENTS)
    }
    assert len(codecs) == 1  # so students and teacher have equal tokens

    again = make_students(corpus, work, "--dry-run")
    assert set(re.findall(r"nmtkit_cli (\S+)", again)) == {"score"}
    other = make_students(corpus, work, "--dry-run", "STUDENT=student-3-1")
    assert re.findall(r"nmtkit_cli (\S+)", other).count("train") == len(STUDENTS)
    assert " --preset student-3-1 " in other
    models = (f"TEACHER={work / 'teacher'}", f"BACKWARD={work / 'backward'}")
    given = make_students(corpus, tmp_path / "other", "--dry-run", *models)
    assert re.findall(r"nmtkit_cli (\S+)", given).count("train") == len(STUDENTS)


def check_filtered(text: Path, pairs: list[tuple[str, str]]) -> None:
    """Fail unless the kept pairs are the likeliest ones per token, in the order of the text."""
    kept = list(
        zip(read_lines(text / "filtered.en"), read_lines(text / "filtered.de"), strict=True)
    )
    assert len(kept) == math.ceil(KEEP * len(pairs))
    scores = [[*map(float, line.split("\t"))] for line in read_lines(text / "backward.tsv")]
    ranked = sorted(
        zip((log_prob / tokens for log_prob, tokens in scores), pairs, strict=True), reverse=True
    )
    assert sorted(kept) == sorted(pair for _, pair in ranked[: len(kept)])
    rest = iter(pairs)
    assert all(pair in rest for pair in kept)  # in order


@pytest.mark.parametrize(
    ("log_probs", "arguments", "message"),
    [
        ("-1\t2\n", "--keep 0", "--keep must be above 0 and at most 1"),
        ("x\n", "", "log-probs:1: no log-probability, tab and number of tokens; write them"),
        ("-1\t2\n-1\t2\n", "", "log-probs has 2 lines, and "),
    ],
)
def test_log_probabilities_that_do_not_fit_are_one_line(
    log_probs: str, arguments: str, message: str, tmp_path: Path
) -> None:
    for name, content in (("log-probs", log_probs), ("a.en", "a\n"), ("a.de", "b\n")):
        (tmp_path / name).write_text(content)
    files = " ".join(str(tmp_path / name) for name in ("log-probs", "a.en", "a.de"))
    out = f"--out {tmp_path / 'kept.en'} {tmp_path / 'kept.de'}"
    done = in_the_example(f"{PYTHON} likeliest.py {files} {arguments} {out}")
    assert done.returncode in (2, 3)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "kept.de").exists()


@pytest.mark.parametrize(
    ("line", "reference", "message"),
    [
        ("{}\n", "a\n", "n-best:1: no n best translations; write them with `nmtkit translate"),
        ("x\n", "a\n", "n-best:1: no n best translations; write them with `nmtkit translate"),
        ("{}\n", "", "n-best has 1 lines, "),
    ],
)
def test_files_that_do_not_fit_are_one_line(
    line: str, reference: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "n-best").write_text(line)
    (tmp_path / "reference").write_text(reference)
    done = in_the_example(f"{PYTHON} closest.py {tmp_path / 'n-best'} {tmp_path / 'reference'}")
    assert done.returncode in (2, 3)
    assert done.stderr.startswith("closest: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def in_the_example(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the example's Makefile does."""
    return subprocess.run(
        ["sh", "-c", command],
        cwd=DISTILLATION,
        env={"PYTHONPATH": str(DISTILLATION.parents[1])},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
