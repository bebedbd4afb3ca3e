"""Conversions and the real libraries: NMTKIT_PEER_PYTHON is an interpreter that has both.

It needs ctranslate2, transformers and the dependencies of nmtkit, and may be of another
environment. Models have random weights, so that the smallest difference shows.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nmtkit.interop.parity import TOLERANCE
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import one_line
from tests.conversions import LINES, separate_codec, shared_codec, write_random_model
from tests.integration.interop_peer import LANGUAGE

PEER = os.environ.get("NMTKIT_PEER_PYTHON", "")
DEADLINE_S = 120
MAX_LENGTH_OFFSET = 12
SOURCES = (*LINES, "the the the", "cats", "a dog on a mat, a cat on a dog", "zebra \u2603 7")

pytestmark = pytest.mark.skipif(
    not PEER,
    reason="NMTKIT_PEER_PYTHON names no interpreter that has ctranslate2 and transformers",
)

SETTINGS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "silu, output bias": {"activation": "silu", "output_bias": True},
    "untied": {"tie_embeddings": False},
}
CTRANSLATE2_SETTINGS = {
    **SETTINGS,
    "pre-norm": {"norm": "pre", "norm_epsilon": 1e-3},
    "learned positions": {"positions": "learned", "max_positions": 64},
}


def run(python: str, *arguments: object, lines: Sequence[str] = ()) -> tuple[str, str]:
    """Run a module; returns standard output and standard error."""
    done = subprocess.run(
        [python, "-m", *map(str, arguments)],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=DEADLINE_S,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def ask_peer(action: str, *arguments: object, lines: Sequence[str] = ()) -> Any:
    output, _ = run(PEER, "tests.integration.interop_peer", action, *arguments, lines=lines)
    return json.loads(output)


def translate(model: Path) -> list[str]:
    """Translate by greedy search, with the interpreter of these tests."""
    options = f"--beam 1 --max-length-offset {MAX_LENGTH_OFFSET}".split()
    output, _ = run(sys.executable, "nmtkit_cli", "translate", model, *options, lines=SOURCES)
    return output.split("\n")[:-1]


def check_export(format: str, settings: dict[str, Any], codec: TextCodec, folder: Path) -> None:
    """Export a random model, and compare the library's greedy translations with ours."""
    write_random_model(folder / "own", codec, settings)
    _, message = run(PEER, "nmtkit_cli", "export", folder / "own", format, folder / "out")
    assert largest_difference(message) < TOLERANCE
    found = ask_peer(f"translate-{format}", folder / "out", MAX_LENGTH_OFFSET, lines=SOURCES)
    own = translate(folder / "own")
    assert len({*own}) > len(SOURCES) / 2
    assert [one_line(line) for line in found] == own


def largest_difference(message: str) -> float:
    (difference,) = re.findall(r"the largest difference is (\S+),", message)
    return float(difference)


@pytest.mark.parametrize("make_codec", [shared_codec, separate_codec])
@pytest.mark.parametrize("name", CTRANSLATE2_SETTINGS)
def test_ctranslate2_translates_an_exported_model_as_nmtkit_does(
    name: str, make_codec: Callable[[], TextCodec], tmp_path: Path
) -> None:
    check_export("ctranslate2", CTRANSLATE2_SETTINGS[name], make_codec(), tmp_path)


@pytest.mark.parametrize("make_codec", [shared_codec, separate_codec])
@pytest.mark.parametrize("name", SETTINGS)
def test_transformers_translates_an_exported_model_as_nmtkit_does(
    name: str, make_codec: Callable[[], TextCodec], tmp_path: Path
) -> None:
    check_export("marian", SETTINGS[name], make_codec(), tmp_path)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds a model made by transformers as `marian`, imported as `own`."""
    folder = tmp_path_factory.mktemp("imported")
    files = ask_peer("make-marian", folder / "marian")
    assert {"model.safetensors", "source.spm", "target.spm", "vocab.json"} <= {*files}
    _, message = run(PEER, "nmtkit_cli", "import", "marian", folder / "marian", folder / "own")
    assert largest_difference(message) < TOLERANCE
    return folder


def test_an_imported_model_translates_as_in_transformers(imported: Path) -> None:
    found = ask_peer("translate-marian", imported / "marian", MAX_LENGTH_OFFSET, lines=SOURCES)
    own = translate(imported / "own")
    assert len({*own}) > len(SOURCES) / 2
    assert [one_line(line) for line in found] == own


def test_an_imported_codec_segments_lines_as_the_tokenizer_does(imported: Path) -> None:
    lines = [*SOURCES, f"{LANGUAGE} the cat", f"the {LANGUAGE}", "", "  the \u00a0 cat "]
    found = ask_peer("encode-marian", imported / "marian", lines=lines)
    codec = TextCodec.load(imported / "own" / "codec")
    own = [[codec.source.piece(index) for index in codec.encode_source(line)] for line in lines]
    assert own == found


def test_an_imported_model_is_exported_to_ctranslate2(imported: Path) -> None:
    out = imported / "ctranslate2"
    _, message = run(PEER, "nmtkit_cli", "export", imported / "own", "ctranslate2", out)
    assert largest_difference(message) < TOLERANCE
