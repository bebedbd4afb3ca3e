"""`nmtkit export` and `nmtkit import`: a model in the format of another library, or from it.

Both libraries score sample sentences before the new folder appears.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import torch

from nmtkit.config.problems import Problem, raise_problems
from nmtkit.interop import ctranslate2, marian, marian_reading
from nmtkit.interop.parity import Peer, check_parity, parity_line
from nmtkit.storage.durable import check_is_free, new_folder
from nmtkit.storage.model_folder import FORMAT, LoadedModel, write_model
from nmtkit.storage.model_path import load_model
from nmtkit.text.codec import TextCodec

VERSION = 1


class Format(Protocol):
    """What a module of this package offers for the format that it is named after."""

    def refusals(self, loaded: LoadedModel) -> Iterator[Problem]:
        """Yield what the format cannot hold of a model."""

    def write(self, loaded: LoadedModel, folder: Path) -> None:
        """Write a model that nothing is refused of into an empty folder."""

    def open_peer(self, folder: Path, codec: TextCodec) -> Peer:
        """Load what was written with the library that the format belongs to."""


FORMATS: dict[str, Format] = {"ctranslate2": ctranslate2, "marian": marian}
"""The formats by the names that the command line gives them."""


def export(
    path: Path, format: str, out: Path, overwrite: bool, report: Callable[[str], None]
) -> None:
    """Write a model in another format; nothing is written if it computes something else there.

    Args:
        path: a model folder, a run, or `best` or `last` of a run.
        format: ctranslate2 or marian.
        out: the folder to write.
        overwrite: replace a folder of the same format.
        report: takes lines that tell the largest difference, and what was written.

    Raises:
        ConfigError: the format cannot hold the model, its library is not installed, or `out` cannot
            be used.
        DamagedError: the model is damaged, or scores in the library differ from ours.
        ResourceError: `out` cannot be written.
    """
    chosen, folder_format = FORMATS[format], f"nmtkit-export-{format}"
    check_is_free(out, folder_format, overwrite)
    loaded = load_model(path, torch.device("cpu"))
    raise_problems(
        [*chosen.refusals(loaded)], f"{path}: cannot be held by {format}; train otherwise"
    )
    with new_folder(out, folder_format, VERSION, overwrite=overwrite) as staged:
        chosen.write(loaded, staged.path)
        peer = chosen.open_peer(staged.path, loaded.codec)
        difference = check_parity(loaded, peer, out)
    report(parity_line(peer, difference))
    report(f"exported {path} to {out}")


def import_marian(folder: Path, out: Path, overwrite: bool, report: Callable[[str], None]) -> None:
    """Write a model folder of a folder of Hugging Face's Marian, such as OPUS-MT publishes.

    Args:
        folder: config.json, model.safetensors, source.spm, target.spm, vocab.json.
        out: the folder to write.
        overwrite: replace a model folder that is there.
        report: takes lines that tell the largest difference, and what was written.

    Raises:
        ConfigError: the model needs what ours has not, transformers is not installed, or `out`
            cannot be used.
        DamagedError: the folder is not whole, or scores in transformers differ from ours.
        ResourceError: `out` cannot be written.
    """
    check_is_free(out, FORMAT, overwrite)
    loaded = marian_reading.read(folder)
    peer = marian.open_peer(folder, loaded.codec)
    difference = check_parity(loaded, peer, out)
    tensors = loaded.model.state_dict()
    write_model(out, tensors, loaded.recipe, loaded.codec, loaded.manifest, overwrite)
    report(parity_line(peer, difference))
    report(f"imported {folder} to {out}")
