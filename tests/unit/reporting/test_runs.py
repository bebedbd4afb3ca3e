import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.reporting.runs import read_runs, signatures
from nmtkit.storage.manifest import load
from tests.messages import refuses
from tests.unit.reporting.builders import SIGNATURE, run_of, validated, validation, write_run

FROZEN = Path("tests/golden/formats/run")


def test_a_run_is_read_from_its_folder() -> None:
    (run,) = read_runs([FROZEN])
    manifest = load(FROZEN / "checkpoints" / "00000600")
    assert run.name == "run"
    assert run.recipe.training.max_updates == 600
    assert [record.update for record in run.training] == list(range(1, 601))
    assert [record.update for record in run.validations] == [300, 600]
    assert (run.num_parameters, run.codec) == (manifest["parameters"], manifest["codec"])
    assert run.languages == "en-de"
    assert run.operations > 0


def test_the_newest_checkpoint_says_what_was_trained(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", run_of())
    for update, parameters in ((99_999_999, 1), (100_000_000, 2), (9, 3)):
        folder = path / "checkpoints" / f"{update:08d}"
        folder.mkdir(parents=True)
        provenance = {
            "dataset": "cde",
            "languages": "en-fr",
            "validation_text": "fff",
            "validation_pairs": 9,
        }
        manifest = json.dumps({"parameters": parameters, "codec": "abc", "provenance": provenance})
        (folder / "manifest.json").write_text(manifest)
        folder.with_name(folder.name + ".state").mkdir()
        (folder.with_name(folder.name + ".state") / "manifest.json").write_text("{}")
    (run,) = read_runs([path])
    assert (run.num_parameters, run.codec, run.dataset) == (2, "abc", "cde")
    assert (run.languages, run.validation_text, run.validation_pairs) == ("en-fr", "fff", 9)


def test_a_run_without_checkpoints_is_read_as_well(tmp_path: Path) -> None:
    written = run_of(validations=validated([3.0, 2.0], [None, 30.0]))
    (read,) = read_runs([write_run(tmp_path / "run", written)])
    assert read == replace(
        written,
        num_parameters=None,
        codec=None,
        dataset=None,
        languages=None,
        validation_text=None,
        validation_pairs=None,
    )


def test_a_run_is_named_by_its_folder_and_by_more_of_its_path_if_ambiguous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [Path("a/run"), Path("b/run"), Path("c/other")]
    for path in paths:
        write_run(path, run_of())
    assert [run.name for run in read_runs(paths)] == ["a/run", "b/run", "other"]
    assert [run.name for run in read_runs(paths[1:])] == ["run", "other"]
    paths = [tmp_path / "x/a/run", tmp_path / "y/a/run", tmp_path / "a/run"]
    for path in paths[:2]:
        write_run(path, run_of())
    assert [run.name for run in read_runs(paths[:2])] == ["x/a/run", "y/a/run"]
    names = [run.name for run in read_runs(paths)]
    assert names == ["x/a/run", "y/a/run", f"{tmp_path.name}/a/run"]
    monkeypatch.chdir("a/run")
    assert [run.name for run in read_runs([Path()])] == ["run"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("two\nlines", r"two\nlines"),
        ("right\u202eleft", r"right\u202eleft"),
        (os.fsdecode(b"latin-\xe9"), r"latin-\udce9"),
        ("gr\u00fcn \u7d05", "gr\u00fcn \u7d05"),
    ],
)
def test_the_name_of_a_run_can_be_printed(folder: str, name: str, tmp_path: Path) -> None:
    (run,) = read_runs([write_run(tmp_path / folder, run_of())])
    assert run.name == name


def test_the_best_validation_is_the_first_of_equals_by_nll_or_bleu() -> None:
    run = run_of(validations=validated([3.0, 2.0, math.inf, 2.0], [None, 9.0, 30.0, 30.0]))
    assert (run.best("nll"), run.best("bleu")) == (run.validations[1], run.validations[2])
    assert run_of().best("nll") is None
    assert run_of(validations=[validation(100, 3.0)]).best("bleu") is None


def test_each_signature_is_listed_once() -> None:
    run = run_of(validations=validated([3.0, 2.0, 1.0], [9.0, None, 9.0]))
    other = replace(run, validations=[replace(run.validations[0], signatures={"bleu": "else\x1b"})])
    assert signatures([run, run], "bleu") == [SIGNATURE]
    assert signatures([run, other], "bleu") == [SIGNATURE, r"else\x1b"]


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with refuses(ConfigError, "none"):
        read_runs([tmp_path / "none"])
    with refuses(ConfigError, f"{tmp_path} config.toml; --out nmtkit train"):
        read_runs([tmp_path])


def test_an_impossible_path_is_refused(tmp_path: Path) -> None:
    with refuses(ConfigError, "x" * 300):
        read_runs([tmp_path / ("x" * 300)])


def test_a_checkpoint_is_answered_with_its_run() -> None:
    path = FROZEN / "checkpoints/00000600"
    with refuses(ConfigError, f"00000600; {FROZEN}"):
        read_runs([path])


def test_a_run_below_a_folder_named_checkpoints_is_read(tmp_path: Path) -> None:
    path = write_run(tmp_path / "checkpoints" / "run", run_of())
    (found,) = read_runs([path])
    assert found.name == "run"


def test_a_run_without_records_is_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", replace(run_of(), training=[]))
    with refuses(ConfigError, "metrics.jsonl; nmtkit train --log-every"):
        read_runs([path])


def test_a_run_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", run_of())
    with refuses(ConfigError, "run 2"):
        read_runs([path, tmp_path / "run" / ".." / "run"])


def test_damage_is_reported_with_file_and_line(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", run_of())
    with (path / "metrics.jsonl").open("a") as stream:
        stream.write("zzz\n")
    with refuses(DamagedError, "metrics.jsonl:12"):
        read_runs([path])
    (path / "metrics.jsonl").unlink()
    (path / "config.toml").write_bytes(b"[model]\nhead = \xff\n")
    with refuses(ConfigError, "config.toml TOML"):
        read_runs([path])
    (path / "config.toml").write_text("[model]\nhead = 4\n")
    with refuses(ConfigError, "config.toml head"):
        read_runs([path])


def test_a_damaged_manifest_is_reported(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", run_of())
    (path / "checkpoints/00000100").mkdir(parents=True)
    (path / "checkpoints/00000100/manifest.json").write_text("{")
    with refuses(DamagedError, "00000100/manifest.json"):
        read_runs([path])
