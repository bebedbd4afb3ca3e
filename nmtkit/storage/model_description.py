"""The description of a model folder: everything in it except the parameters.

A module without torch: `nmtkit preprocess` reads the codec of a model here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import loads, read_text
from nmtkit.errors import RESTORE, ConfigError, DamagedError
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.manifest import MANIFEST, missing_file_error, verify_files
from nmtkit.storage.reading import check_is_file
from nmtkit.text.codec import TextCodec

FORMAT = "nmtkit-model"
VERSION = 1
TENSORS = "model.safetensors"
CONFIG = "config.toml"
CODEC = "codec"


@dataclass(frozen=True)
class Description:
    """The content of a model folder except the parameters."""

    manifest: dict[str, Any]
    recipe: TrainRecipe
    codec: TextCodec


def describe_model(folder: Path) -> Description:
    """Return the content of a model folder except the parameters, after checking all files.

    Raises:
        DamagedError: it is not a model folder, it is damaged, or its version is newer.
    """
    if folder.is_dir() and not (folder / MANIFEST).exists():
        raise DamagedError(
            f"{folder}: is not an nmtkit model, it has no {MANIFEST}; give the folder of a model, "
            "a checkpoint or a run (pickled weights, such as *.pt and *.bin, are not read)"
        )
    manifest = read_manifest(folder, FORMAT, VERSION)
    verify_files(folder, manifest)
    config_path = folder / CONFIG
    try:
        check_is_file(config_path)
        recipe = loads(read_text(config_path), TrainRecipe, str(config_path))
    except FileNotFoundError:
        raise missing_file_error(config_path) from None
    except ConfigError as error:
        raise DamagedError(f"{error}; {RESTORE} with this version of nmtkit") from error
    return Description(manifest, recipe, TextCodec.load(folder / CODEC))
