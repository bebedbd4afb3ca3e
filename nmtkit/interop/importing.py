"""`nmtkit import`: another library's model as one of ours, compared with it before it appears."""

from collections.abc import Callable
from pathlib import Path

from nmtkit.interop import marian, marian_reading
from nmtkit.interop.parity import check_parity, parity_line
from nmtkit.storage.durable import check_is_free
from nmtkit.storage.model_folder import FORMAT, write_model


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
