"""The description of a model folder: everything in it except the parameters.

A module without torch: `nmtkit preprocess` reads the codec of a model here, and `nmtkit info`
prints what a model is.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmtkit.config.model import AligningAttention, ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import loads, read_text
from nmtkit.errors import RESTORE, ConfigError, DamagedError
from nmtkit.storage.disk import check_is_file, disk_errors
from nmtkit.storage.durable import format_of, read_manifest, replace_file
from nmtkit.storage.manifest import (
    MANIFEST,
    Json,
    missing_file_error,
    read_sealed,
    seal,
    verify_files,
)
from nmtkit.storage.run_folder import CHECKPOINTS, RunFolder, find_model, is_run
from nmtkit.text.codec import TextCodec

FORMAT = "nmtkit-model"
VERSION = 1
TENSORS = "model.safetensors"
CONFIG = "config.toml"
CODEC = "codec"


@dataclass(frozen=True)
class AddedFile:
    """A file that is added to a model folder later.

    The manifest does not list it, so the model keeps its hash.

    Attributes:
        name: its name in the folder.
        format, version: as in a manifest.
        command: the command that writes it.
    """

    name: str
    format: str
    version: int
    command: str

    def write(self, folder: Path, fields: Mapping[str, Json]) -> None:
        """Write fields into a model folder, or replace those that are there.

        Raises:
            ResourceError: no space, no permission, a failing disk.
        """
        replace_file(folder / self.name, seal(self.format, self.version, fields))

    def read(self, folder: Path) -> dict[str, Any] | None:
        """Return what `write` stored; None if there is no file.

        Raises:
            DamagedError: the file is damaged, or of another version.
        """
        path = folder / self.name
        try:
            with disk_errors(path):
                content = read_sealed(path, self.format, self.version)
        except FileNotFoundError:
            return None
        if content is None:
            raise self.damaged(folder)
        return content

    def damaged(self, folder: Path) -> DamagedError:
        """Return the error of a damaged file."""
        return DamagedError(
            f"{folder / self.name}: damaged; delete it, or run `{self.command}` again"
        )


ALIGNING_ATTENTION = AddedFile(
    "aligning_attention.json", "nmtkit-aligning-attention", 1, "nmtkit align --choose-layer"
)
CALIBRATION = AddedFile("calibration.json", "nmtkit-calibration", 1, "nmtkit calibrate")


@dataclass(frozen=True)
class Description:
    """The content of a model folder except the parameters."""

    manifest: dict[str, Any]
    recipe: TrainRecipe
    codec: TextCodec


def describe_model(folder: Path) -> Description:
    """Return the content of a model folder except the parameters, after checking all files.

    Raises:
        DamagedError: it is not a model folder, it is damaged, or of another version.
    """
    manifest = _read_manifest(folder)
    verify_files(folder, manifest)
    return Description(manifest, _read_recipe(folder), TextCodec.load(folder / CODEC))


def _read_manifest(folder: Path) -> dict[str, Any]:
    if folder.is_dir() and not (folder / MANIFEST).exists():
        raise DamagedError(
            f"{folder}: is not an nmtkit model, it has no {MANIFEST}; give the folder of a model, "
            "a checkpoint or a run (pickled weights, such as *.pt and *.bin, are not read)"
        )
    found = format_of(folder)
    if found not in (None, FORMAT):
        raise DamagedError(
            f"{folder}: is of format {found!r}, not a model; give a model folder, a checkpoint or "
            "a run"
        )
    return read_manifest(folder, FORMAT, VERSION)


def _read_recipe(folder: Path) -> TrainRecipe:
    path = folder / CONFIG
    try:
        check_is_file(path)
        return loads(read_text(path), TrainRecipe, str(path))
    except FileNotFoundError:
        raise missing_file_error(path) from None
    except ConfigError as error:
        raise DamagedError(f"{error}; {RESTORE} with this version of nmtkit") from error


def shape_from(parent: Path, run_dir: Path | None) -> ModelConfig:
    """Return the [model] settings of a run that begins with a model; hashes are not checked.

    Args:
        parent: the model; it is not needed any more if the run has a checkpoint.
        run_dir: the folder of the run, which need not exist; None = a new run.

    Raises:
        DamagedError: a model or the run's configuration is missing or damaged.
        ConfigError: the run's configuration is not a recipe of `nmtkit train`.
    """
    if run_dir is not None and is_run(run_dir) and RunFolder(run_dir).newest_model() is not None:
        with suppress(FileNotFoundError):
            return RunFolder(run_dir).read_recipe().model
    folder = find_model(parent)
    _read_manifest(folder)
    return _read_recipe(folder).model


def weights_of(path: Path) -> list[str]:
    """Return the hashes of the weights of a model, or of a run's checkpoints, the best one first.

    A model that is missing or damaged is left out.
    """
    folders = RunFolder(path).model_dirs() if is_run(path) else []
    found = []
    with suppress(DamagedError):
        folders = [find_model(path), *folders]
    for folder in folders:
        with suppress(DamagedError):
            manifest = read_manifest(folder, FORMAT, VERSION)
            found.append(str(identify(folder, manifest)["sha256"]))
    return found


def identify(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Json]:
    """Return the name of a model folder, its update, and the hash of its weights.

    A checkpoint has the name of its run.

    Raises:
        DamagedError: the manifest has no weights.
    """
    if TENSORS not in manifest["files"]:
        raise DamagedError(f"{folder / TENSORS}: missing; {RESTORE}")
    named = folder.absolute()
    return {
        "name": named.parent.parent.name if named.parent.name == CHECKPOINTS else named.name,
        "update": manifest.get("update"),
        "sha256": manifest["files"][TENSORS]["sha256"],
    }


def hashes_of(folder: Path) -> dict[str, Json]:
    """Return the hashes of a model's weights and of its codec, which determine what it computes.

    Raises:
        DamagedError: it is not a model folder, it is damaged, or of another version.
    """
    manifest = _read_manifest(folder)
    return {"weights": identify(folder, manifest)["sha256"], "codec": manifest.get("codec")}


def line_of_descent(
    folder: Path, manifest: Mapping[str, Any], codec: TextCodec
) -> list[dict[str, Json]]:
    """Return a model and its ancestors, nearest first: the `parents` of models made from it.

    Args:
        folder: the model folder.
        manifest, codec: its manifest and codec.

    Raises:
        DamagedError: the manifest has no weights.
    """
    languages = f"{codec.source_lang}-{codec.target_lang}"
    return [{**identify(folder, manifest), "languages": languages}, *ancestors(manifest)]


def ancestors(manifest: Mapping[str, Any]) -> list[dict[str, Json]]:
    """Return the models from which a model comes, nearest first; [] = trained from random weights.

    The ancestor of an imported model is the folder of the other library, with its format as
    `imported`.
    """
    provenance = manifest.get("provenance", {})
    if "imported" in provenance:
        names = ("imported", "name", "sha256", "languages")
        found = {name: provenance[name] for name in names if name in provenance}
        return [{"update": None, "languages": None, **found}]
    return [*provenance.get("parents", [])]


def store_aligning_attention(folder: Path, attention: AligningAttention) -> None:
    """Store the attention that aligns best, the mean of heads of a layer.

    Raises:
        ResourceError: no space, no permission, a failing disk.
    """
    fields: dict[str, Json] = {"layer": attention.layer + 1, "is_shifted": attention.is_shifted}
    ALIGNING_ATTENTION.write(folder, fields)


def stored_aligning_attention(folder: Path, num_layers: int) -> AligningAttention | None:
    """Return what `store_aligning_attention` stored; None if there is nothing.

    Args:
        folder: the model folder.
        num_layers: layers of its decoder.

    Raises:
        DamagedError: the file is damaged, of another version, or names a layer that is not there.
    """
    fields = ALIGNING_ATTENTION.read(folder)
    if fields is None:
        return None
    try:
        found = AligningAttention(fields["layer"] - 1, None, fields["is_shifted"])
    except (KeyError, TypeError):
        raise ALIGNING_ATTENTION.damaged(folder) from None
    if not 0 <= found.layer < num_layers:
        raise ALIGNING_ATTENTION.damaged(folder)
    return found
