"""`make` in examples/adaptation: all stages, tiny, from text to the scores of both test sets."""

import json
import re
import subprocess
from pathlib import Path

from examples.demo.corpus import split
from nmtkit.data.binary import Dataset
from nmtkit.storage.run_folder import find_model
from tests.recipes import ADAPTATION, make
from tests.tiny import write_lines

SIZES = {"train": 300, "valid": 10, "test": 10}
STAGES = ["scratch", "child", "domain", "mixed", "frozen"]
SMALL = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 16 --feed-forward-size 32 --heads 2 "
    "--warmup-updates 2 --save-every 2 --validate-every 2"
)


def write_corpora(folder: Path) -> None:
    """Write texts whose French is German in capitals."""
    names = ("tatoeba.en-de", "tatoeba.en-fr", "news-commentary-5k.en-fr")
    for seed, name in enumerate(names):
        target = name[-2:]
        (folder / name).mkdir(parents=True)
        for part, pairs in split(seed, SIZES).items():
            german = [pair.german if target == "de" else pair.german.upper() for pair in pairs]
            write_lines(folder / name / f"{part}.en", [pair.english for pair in pairs])
            write_lines(folder / name / f"{part}.{target}", german)
        subprocess.run(["gzip", *folder.glob(f"{name}/train.*")], check=True)


def make_stages(corpus: Path, work: Path, *settings: str) -> str:
    """Make the scores of all stages; return what make prints."""
    done = make(
        *("score", f"CORPUS={corpus}", f"WORK={work}", "NEWS_VALID=10", "NEWS_TEST=20"),
        *("PARENT_UPDATES=4", "CHILD_UPDATES=3", "DOMAIN_UPDATES=2", f"SMALL={SMALL}"),
        *("PARENT_VOCABULARY=600", "CHILD_VOCABULARY=500", "PREPROCESS_FLAGS=--workers 1"),
        "TRAIN_FLAGS=--update-tokens 300 --max-tokens 300 --device cpu",
        "TRANSLATE_FLAGS=--beam 1 --max-length-offset 2 --device cpu",
        *settings,
        folder=ADAPTATION,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def line_of_descent(run: Path) -> list[str]:
    manifest = json.loads((find_model(run) / "manifest.json").read_text("utf-8"))
    return [parent["name"] for parent in manifest["provenance"].get("parents", [])]


def test_from_text_to_the_scores_of_all_stages(tmp_path: Path) -> None:
    corpus, work = tmp_path / "the corpora", tmp_path / "work"
    write_corpora(corpus)
    scores = make_stages(corpus, work)
    rows = re.findall(r"^\| \S+/(\w+)/(\w+)\.fr +\|.*\d+\.\d\d", scores, re.MULTILINE)
    assert rows == [(name, stage) for name in ("home", "news") for stage in STAGES]
    for name, num_lines in (("home", 10), ("news", 20)):
        for stage in STAGES:
            translated = (work / "seed-1" / name / f"{stage}.fr").read_text("utf-8")
            assert translated.count("\n") == num_lines

    descent = {stage: line_of_descent(work / "seed-1" / stage) for stage in STAGES}
    of_news = ["child", "parent"]
    of_domain = dict.fromkeys(("domain", "mixed", "frozen"), of_news)
    assert descent == {"scratch": [], "child": ["parent"], **of_domain}
    codecs = {path.name: Dataset.open(path).codec.fingerprint for path in work.glob("data/*")}
    assert codecs["domain"] == codecs["mixed"] == codecs["child"] != codecs["parent"]

    again = make_stages(corpus, work, "--dry-run")
    assert set(re.findall(r"nmtkit_cli (\S+)", again)) == {"score"}
    seed_2 = make_stages(corpus, work, "--dry-run", "SEED=2")
    of_another_seed = re.findall(r"nmtkit_cli (\S+)", seed_2)
    assert of_another_seed.count("train") == len(STAGES)  # not the parent
    assert "preprocess" not in of_another_seed
