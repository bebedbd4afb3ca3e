"""What `nmtkit info` prints of models and runs, against the files of their folders."""

import errno
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from nmtkit.config.model import AligningAttention
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import loads, read_text
from nmtkit.errors import ConfigError, DamagedError, ResourceError
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.reporting.saved_model import describe_folder
from nmtkit.storage.durable import new_folder
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import (
    TENSORS,
    describe_model,
    line_of_descent,
    store_aligning_attention,
)
from nmtkit.storage.model_folder import write_model
from nmtkit.storage.run_folder import RunFolder, find_model
from nmtkit.text.codec import TextCodec
from tests.folders import refusing
from tests.messages import refuses
from tests.snapshots import PROVENANCE, tiny_model_folder, tiny_run, tiny_tensors
from tests.tiny import tiny_codec
from tests.unit.reporting.builders import training, validation

GOLDEN = Path(__file__).parents[2] / "golden"
FROZEN = sorted(
    path
    for run in GOLDEN.glob("formats/run")
    for path in (run, run / "best", run / "last", *run.glob("checkpoints/*[0-9]"))
)
SHA256 = "0123456789abcdef" * 4


def described(path: Path) -> list[tuple[str, str]]:
    return [
        (line[:14].strip(), line[15:]) for line in describe_folder(path, check=False, as_json=False)
    ]


def value(path: Path, name: str) -> str:
    return dict(described(path))[name]


def values(path: Path, name: str) -> list[str]:
    """Return the value of a name and those of the lines below it that have none."""
    lines = described(path)
    start = [one for one, _ in lines].index(name)
    found = [lines[start][1]]
    for one, text in lines[start + 1 :]:
        if one:
            break
        found.append(text)
    return found


def as_json(path: Path) -> dict[str, Any]:
    (line,) = describe_folder(path, check=False, as_json=True)
    found: dict[str, Any] = json.loads(line, parse_constant=pytest.fail)
    return found


def model_with(
    path: Path, fields: dict[str, Json], codec: TextCodec | None = None, update: int = 7
) -> Path:
    """Write a model folder with further fields in its manifest."""
    fields = {"update": update, "provenance": PROVENANCE, **fields}
    write_model(path, tiny_tensors(1), TrainRecipe(), codec or tiny_codec(), fields, False)
    return path


def validated_run(path: Path, *records: Any, best: Sequence[int]) -> Path:
    run = tiny_run(path, 100, 200)
    for record in records:
        MetricsLog(run.metrics_path).append(record)
    run.point_best(best)
    return path


# ------------------------------------------------------------------------------ all versions


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_the_models_of_earlier_versions_are_described(path: Path) -> None:
    folder = find_model(path)
    lines, found = dict(described(path)), as_json(path)
    assert found["path"] == str(folder)
    digest = hashlib.sha256((folder / TENSORS).read_bytes()).hexdigest()
    assert lines["weights"] == f"sha256 {digest}"
    with safe_open(folder / TENSORS, framework="np") as file:
        sizes = [math.prod(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118
    assert lines["parameters"] == f"{sum(sizes):,}"
    assert lines["trained on"].startswith("dataset 58de3d60f484")
    assert lines["descends from"] == "no other model: trained from random weights"
    assert lines["checked"] == "every file matches its hash"
    assert ("run" in found) == ("checkpoints" in lines) == (path.name == "run")


# ------------------------------------------------------------------------------------- models


def test_a_model_in_lines(tmp_path: Path) -> None:
    folder = model_with(tmp_path / "model", {"provenance": {"dataset": SHA256}}, update=3000)
    lines = dict(described(folder))
    assert list(lines) == [
        "languages",
        "vocabulary",
        "shape",
        "parameters",
        "update",
        "trained on",
        "descends from",
        "written by",
        "weights",
        "on disk",
        "checked",
    ]
    assert lines["languages"] == "en to de"
    assert lines["vocabulary"] == f"{tiny_codec().source.size} entries, shared, words"
    assert lines["shape"] == (
        "6+6 layers, d_model 512, d_ff 2048, 8 heads, d_k 64, d_v 64, post-norm, "
        "sinusoidal positions, relu, tied embeddings"
    )
    assert lines["parameters"] == "8"  # `tied` is stored once
    assert lines["update"] == "3,000"
    assert lines["trained on"] == "dataset 0123456789ab"
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    size = sum(path.stat().st_size for path in paths)
    assert lines["on disk"] == f"{size} bytes in {len(paths)} files"


def test_json_is_the_content_of_the_files(tmp_path: Path) -> None:
    folder = model_with(tmp_path / "model", {})
    found = as_json(folder)
    assert list(found) == ["path", "manifest", "config", "codec"]
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert {**found["manifest"], "sha256": manifest["sha256"]} == manifest
    recipe = loads(read_text(folder / "config.toml"), TrainRecipe, "config.toml")
    assert found["config"] == json.loads(json.dumps(asdict(recipe)))
    assert found["codec"] == json.loads((folder / "codec" / "codec.json").read_text("utf-8"))


def test_the_layer_that_aligns_is_shown_if_it_was_chosen(tmp_path: Path) -> None:
    folder = model_with(tmp_path / "model", {})
    store_aligning_attention(folder, AligningAttention(3, None, True))
    expected = "decoder layer 4 of 6, by the step that reads a word, as align --choose-layer stored"
    assert value(folder, "alignments") == expected
    assert as_json(folder)["aligning_attention"] == {"layer": 4, "is_shifted": True}


# ------------------------------------------------------------------------------------ descent


def test_a_line_of_descent_has_a_line_per_ancestor(tmp_path: Path) -> None:
    fields: dict[str, Json] = {}
    expected: list[str] = []
    for number, name in enumerate(("first", "second", "third")):
        folder = model_with(tmp_path / name, fields, update=1000 * (number + 1))
        found = describe_model(folder)
        lineage = line_of_descent(folder, found.manifest, found.codec)
        digest = hashlib.sha256((folder / TENSORS).read_bytes()).hexdigest()
        expected.insert(0, f"en-de {name}, update {number + 1},000, sha256 {digest[:12]}")
        fields = {"provenance": {**PROVENANCE, "parents": lineage}}
    child = model_with(tmp_path / "child", fields)
    assert values(child, "descends from") == expected
    assert [one["name"] for one in as_json(child)["manifest"]["provenance"]["parents"]] == [
        "third",
        "second",
        "first",
    ]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [({}, ""), ({"languages": "en-de"}, "en-de ")],
    ids=["before languages", "today"],
)
def test_an_imported_model_descends_from_its_original(
    languages: dict[str, Json], expected: str, tmp_path: Path
) -> None:
    origin: dict[str, Json] = {"imported": "marian", "name": "opus-mt-en-de", "sha256": SHA256}
    folder = model_with(tmp_path / "model", {"provenance": {**origin, **languages}}, update=0)
    assert values(folder, "descends from") == [
        f"{expected}opus-mt-en-de (marian), sha256 0123456789ab"
    ]
    assert "trained on" not in dict(described(folder))


def test_an_averaged_model_names_its_sources(tmp_path: Path) -> None:
    sources: Json = [
        {"name": f"0000{update}", "update": update, "sha256": SHA256} for update in (1000, 2000)
    ]
    folder = model_with(tmp_path / "model", {"sources": sources})
    assert values(folder, "averaged from") == [
        "00001000, update 1,000, sha256 0123456789ab",
        "00002000, update 2,000, sha256 0123456789ab",
    ]


def test_control_characters_of_a_name_are_escaped(tmp_path: Path) -> None:
    parent = {"name": "a\nb\x1b", "sha256": SHA256, "update": None, "languages": "en-de"}
    folder = model_with(tmp_path / "model", {"provenance": {"parents": [parent]}})
    assert values(folder, "descends from") == ["en-de a\\nb\\x1b, sha256 0123456789ab"]


# --------------------------------------------------------------------------------------- runs


def test_a_run_is_described_with_its_best_model(tmp_path: Path) -> None:
    records = [
        training(100),
        validation(100, 2.5, 20.0),
        training(200),
        validation(200, 2.75, 18.0),
    ]
    run = validated_run(tmp_path / "run", *records, best=[100, 200])
    lines = dict(described(run))
    assert list(lines)[:5] == ["checkpoints", "best", "last", "training time", "model"]
    assert lines["checkpoints"] == "2, updates 100 to 200"
    assert lines["best"] == "update 100, nll 2.5000, bleu 20.00"
    assert lines["last"] == "update 200, nll 2.7500, bleu 18.00"
    assert lines["training time"] == "3m20s"
    assert lines["model"] == str(run / "checkpoints" / "00000100")
    assert described(run)[5:] == described(run / "best")
    assert value(run, "update") == "100"
    assert value(run / "last", "update") == "200"


def test_each_direction_of_the_best_checkpoint_has_a_line(tmp_path: Path) -> None:
    best = {
        "bleu": 20.0,
        "bleu:en-sv": 25.0,
        "bleu:en-nl": 15.0,
        "nll:en-sv": 2.0,
        "nll:en-nl": 3.0,
    }
    last = {"bleu": 21.0, "bleu:en-sv": 24.0, "nll:en-sv": 2.5, "nll:en-nl": 2.9}
    records = [
        replace(validation(100, 2.5), scores=best),
        replace(validation(200, 2.7), scores=last),
    ]
    lines = described(validated_run(tmp_path / "run", *records, best=[100]))
    assert lines[1:5] == [
        ("best", "update 100, nll 2.5000, bleu 20.00"),
        ("en-sv", "nll 2.0000, bleu 25.00"),
        ("en-nl", "nll 3.0000, bleu 15.00"),
        ("last", "update 200, nll 2.7000, bleu 21.00"),
    ]


def test_a_run_without_validations_is_described_with_its_last_model(tmp_path: Path) -> None:
    run = validated_run(tmp_path / "run", best=[])
    lines = dict(described(run))
    assert lines["best"] == "none"
    assert lines["last"] == "update 200, not validated"
    assert lines["model"] == str(run / "checkpoints" / "00000200")
    assert "training time" not in lines
    assert as_json(run)["run"] == {
        "checkpoints": [100, 200],
        "best": None,
        "last": {"update": 200},
        "elapsed_s": None,
    }


def test_json_of_a_run_has_the_validations_as_logged(tmp_path: Path) -> None:
    records = [training(200), validation(100, math.inf), validation(200, 2.75, 18.0)]
    run = validated_run(tmp_path / "run", *records, best=[100])
    found = as_json(run)
    assert list(found) == ["run", "path", "manifest", "config", "codec"]
    assert found["run"]["best"]["nll"] is None
    logged = json.loads((run / "metrics.jsonl").read_text("utf-8").split("\n")[2])
    assert found["run"]["last"] == {key: logged[key] for key in logged if key != "event"}
    assert found["run"]["elapsed_s"] == 200
    assert found["manifest"]["update"] == 100


# ------------------------------------------------------------------------------------- errors


def refuse(path: Path, keys: str | Path) -> None:
    with refuses(DamagedError, keys):
        describe_folder(path, check=False, as_json=False)


def test_a_run_without_checkpoints_is_one_line(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    run.write_recipe(TrainRecipe())
    refuse(run.path, f"{run.path}; nmtkit train")


def test_a_run_of_damaged_checkpoints_is_one_line(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 100)
    path = run.model_dir(100) / TENSORS
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    refuse(run.path, path)


@pytest.mark.parametrize("name", ["manifest.json", "config.toml", TENSORS, "codec/shared.txt"])
def test_a_damaged_file_of_a_model_is_named(name: str, tmp_path: Path) -> None:
    path = tiny_model_folder(tmp_path / "model", 1, tiny_tensors(1)) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    refuse(tmp_path / "model", path)


def test_a_damaged_manifest_of_another_format_is_named(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out", "nmtkit-export-marian", 1, overwrite=False):
        pass
    path = tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text("utf-8").replace('"files"', '"provenance": 1, "files"'))
    refuse(tmp_path / "out", path)


def test_a_folder_that_may_not_be_listed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(tmp_path / "run", 100)
    monkeypatch.setattr(Path, "iterdir", refusing(errno.EACCES))
    with refuses(ResourceError, "run"):
        describe_folder(run.path, check=False, as_json=False)


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 100)
    run.metrics_path.write_text("{}\n")
    refuse(run.path, "metrics.jsonl:1")


def test_a_missing_path_and_a_file_are_refused(tmp_path: Path) -> None:
    refuse(tmp_path / "none", tmp_path / "none")
    (tmp_path / "file").write_text("")
    refuse(tmp_path / "file", tmp_path / "file")


def test_a_folder_without_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    refuse(tmp_path, f"{tmp_path} manifest.json; nmtkit import")


def test_an_export_names_the_model_it_was_made_from(tmp_path: Path) -> None:
    parent: Json = {"name": "base", "sha256": SHA256, "update": 30, "languages": "en-de"}
    with new_folder(tmp_path / "out", "nmtkit-export-marian", 1, overwrite=False) as staged:
        staged.fields["provenance"] = {"parents": [parent]}
    refuse(tmp_path / "out", "out nmtkit-export-marian; en-de base update 30 0123456789ab")


def test_another_format_is_named(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 100)
    refuse(run.checkpoints_dir / "00000100.state", "00000100.state nmtkit-training-state")


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    model = tiny_model_folder(tmp_path / "model", 1, tiny_tensors(1))
    with refuses(ConfigError, "--check"):
        describe_folder(model, check=True, as_json=False)
    dataset = GOLDEN / "formats" / "dataset"
    with refuses(ConfigError, "--json"):
        describe_folder(dataset, check=False, as_json=True)


@pytest.mark.parametrize("check", [True, False])
def test_a_dataset_is_described(check: bool) -> None:
    lines = [*describe_folder(GOLDEN / "formats" / "weights" / "dataset", check, as_json=False)]
    assert "languages    en to de" in lines
    assert ("checked      every file matches its hash" in lines) == check
