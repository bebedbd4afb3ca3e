"""Import from Hugging Face's Marian; a model that nmtkit does not support is refused.

Tokens get new ids: `<unk>`, Marian's padding (with which its decoder begins) and `</s>` get the ids
of nmtkit's special symbols; the other tokens follow in order. The rows of embeddings and output
projection are reordered in the same way, so the rest of nmtkit needs no change.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmtkit.config.model import ModelConfig
from nmtkit.config.problems import Problem, raise_problems
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.interop.marian import (
    ACTIVATIONS,
    BIAS,
    CONFIG,
    NORM_EPSILON,
    TARGET_VOCABULARY,
    TENSORS,
    TOKENIZER,
    VOCABULARY,
    embedding_names,
    layer_names,
)
from nmtkit.interop.parity import SOURCE, TARGET
from nmtkit.model.embedding import sinusoids
from nmtkit.model.transformer import Transformer
from nmtkit.storage.disk import read_file
from nmtkit.storage.json_data import JsonError, decode_text
from nmtkit.storage.model_folder import (
    LoadedModel,
    load_tensors,
    size_problem,
    uninitialized_model,
)
from nmtkit.text.codec import TextCodec
from nmtkit.text.marian import UNKNOWN_LANGUAGES, MarianVocabulary

_ACTIVATIONS = {stored: own for own, stored in ACTIVATIONS.items()} | {"swish": "silu"}
SUPPORTED: dict[str, tuple[object, ...]] = {
    "model_type": ("marian",),
    "activation_function": tuple(_ACTIVATIONS),
    "scale_embedding": (True,),
    "static_position_embeddings": (True, None),
    "normalize_before": (False, None),
    "normalize_embedding": (False, None),
    "add_final_layer_norm": (False, None),
    "share_encoder_decoder_embeddings": (True, False, None),
    "tie_word_embeddings": (True, False, None),
}
"""Supported values in config.json; None = the key may be missing."""

_SIZES = {
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "model_size": "d_model",
    "feed_forward_size": "encoder_ffn_dim",
    "heads": "encoder_attention_heads",
}
_MOST_POSITIONS = 16_384
"""transformers computes a table of sinusoids of this many rows, whatever the weights are."""

_GUIDED_ALIGNMENT_WEIGHT = 0.1
"""Marian's default."""

_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")

_SPECIAL_SYMBOLS = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "</s>"}
"""Keys in tokenizer_config.json and their defaults, in the order of nmtkit's ids."""


DOWNLOAD_AGAIN = "download the folder again, or have transformers write it again"
"""The remedy for a damaged folder."""

_PICKLE = "pytorch_model.bin"
_POSITIONS = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
_SAME_POSITION = 1e-3
"""Tolerance: half precision changes the table by less, other kinds of sinusoids by more."""


@dataclass(frozen=True)
class _Entries:
    """The tokens of a vocabulary in the order of their new ids, and the old id of each."""

    pieces: list[str]
    old_ids: Tensor


@dataclass(frozen=True)
class _Folder:
    """The parsed files of a folder.

    Attributes:
        path: the folder.
        config, tokenizer: config.json and tokenizer_config.json.
        source, target: tokens of the two vocabularies.
    """

    path: Path
    config: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    source: _Entries
    target: _Entries

    @property
    def is_shared(self) -> bool:
        """Source and target share one vocabulary and one embedding."""
        return _is_on(self.config, "share_encoder_decoder_embeddings")

    @property
    def is_tied(self) -> bool:
        """The target embedding is the output projection."""
        return _is_on(self.config, "tie_word_embeddings")


def read(path: Path) -> LoadedModel:
    """Read a model in evaluation mode, on the CPU; its manifest names its origin.

    Raises:
        DamagedError: a file is missing or damaged, or files contradict each other.
        ConfigError: nmtkit does not support the model; all reasons are named.
    """
    config = _read_json(path / CONFIG)
    tokenizer = _read_json(path / TOKENIZER) if (path / TOKENIZER).exists() else {}
    raise_problems([*_unsupported(config, tokenizer)], f"{path}: cannot be imported")
    symbols = [_symbol(tokenizer, name) for name in _SPECIAL_SYMBOLS]
    source = _read_entries(path / VOCABULARY, symbols)
    is_one = not tokenizer.get("separate_vocabs")
    target = source if is_one else _read_entries(path / TARGET_VOCABULARY, symbols)
    folder = _Folder(path, config, tokenizer, source, target)
    _check_ids(folder)
    stored = _StoredTensors(path / TENSORS)
    bias = stored.take_bias(len(target.pieces))[target.old_ids]
    recipe, codec = _recipe(folder, bool(bias.any())), _codec(folder)
    stored.check_size(recipe.model, codec)
    model = uninitialized_model(recipe.model, codec).eval()
    parameters = _parameters(folder, model, stored)
    if model.output_bias is not None:
        parameters["output_bias"] = bias
    model.load_state_dict(parameters, assign=True)
    return LoadedModel(model, codec, recipe, {"update": 0, "provenance": _provenance(path, codec)})


def _unsupported(config: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the settings in config.json and tokenizer_config.json that are not supported."""
    for name, values in SUPPORTED.items():
        if config.get(name) not in values:
            wanted = (json.dumps(value) for value in values if value is not None)
            yield _problem(name, config.get(name), " or ".join(wanted))
    for name in ("ffn_dim", "attention_heads"):
        source, target = config.get(f"encoder_{name}"), config.get(f"decoder_{name}")
        if source != target:
            yield _problem(f"decoder_{name}", target, f"that of the encoder ({source})")
    start, padding = config.get("decoder_start_token_id"), config.get("pad_token_id")
    if start != padding:
        yield _problem("decoder_start_token_id", start, f"pad_token_id ({padding})")
    shares = _is_on(config, "share_encoder_decoder_embeddings")
    if shares and not _is_on(config, "tie_word_embeddings"):
        yield _problem("tie_word_embeddings", False, "true where embeddings are shared")
    if shares and tokenizer.get("separate_vocabs"):
        yield _problem("separate_vocabs", True, "false where embeddings are shared")
    yield from _unsupported_positions(config)
    if tokenizer.get("sp_model_kwargs"):
        yield _problem("sp_model_kwargs", tokenizer["sp_model_kwargs"], "empty")


def _unsupported_positions(config: Mapping[str, Any]) -> Iterator[Problem]:
    name = "max_position_embeddings"
    found = config.get(name)
    if found is not None and not (_is_integer(found) and 0 < found <= _MOST_POSITIONS):
        yield _problem(name, found, f"from 1 to {_MOST_POSITIONS}")


def _problem(name: str, found: object, wanted: str) -> Problem:
    return Problem((name,), f"{name} ({json.dumps(found)}) must be {wanted}")


def _is_on(config: Mapping[str, Any], name: str) -> bool:
    """Return whether a setting is on; it is by default."""
    return config.get(name) is not False


def _symbol(tokenizer: Mapping[str, Any], name: str) -> str:
    """Return the text of a special symbol, which may be stored with its properties."""
    found = tokenizer.get(name) or _SPECIAL_SYMBOLS[name]
    return str(found.get("content") if isinstance(found, dict) else found)


def _read_entries(path: Path, symbols: Sequence[str]) -> _Entries:
    """Read vocab.json and put the special symbols first."""
    ids = _read_json(path)
    if sorted(filter(_is_integer, ids.values())) != [*range(len(ids))]:
        raise DamagedError(
            f"{path}: does not number its entries from 0 to {len(ids) - 1}; {DOWNLOAD_AGAIN}"
        )
    missing = [symbol for symbol in symbols if symbol not in ids]
    if missing:
        raise ConfigError(
            f"{path}: cannot be imported: it has no {', '.join(missing)}; name the special symbols "
            f"in {TOKENIZER}"
        )
    others = sorted(ids.keys() - {*symbols}, key=ids.__getitem__)
    pieces = [*symbols, *others]
    return _Entries(pieces, torch.tensor([ids[piece] for piece in pieces]))


def _check_ids(folder: _Folder) -> None:
    """Check that config.json agrees with the vocabularies."""
    _, padding, end = folder.target.old_ids[: len(_SPECIAL_SYMBOLS)].tolist()
    expected = {
        "pad_token_id": padding,
        "eos_token_id": end,
        "vocab_size": len(folder.source.pieces),
        "decoder_vocab_size": len(folder.target.pieces),
    }
    for name, value in expected.items():
        found = folder.config.get(name)
        if found not in (None, value):  # null is the same as a missing key
            raise DamagedError(
                f"{folder.path / CONFIG}: {name} is {found}, by the vocabulary {value}; "
                f"{DOWNLOAD_AGAIN}"
            )


def _recipe(folder: _Folder, has_bias: bool) -> TrainRecipe:
    """Return the recipe of the model's shape; ConfigError if its sizes are invalid."""
    config = folder.config
    values: dict[str, Any] = {own: config.get(name) for own, name in _SIZES.items()}
    values |= {name: config.get(name, 0.0) for name in _DROPOUTS}
    values |= {
        "activation": _ACTIVATIONS[config["activation_function"]],
        "norm_epsilon": NORM_EPSILON,
        "tie_embeddings": folder.is_tied,
        "output_bias": has_bias,
        # OPUS-MT trains the first head of the last layer as an alignment, with Marian's default
        # weight; config.json does not say whether a model is of its kind `transformer-align`.
        "guided_alignment_weight": _GUIDED_ALIGNMENT_WEIGHT,
        "alignment_layer": config.get("decoder_layers"),
    }
    try:
        return build(TrainRecipe, values)
    except ConfigError as error:
        raise ConfigError(f"{folder.path / CONFIG}: cannot be imported: {error}") from error


def _codec(folder: _Folder) -> TextCodec:
    vocabularies = []
    for name, entries in ((SOURCE, folder.source), (TARGET, folder.target)):
        path = folder.path / name
        vocabularies.append(MarianVocabulary(_read_bytes(path), entries.pieces, str(path)))
    return TextCodec(
        source_lang=str(folder.tokenizer.get("source_lang") or UNKNOWN_LANGUAGES[0]),
        target_lang=str(folder.tokenizer.get("target_lang") or UNKNOWN_LANGUAGES[1]),
        source=vocabularies[0],
        target=vocabularies[1],
        is_shared=folder.is_shared,
    )


def _parameters(folder: _Folder, model: Transformer, stored: "_StoredTensors") -> dict[str, Tensor]:
    """Return the parameters under nmtkit's names, embedding rows in the order of the new ids."""
    expected = model.state_dict()
    parameters = {}
    for own, parts in layer_names(model.config):
        shape = expected[own].chunk(len(parts))[0].shape
        parameters[own] = torch.cat([stored.take([part], shape) for part in parts])
    by_names: dict[tuple[str, ...], Tensor] = {}
    for own, names in embedding_names(folder.is_shared, folder.is_tied).items():
        side = folder.source if own.startswith("source") else folder.target
        if names not in by_names:
            by_names[names] = stored.take(names, expected[own].shape)[side.old_ids]
        parameters[own] = by_names[names]
    stored.check_is_empty()
    return parameters


def _provenance(path: Path, codec: TextCodec) -> dict[str, str]:
    with (path / TENSORS).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {
        "imported": "marian",
        "name": path.absolute().name,
        "sha256": digest,
        "languages": f"{codec.source_lang}-{codec.target_lang}",
    }


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _StoredTensors:
    """The tensors of a file in float32; each is taken once, so that unused ones are found."""

    def __init__(self, path: Path) -> None:
        """Read the file; position tables in it, if any, must be Marian's sinusoids.

        Raises:
            DamagedError: the file is missing or damaged.
            ConfigError: it has other positions.
        """
        if not path.is_file():
            raise DamagedError(f"{path}: missing; {_how_to_get(path)}")
        self._path = path
        self._tensors = {name: tensor.float() for name, tensor in load_tensors(path).items()}
        for name in _POSITIONS:
            table = self._tensors.pop(name, None)
            if table is not None and not _are_sinusoids(table):
                raise ConfigError(
                    f"{path}: cannot be imported: {name} has other positions than Marian's "
                    "sinusoids; use a model with sinusoids"
                )

    def check_size(self, config: ModelConfig, codec: TextCodec) -> None:
        """Raise DamagedError if a model is much larger than the file."""
        problem = size_problem(config, codec, self._tensors)
        if problem:
            raise DamagedError(f"{self._path}: does not fit {CONFIG}: {problem}; {DOWNLOAD_AGAIN}")

    def take(self, names: Sequence[str], shape: torch.Size) -> Tensor:
        """Take the tensor that is stored under one or several of some names.

        Raises:
            DamagedError: none is stored, the shape is another, or the copies differ.
        """
        found = {name: self._tensors.pop(name) for name in names if name in self._tensors}
        if not found:
            raise DamagedError(f"{self._path}: {names[0]} is missing; {DOWNLOAD_AGAIN}")
        first, *others = found.values()
        if first.shape != shape or not all(torch.equal(first, other) for other in others):
            raise DamagedError(
                f"{self._path}: {' or '.join(found)} is not the one tensor of shape {tuple(shape)} "
                f"of {CONFIG}; {DOWNLOAD_AGAIN}"
            )
        return first

    def take_bias(self, size: int) -> Tensor:
        """Take the bias (V,) of the logits; zeros if none is stored."""
        self._tensors.setdefault(BIAS, torch.zeros(1, size))
        return self.take([BIAS], torch.Size([1, size])).flatten()

    def check_is_empty(self) -> None:
        """Raise ConfigError if a tensor was not taken."""
        if self._tensors:
            raise ConfigError(
                f"{self._path}: cannot be imported: nmtkit's model has no parameter for "
                f"{', '.join(sorted(self._tensors))}; use a model without it"
            )


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; DamagedError if the file is missing or not one."""
    try:
        return decode_text(dict[str, Any], _read_bytes(path))
    except JsonError as error:
        raise DamagedError(f"{path}: {error}; {DOWNLOAD_AGAIN}") from None


def _read_bytes(path: Path) -> bytes:
    """Read a file; DamagedError if it cannot be read."""
    try:
        return read_file(path)
    except DamagedError:
        raise
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}; {DOWNLOAD_AGAIN}") from error


def _are_sinusoids(table: Tensor) -> bool:
    if table.dim() != 2 or table.shape[1] % 2 or not table.numel():
        return False
    return torch.allclose(table, sinusoids(*table.shape), rtol=0.0, atol=_SAME_POSITION)


def _how_to_get(path: Path) -> str:
    """Return the remedy for a missing file of tensors."""
    if not (path.parent / _PICKLE).exists():
        return DOWNLOAD_AGAIN
    command = (
        "from transformers import MarianMTModel as M; "
        f'M.from_pretrained("{path.parent}").save_pretrained("{path.parent}")'
    )
    return (
        f"the weights in {_PICKLE} are a pickle, which is never read; if you trust it, run "
        f"`python -c '{command}'`"
    )
