"""`nmtkit score`, on published scores of WMT 2017 systems."""

import csv
import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tests.commands import nmtkit
from tests.messages import refused
from tests.shared_data import DATA, needs_data

SCORED = DATA / "score" / "wmt17-en-de"
SYSTEMS = ("newstest2017.FBK.4870.en-de", "newstest2017.KIT.4950.en-de")


def score(
    translations: bytes, *arguments: str, cwd: Path | None = None
) -> "subprocess.CompletedProcess[bytes]":
    return nmtkit("score", *arguments, stdin=translations, folder=cwd)


def expected_scores(system: str) -> dict[str, str]:
    with (SCORED / "expected.tsv").open(encoding="utf-8", newline="") as stream:
        return next(
            row for row in csv.DictReader(stream, delimiter="\t") if row["system"] == system
        )


@pytest.mark.sampled(every=2)
@needs_data
@pytest.mark.parametrize("system", SYSTEMS)
def test_published_bleu_and_chrf_are_reproduced_to_two_decimals(system: str) -> None:
    expected = expected_scores(system)
    translations = gzip.decompress((SCORED / "sys" / f"{system}.de.gz").read_bytes())
    reference = str(SCORED / "ref.de.gz")
    process = score(translations, "--reference", reference, "--metric", "bleu,chrf", "--json")
    table = json.loads(process.stdout)
    assert table["BLEU"]["score"] == pytest.approx(
        float(expected["sacrebleu2.6.0_BLEU_13a"]), abs=0.005
    )
    assert table["BLEU"]["score"] == pytest.approx(
        float(expected["mteval-v13a_published"]), abs=0.005
    )
    assert table["chrF2"]["score"] == pytest.approx(float(expected["chrF2"]), abs=0.005)


@pytest.mark.thorough
@needs_data
def test_the_published_ter_is_reproduced() -> None:
    expected = expected_scores(SYSTEMS[0])
    translations = gzip.decompress((SCORED / "sys" / f"{SYSTEMS[0]}.de.gz").read_bytes())
    process = score(translations, "--reference", str(SCORED / "ref.de.gz"), "--metric", "ter")
    name, _, value = process.stdout.decode().split()[:3]
    assert name == "TER"
    # Published as a fraction, to three decimals.
    assert float(value) / 100 == pytest.approx(float(expected["TER_published(tercom)"]), abs=0.0006)


@needs_data
def test_systems_are_compared_by_the_paper_s_bleu_too(tmp_path: Path) -> None:
    for name in SYSTEMS:
        data = (SCORED / "sys" / f"{name}.de.gz").read_bytes()
        (tmp_path / name.split(".")[1]).write_bytes(data)
    options = "--metric paper-bleu --language-pair en-de --paired-bs --resamples 20 --by-length"
    arguments = ["--reference", str(SCORED / "ref.de.gz"), *options.split(), "FBK", "KIT"]
    process = score(b"", *arguments, "--json", cwd=tmp_path)
    messages = process.stderr.decode().splitlines()
    assert all(line.startswith(("prepared for", "scored")) for line in messages)
    fbk, kit = map(json.loads, process.stdout.decode().removesuffix("\n").split("\n"))
    assert (fbk["system"], kit["system"]) == ("FBK", "KIT")
    assert f"{fbk['paper-BLEU']['score']:.2f}" == "26.53"
    assert 0 < kit["paper-BLEU"]["p_value"] <= 1
    assert sum(one["sentences"] for one in kit["by_length"]) == 3004


def test_sentence_scores_are_one_line_per_sentence(tmp_path: Path) -> None:
    (tmp_path / "ref").write_bytes(b"a b c d\n\nx y\n")
    arguments = ["--reference", "ref", "--sentence-level", "--metric", "bleu,ter"]
    process = score(b"a b c d\n\nx z\n", *arguments, cwd=tmp_path)
    assert process.stdout.decode().split("\n")[:2] == ["100.00\t0.00", "0.00\t0.00"]
    assert process.stdout.decode().split("\n")[2].endswith("\t50.00")
    bleu, ter, rest = process.stderr.decode().split("\n")
    assert bleu.startswith("BLEU: nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|")
    assert ter.startswith("TER: nrefs:1|")
    assert rest == ""
    process = score(b"a b c d\n\nx z\n", *arguments, "--json", cwd=tmp_path)
    objects = [json.loads(line) for line in process.stdout.decode().removesuffix("\n").split("\n")]
    assert objects[0] == {"BLEU": pytest.approx(100), "TER": 0}
    assert len(objects) == 3


def test_suspect_text_is_scored_with_warnings(tmp_path: Path) -> None:
    (tmp_path / "ref").write_bytes(b"a sentence.\nb\n")
    process = score(b"a sen@@ tence .\n\n", "--reference", "ref", cwd=tmp_path)
    warnings = process.stderr.decode().removesuffix("\n").split("\n")
    assert process.stdout.startswith(b"BLEU = ")
    assert process.returncode == 0
    assert [line.partition("input")[0] for line in warnings] == ["nmtkit: warning: standard "] * 3


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ("--reference r --test-set wmt17 --language-pair en-de", "--reference --test-set"),
        ("--model m --source s --confidence sys", "--confidence --model"),
        ("--reference r --source s", "--source --model --metric-command"),
        ("--test-set wmt17", "test_set; --language-pair"),
    ],
)
def test_conflicting_options_are_errors(tmp_path: Path, arguments: str, keys: str) -> None:
    process = score(b"a\n", *arguments.split(), cwd=tmp_path)
    refused(process, 2, keys)
    assert process.stdout == b""


@pytest.mark.parametrize(
    ("translations", "reference", "code", "keys"),
    [
        (b"a\n", b"a\nb\n", 3, "input 1 ref 2"),
        (b"", b"", 3, "standard input"),
        (b"a\n\x80\n", b"a\nb\n", 3, "input:2 UTF-8 byte 1"),
    ],
)
def test_bad_input_is_one_line_that_names_the_file(
    tmp_path: Path, translations: bytes, reference: bytes, code: int, keys: str
) -> None:
    (tmp_path / "ref").write_bytes(reference)
    process = score(translations, "--reference", "ref", cwd=tmp_path)
    refused(process, code, keys)
    assert process.stderr.count(b"\n") == 1
    assert process.stdout == b""


def test_settings_of_a_file_without_effect_are_a_warning(tmp_path: Path) -> None:
    recipe, reference = tmp_path / "recipe.toml", tmp_path / "ref"
    recipe.write_text("[scoring]\nmax_length = 9\n", encoding="utf-8")
    reference.write_text("a b c d\n", encoding="utf-8")
    process = score(b"a b c d\n", "--reference", str(reference), "--config", str(recipe))
    assert process.returncode == 0
    assert process.stderr.decode().splitlines()[0] == (
        "nmtkit: warning: --max-length of --config: no effect without --model"
    )
