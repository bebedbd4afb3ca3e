"""`make` in examples/back-translation: all variants, tiny, from text to their scores."""

import re
import subprocess
from pathlib import Path

from examples.demo.corpus import split
from nmtkit.data.binary import Dataset
from nmtkit.text.lines import read_lines
from tests.recipes import BACK_TRANSLATION, make
from tests.tiny import write_lines

SIZES = {"train": 300, "valid": 10, "test": 10}
NUM_REAL = 100
VARIANTS = ["real", "beam", "sampled", "tagged", "weighted", "all"]
SMALL = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--warmup-updates 2 --save-every 2 --validate-every 2"
)


def make_variants(corpus: Path, work: Path, *settings: str) -> str:
    """Make the scores of all variants; return what make prints."""
    done = make(
        *("score", f"CORPUS={corpus}", f"WORK={work}", f"PAIRS={NUM_REAL}", "UPDATES=3"),
        *(f"SMALL={SMALL}", "VOCABULARY=500", "PREPROCESS_FLAGS=--workers 1"),
        "TRAIN_FLAGS=--update-tokens 300 --max-tokens 300 --device cpu",
        *("SEARCH_FLAGS=--beam 1", "TRANSLATE_FLAGS=--max-length-offset 2 --device cpu"),
        *settings,
        folder=BACK_TRANSLATION,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_text_to_the_scores_of_all_variants(tmp_path: Path) -> None:
    corpus, work = tmp_path / "the corpus", tmp_path / "work"
    corpus.mkdir()
    parts = split(1, SIZES)
    for part, pairs in parts.items():
        write_lines(corpus / f"{part}.en", [pair.english for pair in pairs])
        write_lines(corpus / f"{part}.de", [pair.german for pair in pairs])
    subprocess.run(["gzip", *corpus.glob("train.*")], check=True)
    scores = make_variants(corpus, work)
    assert re.findall(r"^\| \S+/(\w+)\.de +\|.*\d+\.\d\d", scores, re.MULTILINE) == VARIANTS

    # The parallel and the monolingual text are the corpus, and its other sources are not used.
    def lines(name: str) -> list[str]:
        return list(read_lines(work / "text" / name))

    real = list(zip(lines("real.en"), lines("real.de"), strict=True))
    known = [(pair.english, pair.german) for pair in parts["train"]]
    assert len(real) == NUM_REAL
    assert {*real} <= {*known}
    targets = sorted([target for _, target in real] + lines("monolingual.de"))
    assert targets == sorted(target for _, target in known)
    for name in ("beam", "sampled"):
        assert lines(f"{name}.de") == lines("monolingual.de")
        assert len(lines(f"{name}.en")) == SIZES["train"] - NUM_REAL
    assert lines("beam.en") != lines("sampled.en")

    data = {name: Dataset.open(work / "data" / name) for name in [*VARIANTS, "backward"]}
    codecs = {data[name].codec.fingerprint for name in VARIANTS}
    assert len(codecs) == 1
    assert data["backward"].codec.source_lang == "de"
    corpora = {name: one.manifest["recipe"]["corpus"] for name, one in data.items()}
    assert [path.rpartition("/")[2] for path in corpora["tagged"]["train"]] == ["real", "beam"]
    assert [tag.rpartition("/")[2] for tag in corpora["tagged"]["tag"]] == ["beam=<bt>"]
    assert corpora["weighted"]["train"][0].endswith("real=2")

    again = make_variants(corpus, work, "--dry-run")
    assert set(re.findall(r"nmtkit_cli (\S+)", again)) == {"score"}
    seed_2 = re.findall(r"nmtkit_cli (\S+)", make_variants(corpus, work, "--dry-run", "SEED=2"))
    assert seed_2.count("train") == len(VARIANTS)  # the backward model is that of all seeds
    assert "preprocess" not in seed_2


def test_more_pairs_than_there_are_is_one_line(tmp_path: Path) -> None:
    for language in ("en", "de"):
        write_lines(tmp_path / f"train.{language}", ["a", "b", ""])
    settings = (f"CORPUS={tmp_path}", f"WORK={tmp_path / 'work'}", "PAIRS=2")
    done = make("text", *settings, folder=BACK_TRANSLATION)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"split: error: {tmp_path}/train: 2 pairs without empty sides, so --pairs must be from 1 "
        "to 1, not 2 (make: PAIRS=)\n"
    )
