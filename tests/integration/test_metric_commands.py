"""`nmtkit score --metric-command`, and scoring of JSON lines."""

import json
import math
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import nmtkit_in_text
from tests.messages import refused
from tests.tiny import write_lines

ROOT = Path(__file__).parents[2]
RATIO = f"ratio={shlex.join([sys.executable, f'{ROOT}/examples/metrics/length_ratio.py'])}"
COLUMNS = "columns=awk -F '\\t' '{ print NF }'"
SOURCE = ["Good.", "A\tcat.", "I am here now."]
REFERENCE = ["Gut.", "Eine Katze.", "Ich bin jetzt hier."]
SYSTEM = ["Gut!", "Die Katze.", "Ich bin hier."]
OTHER = ["Schlecht ist das.", "Eine Katze.", "Ich."]


def score(*arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
    return nmtkit_in_text("score", *arguments, stdin=text)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    for name, lines in {
        "source": SOURCE,
        "reference": REFERENCE,
        "system": SYSTEM,
        "other": OTHER,
    }.items():
        write_lines(tmp_path / name, lines)
    return tmp_path


def ratios(system: list[str]) -> list[float]:
    lengths = [sorted((len(one), len(other))) for one, other in zip(system, REFERENCE, strict=True)]
    return [100 * shorter / longer for shorter, longer in lengths]


def test_the_score_of_a_text_is_the_mean_of_its_lines_next_to_other_metrics(texts: Path) -> None:
    arguments = ("--reference", texts / "reference", "--metric-command", RATIO, "--json")
    done = score(*arguments, texts / "system", texts / "other")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    for system, lines in zip(found, (SYSTEM, OTHER), strict=True):
        assert set(system) == {"system", "BLEU", "ratio"}
        assert system["ratio"]["score"] == pytest.approx(math.fsum(ratios(lines)) / 3)
        assert system["ratio"]["signature"].startswith("nrefs:1|command:")
    lines = score(*arguments[:-1], "--sentence-level", texts / "system").stdout.split("\n")[:-1]
    assert [float(line.split("\t")[1]) for line in lines] == pytest.approx(
        ratios(SYSTEM), abs=0.005
    )


def test_intervals_tests_and_lengths_are_those_of_the_lines(texts: Path) -> None:
    """The longer text is clearly worse, so the paired test finds it."""
    for name, lines in (("reference", REFERENCE), ("system", REFERENCE), ("other", OTHER)):
        write_lines(texts / name, lines * 40)
    arguments = ("--metric", "none", "--metric-command", RATIO, "--reference", texts / "reference")
    files = (texts / "system", texts / "other")
    done = score(*arguments, "--paired-ar", "--trials", 200, "--confidence", "--json", *files)
    assert done.returncode == 0, done.stderr
    best, worse = (json.loads(line)["ratio"] for line in done.stdout.split("\n")[:-1])
    assert (best["score"], best["half_width"]) == (100, 0)
    assert worse["mean"] == pytest.approx(worse["score"], abs=worse["half_width"])
    assert worse["p_value"] < 0.05
    bootstrap = score(*arguments, "--paired-bs", "--resamples", 200, "--json", *files)
    assert json.loads(bootstrap.stdout.split("\n")[1])["ratio"]["p_value"] < 0.05
    by_length = json.loads(score(*arguments, "--by-length", "--json", files[1]).stdout)
    assert by_length["by_length"][0]["ratio"] == pytest.approx(worse["score"])


def test_a_program_gets_source_translation_and_all_references(texts: Path) -> None:
    arguments = ["--metric", "none", "--metric-command", COLUMNS, "--json", texts / "system"]
    one = score("--reference", texts / "reference", *arguments)
    assert json.loads(one.stdout)["columns"]["score"] == 3
    two = ("--reference", texts / "reference", "--reference", texts / "other")
    assert json.loads(score(*two, *arguments).stdout)["columns"]["score"] == 4
    show = f"seen=tee '{texts}/seen' | sed s/.*/1/"
    done = score(
        *("--reference", texts / "reference", "--source", texts / "source"),
        *("--metric-command", show, texts / "system"),
    )
    assert done.returncode == 0, done.stderr
    seen = [line.split("\t") for line in (texts / "seen").read_text("utf-8").split("\n")[:-1]]
    plain = [line.replace("\t", " ") for line in SOURCE]
    assert seen == [list(row) for row in zip(plain, SYSTEM, REFERENCE, strict=True)]


@pytest.mark.parametrize(
    ("arguments", "code", "keys"),
    [
        (["--metric-command", "x"], 2, "metric_command x NAME=COMMAND"),
        (["--metric-command", "x="], 2, "metric_command x= NAME=COMMAND"),
        (["--metric-command", "1=cat"], 2, "metric_command 1"),
        (["--metric-command", "bleu=cat"], 2, "metric_command bleu --json"),
        (["--metric-command", "x=a", "--metric-command", "x=b"], 2, "metric_command x"),
        (["--metric", "none"], 2, "metric none --metric-command"),
        (["--metric", "brackets", "--metric-command", "x=cat"], 2, "metric_command brackets"),
        (["--metric-command", "x=exit 3"], 8, "x code 3"),
        (["--input-format", "json"], 3, "system:1 JSON"),
        (["--input-format", "json", "--source", "system"], 2, "--input-format"),
    ],
)
def test_what_cannot_work_is_one_line(
    arguments: list[str], code: int, keys: str, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(texts)
    done = score("--reference", "reference", *arguments, "system")
    refused(done, code, keys)
    assert done.stderr.count("nmtkit: error") == 1
    assert "Traceback" not in done.stderr


def test_a_page_runs_the_program_once_per_system_and_replaces_no_text(texts: Path) -> None:
    arguments = ("--reference", texts / "reference", "--metric", "none", "--metric-command")
    counted = f"runs=echo >> '{texts}/runs'; sed s/.*/1/"
    files = (texts / "system", texts / "other")
    done = score(*arguments, counted, "--html", texts / "page.html", *files)
    assert done.returncode == 0, done.stderr
    assert (texts / "runs").read_text() == "\n\n"
    done = score(*arguments, counted, "--html", files[0], "--overwrite", *files)
    refused(done, 2, f"--html {files[0]}; file")
    assert files[0].read_text("utf-8").startswith(SYSTEM[0])


def as_json(translations: list[str]) -> str:
    rows = zip(SOURCE, translations, strict=True)
    return "".join(json.dumps({"source": a, "translation": b}) + "\n" for a, b in rows)


def test_translations_in_json_score_as_their_texts_and_have_the_sources(texts: Path) -> None:
    plain = score("--reference", texts / "reference", text="".join(f"{one}\n" for one in SYSTEM))
    arguments = ("--reference", texts / "reference", "--input-format", "json")
    from_json = score(*arguments, text=as_json(SYSTEM))
    assert from_json.returncode == 0, from_json.stderr
    assert from_json.stdout == plain.stdout
    show = f"seen=cut -f1 | tee '{texts}/seen' | sed s/.*/1/"
    assert score(*arguments, "--metric-command", show, text=as_json(SYSTEM)).returncode == 0
    sources = (texts / "seen").read_text("utf-8").split("\n")[:-1]
    assert sources == [line.replace("\t", " ") for line in SOURCE]


@pytest.mark.parametrize("command", ["score", "rerank", "train"])
def test_a_recipe_runs_no_program(command: str, tmp_path: Path) -> None:
    (tmp_path / "line").write_text('{"source": "a", "translation": "b"}\n', "utf-8")
    marker = tmp_path / "marker"
    text = f"[metrics]\nmetric_command = ['x=touch {marker}; cat > {marker}; echo 1']\n"
    (tmp_path / "recipe.toml").write_text(text, "utf-8")
    arguments: dict[str, list[object]] = {
        "score": ["--reference", tmp_path / "line", tmp_path / "line"],
        "rerank": ["--features", "command:x", tmp_path / "line"],
    }
    line = (command, "--config", tmp_path / "recipe.toml", *arguments.get(command, []))
    done = nmtkit_in_text(*line)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    if command in arguments:
        refused(done, 2, "'metric_command'; --metric-command NAME=COMMAND")
    assert not marker.exists()


def test_the_command_line_adds_programs_to_a_printed_recipe(texts: Path) -> None:
    arguments = ("score", "--metric", "none", "--metric-command", RATIO)
    printed = nmtkit_in_text(*arguments, "--print-config")
    (warning,) = printed.stderr.splitlines()
    assert warning.startswith("nmtkit: warning: --metric-command: not printed")
    (texts / "recipe.toml").write_text(printed.stdout, "utf-8")
    texts_to_score = ("--reference", texts / "reference", texts / "system")
    again = ("score", "--config", texts / "recipe.toml", "--metric-command", RATIO)
    direct = nmtkit_in_text(*arguments, *texts_to_score)
    assert nmtkit_in_text(*again, *texts_to_score).stdout == direct.stdout != ""
