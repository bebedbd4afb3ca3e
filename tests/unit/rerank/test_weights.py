import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError
from nmtkit.rerank.weights import MAX_CHARACTERS, dump_weights, read_weights

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
    ("content", "message"),
    [
        (b"\xff", r"not UTF-8 \(invalid start byte\); give a file that --tune wrote"),
        (b"weights", "not valid TOML: .*; correct the line"),
        (b"[" * 60_000, "not valid TOML: .*; correct the line"),
        (b"#" * (MAX_CHARACTERS + 1), "more than 65,536 characters; give a file that --tune"),
        (b"[weights]\nmodel = 1", "no weights of features, format is not nmtkit-rerank-weights"),
        (b'format = "nmtkit-rerank-weights"', "version is not a positive number; give a file"),
        (HEAD.replace("1", "true").encode(), "version is not a positive number"),
        (HEAD.replace("1", "2").encode(), "version is 2, and this nmtkit reads up to 1; update"),
        (HEAD.encode(), r"no table \[weights\]; give a file that --tune wrote"),
        (f"{HEAD}weights = 1".encode(), r"no table \[weights\]"),
        (f"{HEAD}[weights]\nmodel = nan".encode(), "the weight of model is not a finite number; q"),
        (f"{HEAD}[weights]\nmodel = {10**400}".encode(), "the weight of model is not a finite num"),
        (f"{HEAD}[weights]\nmodel.a = 1".encode(), "the weight of model is not a finite number"),
        (f"{HEAD}[weights]\nmodel = false".encode(), "the weight of model is not a finite number"),
        (
            f"{HEAD}[weights]\nmodel = 1\nsize = 2\n".encode(),
            "no weight of length; a weight of size, not a feature; every feature of --features nee",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_it(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "weights.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^{path}: {message}"):
        read_weights(path, ["model", "length"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none: No such file or directory; check --weights$"):
        read_weights(tmp_path / "none", ["model"])
