"""The whole road, one command after another, on a tiny corpus; and signals to training."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmtkit.config.toml import dumps
from nmtkit.storage.checkpoint import STATE_FORMAT, STATE_VERSION
from nmtkit.storage.manifest import describe
from tests.commands import nmtkit_in_text
from tests.doubles import pretend_flash
from tests.messages import refused
from tests.tiny import TRAIN_LINES, VALID_LINES, tiny_corpus, tiny_dataset, tiny_train_recipe

COMMAND = [sys.executable, "-m", "nmtkit_cli"]
DEADLINE_S = 60


def nmtkit_of_its_own(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command as users do, who have no test to fork."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=DEADLINE_S,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a corpus, a recipe.toml, and a dataset in data."""
    root = tmp_path_factory.mktemp("commands")
    train, valid = tiny_corpus(root)
    recipe = dumps(tiny_train_recipe(max_updates=4, dropout=0.1))
    (root / "recipe.toml").write_text(recipe, encoding="utf-8")
    done = nmtkit_in_text(
        *f"preprocess -s en -t de --train {train} --valid {valid} --segmentation words".split(),
        *f"--out {root / 'data'} --workers 1".split(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return root


def train(folder: Path, run: str, *more: object) -> subprocess.CompletedProcess[str]:
    return nmtkit_in_text(*train_arguments(folder, run), *more)


def train_arguments(folder: Path, run: str) -> tuple[object, ...]:
    return "train", folder / "data", "--config", folder / "recipe.toml", "--out", folder / run


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    """Return the folder of a run that is finished."""
    done = train(folder, "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return folder / "run"


def test_a_training_state_of_other_fields_is_read_or_named(folder: Path, run: Path) -> None:
    """As of another version: its hashes fit."""
    state = folder / "other" / "checkpoints" / "00000004.state"
    for values, code in (({"later": 1}, 0), ({"update": "4"}, 4)):
        shutil.rmtree(folder / "other", ignore_errors=True)
        shutil.copytree(run, folder / "other")
        progress = json.loads((state / "state.json").read_bytes()) | values
        (state / "state.json").write_text(json.dumps(progress), "utf-8")
        (state / "manifest.json").unlink()
        (state / "manifest.json").write_bytes(describe(state, STATE_FORMAT, STATE_VERSION, {}))
        done = train(folder, "other", "--max-updates", 5)
        assert done.returncode == code, done.stderr
        if code:
            refused(done, code, f'{state.with_suffix("")} "update"; restore')


@pytest.mark.sampled(every=1)
def test_a_dataset_that_exists_is_not_replaced_unasked(folder: Path) -> None:
    before = (folder / "data" / "manifest.json").read_bytes()
    corpus = ("--train", folder / "train", "--valid", folder / "valid")
    done = nmtkit_in_text("preprocess", "-s", "en", "-t", "de", *corpus, "--out", folder / "data")
    refused(done, 2, f"{folder / 'data'}; --overwrite")
    assert (folder / "data" / "manifest.json").read_bytes() == before


@pytest.mark.sampled(every=1)
def test_from_text_to_a_score(folder: Path, run: Path) -> None:
    done = nmtkit_in_text("average-checkpoints", run, "--last", 3, "--out", folder / "model")
    assert done.returncode == 0, done.stderr
    text = "".join(f"{line}\n" for line in VALID_LINES)
    for command, model in (
        (nmtkit_in_text, "run"),
        (nmtkit_in_text, "run/last"),
        (nmtkit_in_text, "run/checkpoints/00000002"),
        (nmtkit_of_its_own, "model"),
    ):
        done = command("translate", folder / model, stdin=text)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("\n") == len(VALID_LINES)
    done = nmtkit_of_its_own(
        "score", "--reference", folder / "valid.de", "--json", stdin=done.stdout
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout).keys() == {"system", "BLEU"}


@pytest.mark.parametrize(
    ("window", "has_flash", "expected"),
    [(0, False, "padded"), (2, False, "windowed"), (2, True, "flash")],
)
def test_what_computes_attention_is_announced(
    window: int, has_flash: bool, expected: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_flash:
        pretend_flash(monkeypatch)
    done = train(folder, f"by-{expected}-{window}", "--window", window, "--max-updates", 1)
    assert done.returncode == 0, done.stderr
    assert f" attention={expected}\n" in done.stderr


def test_training_says_at_its_start_what_the_model_can_be_exported_to(folder: Path) -> None:
    for norm, limit in (("post", ""), ("pre", "norm (pre) must be post [model.norm], ")):
        done = train(folder, f"exports-{norm}", "--norm", norm, "--max-updates", 1)
        assert done.returncode == 0, done.stderr
        start, _, _ = done.stderr.partition("event=start")
        assert f"exports to: ctranslate2; not to marian: {limit}the source vocabulary" in start


def test_the_newest_checkpoints_are_averaged_and_compared_with_the_best(
    folder: Path, run: Path
) -> None:
    out = folder / "mean"
    done = nmtkit_in_text(*("average-checkpoints", run, "--data", folder / "data", "--out", out))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    said = [line.partition(" nll=")[0] for line in done.stderr.splitlines()]
    assert said[:-1] == [
        f"averaging 3 checkpoints of {run}: update 2, 3, 4",
        f"averaged 3 checkpoints into {out}",
        *("validating the mean", "mean:", "validating the checkpoint 4", "checkpoint 4:"),
    ]
    assert said[-1].startswith("by nll the ")
    same = nmtkit_in_text("average-checkpoints", run, "--last", 3, "--out", folder / "last")
    assert same.returncode == 0, same.stderr
    weights = [(one / "model.safetensors").read_bytes() for one in (out, folder / "last")]
    assert weights[0] == weights[1]


def test_the_checkpoints_that_validated_best_are_averaged(folder: Path, run: Path) -> None:
    out = folder / "best"
    done = nmtkit_in_text("average-checkpoints", run, "--best", 1, "--out", out)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert [one["update"] for one in manifest["sources"]] == [4]  # only the last was validated
    done = nmtkit_in_text("average-checkpoints", run, "--best", 2, "--out", folder / "two")
    refused(done, 2, f"{run} 1 2")


def test_nothing_is_written_with_the_dataset_of_another_run(
    folder: Path, run: Path, tmp_path: Path
) -> None:
    other, out = tiny_dataset(tmp_path, ["x y"] * 8), folder / "foreign"
    done = nmtkit_in_text("average-checkpoints", run, "--data", other, "--out", out)
    refused(done, 4, f"{other} vocabulary {run}")
    assert not out.exists()


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("number", "code", "name"), [(signal.SIGTERM, 75, "SIGTERM"), (signal.SIGINT, 130, "SIGINT")]
)
def test_a_signal_stops_training_after_saving_and_the_same_command_continues(
    folder: Path, number: signal.Signals, code: int, name: str
) -> None:
    run = folder / name
    arguments = train_arguments(folder, name)
    endless = [*COMMAND, *map(str, arguments), "--max-updates", "100000000"]
    with subprocess.Popen(endless, stderr=subprocess.PIPE, encoding="utf-8") as process:
        wait_for(run / "metrics.jsonl")
        refused = nmtkit_in_text(*arguments)
        process.send_signal(number)
        _, told = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == code, told
    *_, last = told.rstrip("\n").split("\n")
    error = "" if number is signal.SIGINT else "error: "
    assert last.startswith(f"nmtkit: {error}stopped by {name} after update ")
    assert last.endswith("which is saved; run the same command again to continue")
    assert refused.returncode == 2
    assert f"{process.pid} on {os.uname().nodename}" in refused.stderr
    update = int(last.split("after update ")[1].split(",")[0])
    done = nmtkit_in_text(*arguments, "--max-updates", update + 2)
    assert done.returncode == 0, done.stderr
    assert f"continuing after update {update}\n" in done.stderr


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not (path.exists() and path.stat().st_size > 0):
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.05)


def test_a_closed_pipe_ends_translation_quietly(run: Path) -> None:
    command = (sys.executable, "-m", "nmtkit_cli", "translate", str(run), "--chunk-lines", "1")
    # So many that `head` is gone long before the last of them is answered.
    lines = "".join(f"{line}\n" for line in TRAIN_LINES * 400)
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -n 1; exit ${PIPESTATUS[0]}', "bash", *command],
        input=lines.encode(),
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 141
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


def test_settings_of_another_run_are_refused_by_name(folder: Path, run: Path) -> None:
    done = train(folder, run.name, "--heads", "4")
    refused(done, 2, "heads 2 4")
    assert done.stderr.count("error:") == 1
