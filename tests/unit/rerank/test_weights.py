import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError
from nmtkit.rerank.weights import MAX_CHARACTERS, dump_weights, read_weights
from tests.messages import refuses

HEAD = 'format = "nmtkit-rerank-weights"\nversion = 1\n'
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
WEIGHTS = st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), min_size=1)


@given(WEIGHTS)
def test_weights_are_read_as_they_were_written(weights: dict[str, float]) -> None:
    document = tomllib.loads(dump_weights(weights))
    assert document == {"format": "nmtkit-rerank-weights", "version": 1, "weights": weights}


def test_weights_have_the_order_of_the_features(tmp_path: Path) -> None:
    path = tmp_path / "weights.toml"
    path.write_text(HEAD + '[weights]\nlength = 1\n"forced:a b/" = -0.5\n', "utf-8")
    weights = read_weights(path, ["forced:a b/", "length"])
    assert list(weights.items()) == [("forced:a b/", -0.5), ("length", 1.0)]


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (b"\xff", "UTF-8; --tune"),
        (b"weights", "TOML"),
        (b"[" * 60_000, "TOML"),
        (b"#" * (MAX_CHARACTERS + 1), "65,536; --tune"),
        (b"[weights]\nmodel = 1", "format nmtkit-rerank-weights; --tune"),
        (b'format = "nmtkit-rerank-weights"', "version; --tune"),
        (HEAD.replace("1", "true").encode(), "version; --tune"),
        (HEAD.replace("1", "2").encode(), "version 2 1"),
        (HEAD.encode(), "[weights]; --tune"),
        (f"{HEAD}weights = 1".encode(), "[weights]; --tune"),
        (f"{HEAD}[weights]\nmodel = nan".encode(), "weight model"),
        (f"{HEAD}[weights]\nmodel = {10**400}".encode(), "weight model"),
        (f"{HEAD}[weights]\nmodel.a = 1".encode(), "weight model"),
        (f"{HEAD}[weights]\nmodel = false".encode(), "weight model"),
        (f"{HEAD}[weights]\nmodel = 1\nsize = 2\n".encode(), "weight length; size --features"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_it(
    tmp_path: Path, content: bytes, keys: str
) -> None:
    path = tmp_path / "weights.toml"
    path.write_bytes(content)
    with refuses(ConfigError, f"{path} {keys}"):
        read_weights(path, ["model", "length"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with refuses(ConfigError, "none; --weights"):
        read_weights(tmp_path / "none", ["model"])
