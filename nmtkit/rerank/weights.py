"""Weights of features as TOML: `nmtkit-rerank-weights`; docs/formats.md describes the file."""

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmtkit.config.toml import read_text
from nmtkit.errors import ConfigError

FORMAT, VERSION = "nmtkit-rerank-weights", 1

MAX_CHARACTERS = 2**16
"""Longest file: `tomllib` needs quadratic time for keys with many dots."""

_HINT = "give a file that --tune wrote"


def dump_weights(weights: Mapping[str, float]) -> str:
    """Return weights by the names of features as TOML; each is read again as the same number."""
    lines = [f'format = "{FORMAT}"', f"version = {VERSION}", "", "[weights]"]
    # JSON escapes the same characters as TOML, except DEL.
    keys = [json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f") for name in weights]
    lines += [f"{key} = {weight!r}" for key, weight in zip(keys, weights.values(), strict=True)]
    return "".join(f"{line}\n" for line in lines)


def read_weights(path: Path, names: Sequence[str]) -> dict[str, float]:
    """Return the weights of a file, in the order of the features.

    Args:
        path: the file.
        names: names of the features; each has a weight, and there is no other.

    Raises:
        ConfigError: the file cannot be read, is not of the format, or has weights of other
            features.
    """
    weights = _read(path)
    problems = [f"no weight of {name}" for name in names if name not in weights]
    problems += [f"a weight of {name}, not a feature" for name in weights if name not in names]
    if problems:
        raise ConfigError(
            f"{path}: {'; '.join(problems)}; every feature of --features needs one weight"
        )
    return {name: weights[name] for name in names}


def _read(path: Path) -> dict[str, float]:
    document = _parse(path)
    if document.get("format") != FORMAT:
        raise ConfigError(f"{path}: no weights of features, format is not {FORMAT}; {_HINT}")
    version = document.get("version")
    if not (isinstance(version, int) and not isinstance(version, bool) and version > 0):
        raise ConfigError(f"{path}: version is not a positive number; {_HINT}")
    if version > VERSION:
        raise ConfigError(
            f"{path}: version is {version}, and this nmtkit reads up to {VERSION}; update nmtkit"
        )
    weights = document.get("weights")
    if not isinstance(weights, dict) or not weights:
        raise ConfigError(f"{path}: no table [weights]; {_HINT}")
    for name, weight in weights.items():
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not abs(weight) <= sys.float_info.max:  # NaN compares false
            raise ConfigError(
                f"{path}: the weight of {name} is not a finite number; quote the name of a feature "
                'and write a number, such as "length" = 0.5'
            )
    return {name: float(weight) for name, weight in weights.items()}


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 ({error.reason}); {_HINT}") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; check --weights") from error
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f"{path}: more than {MAX_CHARACTERS:,} characters; {_HINT}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}; correct the line") from None
