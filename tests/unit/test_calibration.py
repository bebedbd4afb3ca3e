"""`nmtkit calibrate`, and `nmtkit translate --quality` with what it learnt."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

import nmtkit as library
from nmtkit.calibration import agreement, rank_correlation
from nmtkit.config.translation import OutputConfig
from nmtkit.decoding.quality import Floats, stored_calibration
from nmtkit.storage.growing_file import FORMAT, VERSION
from nmtkit.storage.manifest import Json, seal
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from tests.commands import nmtkit
from tests.messages import refused
from tests.tiny import WORDS, tiny_codec, write_lines, write_tiny_model
from tests.trees import parser_codec

pytestmark = pytest.mark.sampled(every=3)

FILES = ("--source", "dev.en", "--reference", "dev.de")
NUM_LINES = 120
BEGUN: dict[str, Json] = {
    "work": {"the model": "x", "--precision": "float32"},
    "is_complete": False,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two models, of which one is calibrated, and parallel text."""
    folder, codec = tmp_path_factory.mktemp("inputs"), tiny_codec()
    for seed, name in enumerate(("model", "other")):
        write_tiny_model(folder / name, codec, seed, fields={"update": 3})
    draw = random.Random(1)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(NUM_LINES)]
    write_lines(folder / "dev.en", [*lines, "", "a"])
    write_lines(folder / "dev.de", [*(line.upper() for line in lines), "A", ""])
    done = nmtkit("calibrate", "model", *FILES, "--threads", "1", folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "report").write_bytes(done.stdout)
    return folder


def translate(*arguments: object, folder: Path, text: str) -> list[str]:
    options = ("--quality", "--threads", "1", *arguments)
    done = nmtkit("translate", "model", *options, folder=folder, stdin=text.encode())
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split("\n")[:-1]


def figures_of(lines: list[str]) -> tuple[dict[str, str], list[list[float]]]:
    """Return the figures of a report: of all lines, and of each group."""
    head, _, *groups = lines
    found = [[float(one) for one in group.split("\t")] for group in groups]
    return dict(one.split("=") for one in head.split()), found


def drawn() -> tuple[Floats, Floats]:
    """Return signals of 1 000 lines, and noise."""
    generator = np.random.default_rng(1)
    return generator.uniform(0.1, 0.9, (1000, 2)), generator.normal(50, 10, 1000)


def test_the_report_is_of_all_pairs_without_blank_sides(folder: Path) -> None:
    report = (folder / "report").read_text().splitlines()
    assert figures_of(report)[0]["lines"] == str(NUM_LINES)


def test_lines_that_were_held_out_agree_with_a_law_and_not_with_noise() -> None:
    signals, noise = drawn()
    of_law, groups = figures_of(agreement(signals, 20 + 50 * signals[:, 0]))
    assert of_law["rank_correlation"] == "1.000"
    assert all(one[:2] == [one[0]] * 2 and one[2:] == [1, 0] for one in groups)
    of_noise, groups = figures_of(agreement(signals, noise))
    # Three standard errors of 1 000 lines.
    assert abs(float(of_noise["rank_correlation"])) < 0.1
    assert sum(one[1] for one in groups) / len(groups) == pytest.approx(noise.mean(), abs=0.01)
    assert all(one[2:] == pytest.approx([10, 10], rel=0.15) for one in groups)


def test_equal_values_have_their_mean_rank() -> None:
    # The ranks are 1 2 3 4 and 1.5 1.5 3.5 3.5: covariance 4, variances 5 and 4.
    found = rank_correlation(np.array([1.0, 2, 3, 4]), np.array([0.0, 0, 9, 9]))
    assert found == pytest.approx(4 / math.sqrt(5 * 4))
    assert rank_correlation(np.array([1.0, 2]), np.zeros(2)) == 0


def test_the_expected_chrf_follows_from_the_scores_of_the_search(folder: Path) -> None:
    text = "a b c\n\nd a\n"
    lines = translate(
        "--output-format", "json", "--token-scores", "--attention", "--n-best", "2",
        folder=folder, text=text,
    )  # fmt: skip
    calibration = stored_calibration(folder / "model")
    assert calibration is not None
    learnt = calibration.regression
    blank = json.loads(lines.pop(1))
    assert blank["translation"] == ""
    assert "quality" not in blank
    for one in (one for line in lines for one in json.loads(line)["n_best"]):
        signals = (
            math.exp(one["log_prob"] / len(one["tokens"])),
            math.log(len(one["tokens"]) / len(one["source_tokens"])),
        )
        kept = [
            min(max(value, low), high)
            for value, low, high in zip(signals, learnt.low, learnt.high, strict=True)
        ]
        intercept, *weights = learnt.chrf
        expected = intercept + sum(a * b for a, b in zip(weights, kept, strict=True))
        assert one["quality"] == pytest.approx(min(max(expected, 0), 100))
        assert one["quality_error"] >= 1


def test_translations_stay_and_columns_are_added(folder: Path) -> None:
    text = "a b c\n\nd a\n"
    rows = [line.split("\t") for line in translate("--scores", folder=folder, text=text)]
    plain = nmtkit("translate", "model", "--threads", "1", folder=folder, stdin=text.encode())
    assert [row[0] for row in rows] == plain.stdout.decode().split("\n")[:-1]
    assert [len(row) for row in rows] == [4, 4, 4]
    assert rows[1][2:] == ["", ""]
    moses = translate("--output-format", "moses", folder=folder, text="d a\n")
    assert f"Quality= {rows[2][2]} QualityError= {rows[2][3]} |||" in moses[0]


def test_processes_and_python_rate_as_the_command(folder: Path) -> None:
    text = "a b c\nd a\n"
    assert translate("--devices", "2", folder=folder, text=text) == translate(
        folder=folder, text=text
    )
    loaded = library.load(folder / "model", output=OutputConfig(quality=True))
    found = [one.quality for one in loaded.translate(["a b c", "d a"])]
    columns = [line.split("\t")[1:] for line in translate(folder=folder, text=text)]
    assert [[f"{one.chrf:.2f}", f"{one.error:.2f}"] for one in found if one] == columns


def test_another_calibration_is_other_work(folder: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "text", ["a b c", "d a"])
    for suffix, content in (("", b""), (".json", seal(FORMAT, VERSION, BEGUN))):
        (tmp_path / f"out.partial{suffix}").write_bytes(content)
    files = ("--input", tmp_path / "text", "--output", tmp_path / "out")
    done = nmtkit("translate", "model", "--quality", "--threads", "1", *files, folder=folder)
    refused(done, 2, "out.partial model calibration; delete")


def test_info_names_the_calibration(folder: Path) -> None:
    done = nmtkit("info", "model", folder=folder)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert f"calibrated     for --quality with beam 4, on {NUM_LINES} lines" in shown
    content = json.loads(nmtkit("info", "model", "--json", folder=folder).stdout)
    assert content["calibration"]["num_lines"] == NUM_LINES


def test_what_was_not_calibrated_is_refused(folder: Path) -> None:
    def refuse(message: str, *arguments: object) -> None:
        refused(nmtkit(*arguments, folder=folder), 2, message)

    translating = ("translate", "model", "--quality")
    refuse("beam 4 5; `nmtkit calibrate`", *translating, "--beam", "5")
    refuse("quality --sample; leave", *translating, "--sample")
    refuse("no_repeat_ngram 2; --no-repeat-ngram --quality", *translating, "--no-repeat-ngram", 2)
    recipe = folder / "both.toml"
    recipe.write_text("[output]\nquality = true\n[constraints]\nban_unknown = true\n")
    refuse("ban_unknown; --ban-unknown --quality", "translate", "model", "--config", recipe)
    refuse("other no calibration; `nmtkit calibrate`", "translate", "other", "--quality")
    refuse("ensemble; one model", "translate", "model", "other", "--quality")


def test_a_model_of_several_languages_needs_one(folder: Path, tmp_path: Path) -> None:
    words = Subword.train(["the cat sat on the mat"], "bpe", 290, "x", ["<2de>", "<2nl>"])
    codec = TextCodec("mul", "mul", words, words, is_shared=True)
    codec = codec.with_directions(["en-de", "en-nl"], has_source_symbols=False)
    write_tiny_model(tmp_path / "several", codec, tie_embeddings=True, fields={"update": 3})
    write_lines(tmp_path / "text", ["the cat sat", "the mat", "a cat"] * 40)
    text = ("--source", tmp_path / "text", "--reference", tmp_path / "text")
    command = ("calibrate", tmp_path / "several", *text, "--threads", "1")
    refused(nmtkit(*command, folder=folder), 2, "target_lang missing several; --target-lang de nl")
    done = nmtkit(*command, "--target-lang", "nl", folder=folder)
    assert done.returncode == 0, done.stderr
    line = json.dumps({"source": "the cat", "target_lang": "de"})
    done = nmtkit(
        "translate", tmp_path / "several", "--quality", "--target-lang", "nl",
        "--input-format", "json", "--output-format", "json", folder=folder, stdin=line.encode(),
    )  # fmt: skip
    assert "quality" not in json.loads(done.stdout)


def test_too_few_lines_and_other_targets_are_refused(folder: Path, tmp_path: Path) -> None:
    codec = parser_codec()
    write_tiny_model(tmp_path / "parser", codec, fields={"update": 3})
    for suffix in ("en", "de"):
        write_lines(tmp_path / f"few.{suffix}", ["a"] * 99)
    few = ("--source", tmp_path / "few.en", "--reference", tmp_path / "few.de")
    refused(nmtkit("calibrate", "other", *few, folder=folder), 3, "99 lines; 100")
    done = nmtkit("calibrate", tmp_path / "parser", *few, folder=folder)
    refused(done, 2, f"{tmp_path}/parser trees; translates")
    done = nmtkit("translate", tmp_path / "parser", "--quality", folder=folder)
    refused(done, 2, f"{tmp_path}/parser trees; --quality")
    write_lines(tmp_path / "none.en", ["\u200b"] * NUM_LINES)
    write_lines(tmp_path / "wrong.de", ["9"] * NUM_LINES)
    none = ("--source", tmp_path / "none.en", "--reference", tmp_path / "wrong.de")
    done = nmtkit("calibrate", "other", *none, folder=folder)
    refused(done, 3, "chrF 0.00; lines")
    assert not (folder / "other" / "calibration.json").exists()
