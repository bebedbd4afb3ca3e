"""`nmtkit export` and `nmtkit import`: convert a model to or from the format of another library.

The new folder appears only if both libraries give sample sentences the same scores.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import torch

from nmtkit.config.model import ModelConfig
from nmtkit.config.problems import Problem, raise_problems, shown, suggestion
from nmtkit.errors import ConfigError
from nmtkit.interop import ctranslate2, marian, marian_reading
from nmtkit.interop.parity import Peer, check_parity, parity_line, quantization_line
from nmtkit.storage.durable import check_is_free, new_folder
from nmtkit.storage.model_description import FORMAT, line_of_descent
from nmtkit.storage.model_folder import LoadedModel, read_model, write_model
from nmtkit.storage.run_folder import find_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.language_symbols import symbols_for

VERSION = 1


class Format(Protocol):
    """Interface of a module of this package that exports to the format of its name."""

    def unsupported(self, config: ModelConfig, codec: TextCodec) -> Iterator[Problem]:
        """Yield the properties of a model that the format does not support."""

    def write(self, loaded: LoadedModel, folder: Path) -> None:
        """Write a model that the format supports into an empty folder."""

    def open_peer(self, folder: Path, codec: TextCodec) -> Peer:
        """Load the written folder with the library of the format."""


FORMATS: dict[str, Format] = {"ctranslate2": ctranslate2, "marian": marian}
"""Export formats, by their names on the command line."""


def describe_exports(config: ModelConfig, codec: TextCodec) -> str:
    """Return the formats to which `export` can write a model, and what keeps it from others.

    Such as "exports to: ctranslate2; not to marian: norm (pre) must be post [model.norm]".
    """
    problems = {name: [*one.unsupported(config, codec)] for name, one in FORMATS.items()}
    possible = ", ".join(name for name, found in problems.items() if not found)
    others = [
        f"not to {name}: {', '.join(problem.text for problem in found)}"
        for name, found in problems.items()
        if found
    ]
    return "; ".join([f"exports to: {possible or 'no other library'}", *others])


def export(
    path: Path,
    format: str,
    out: Path,
    overwrite: bool,
    report: Callable[[str], None],
    quantization: str | None = None,
) -> None:
    """Write a model in another format; nothing is written if scores differ there.

    Args:
        path: a model folder, a run, or `best` or `last` of a run.
        format: a key of `FORMATS`.
        out: the folder to write.
        overwrite: replace a folder of the same format.
        report: takes lines: the differences of scores, and the folders.
        quantization: with ctranslate2, the type of the weights, such as int8; None = float32, in
            which scores are compared first.

    Raises:
        ConfigError: there is no such format, it does not support the model, its library is not
            installed, or `out` cannot be used.
        DamagedError: the model is damaged, or the library's scores differ from nmtkit's.
        ResourceError: `out` cannot be written.
    """
    if format not in FORMATS:
        raise ConfigError(f"no format {shown(format)}; {suggestion(format, FORMATS)} [FORMAT]")
    chosen, folder_format = FORMATS[format], f"nmtkit-export-{format}"
    check_is_free(out, folder_format, overwrite)
    folder = find_model(path)
    loaded = read_model(folder, torch.device("cpu"))
    raise_problems(
        [*chosen.unsupported(loaded.model.config, loaded.codec)],
        f"{path}: {format} does not support the model; train with other settings",
    )
    with new_folder(out, folder_format, VERSION, overwrite=overwrite) as staged:
        chosen.write(loaded, staged.path)
        parents = line_of_descent(folder, loaded.manifest, loaded.codec)
        staged.fields["provenance"] = {"parents": parents}
        peer = chosen.open_peer(staged.path, loaded.codec)
        lines = [parity_line(peer, check_parity(loaded, peer, out))]
        if quantization:
            ctranslate2.write(loaded, staged.path, quantization)
            quantized = ctranslate2.open_peer(staged.path, loaded.codec)
            lines.append(quantization_line(loaded, quantized, quantization))
    if loaded.model.aligning_attention.sees_target:
        lines.append(
            "alignments differ from nmtkit's, because other libraries do not read the whole target"
        )
    codec = loaded.codec
    if codec.num_marks:
        lines.append(
            "the vocabularies have marks; only nmtkit's search writes each mark of a source once"
        )
    if symbols := codec.symbols or [symbols_for(codec, "", one) for one in codec.target_langs]:
        lines.append(
            f"each source line has to begin with its language symbols, such as {symbols[0]}, as "
            "tokens of their own: the vocabulary has them, and the other library does not add them"
        )
    for line in lines:
        report(line)
    report(f"exported {path} to {out}")


def import_marian(folder: Path, out: Path, overwrite: bool, report: Callable[[str], None]) -> None:
    """Convert a folder of Hugging Face's Marian, such as an OPUS-MT model, to a model folder.

    Args:
        folder: contains config.json, model.safetensors, source.spm, target.spm, vocab.json.
        out: the folder to write.
        overwrite: replace an existing model folder.
        report: takes two lines: the largest difference of scores, and the folders.

    Raises:
        ConfigError: there is no such folder, nmtkit does not support the model, transformers is not
            installed, or `out` cannot be used.
        DamagedError: the folder is incomplete, or scores of transformers differ from nmtkit's.
        ResourceError: `out` cannot be written.
    """
    check_is_free(out, FORMAT, overwrite)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; check the path")
    loaded = marian_reading.read(folder)
    peer = marian.open_peer(folder, loaded.codec)
    difference = check_parity(loaded, peer, out)
    tensors = loaded.model.state_dict()
    write_model(out, tensors, loaded.recipe, loaded.codec, loaded.manifest, overwrite)
    report(parity_line(peer, difference))
    report(f"imported {folder} to {out}")
