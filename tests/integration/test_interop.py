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
import torch

from nmtkit.config.presets import PRESETS
from nmtkit.data.binary import Dataset
from nmtkit.interop.parity import TOLERANCE
from nmtkit.storage.run_folder import find_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import one_line
from tests.conversions import LINES, separate_codec, shared_codec, write_random_model
from tests.integration.interop_peer import LANGUAGE
from tests.snapshots import read_tensors
from tests.training import logged

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
    "squared ReLU": {"activation": "squared-relu"},
}
CTRANSLATE2_SETTINGS = {
    **SETTINGS,
    "pre-norm": {"norm": "pre", "norm_epsilon": 1e-3},
    "SwiGLU": {"activation": "swiglu"},
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


def translate(model: Path, sources: Sequence[str] = SOURCES) -> list[str]:
    """Translate by greedy search, with the interpreter of these tests."""
    options = f"--beam 1 --max-length-offset {MAX_LENGTH_OFFSET}".split()
    output, _ = run(sys.executable, "nmtkit_cli", "translate", model, *options, lines=sources)
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


@pytest.mark.parametrize(("name", "limit"), [("int8", 0.5), ("float16", 0.05)])
def test_ctranslate2_reads_a_quantised_model_and_its_cost_is_reported(
    name: str, limit: float, tmp_path: Path
) -> None:
    write_random_model(tmp_path / "own", shared_codec(), {})
    arguments = ("export", tmp_path / "own", "ctranslate2", tmp_path / "out")
    _, message = run(PEER, "nmtkit_cli", *arguments, "--quantization", name)
    assert largest_difference(message) < TOLERANCE  # before weights are quantised
    (average,) = re.findall(rf"{name}: .* differ by (\S+) on average", message)
    assert 0 < float(average) < limit
    found = ask_peer("translate-ctranslate2", tmp_path / "out", MAX_LENGTH_OFFSET, lines=SOURCES)
    assert len(found) == len(SOURCES)


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
    files = ask_peer("make-marian", folder / "marian", "swish", "shared")
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


# ------------------------------------------------------------- import, preprocess, train, export


DOMAIN = tuple(f"{first} and {second}" for first in LINES for second in LINES)
"""Source lines of a text to adapt a model to; the target has the same in capitals."""

ADAPTED = "--preset fine-tune --learning-rate 0.003 --update-tokens 60 --warmup-updates 4"
"""A rate and updates that change the translations of a random model in seconds."""


@pytest.mark.parametrize("vocabularies", ["shared", "separate"])
@pytest.mark.parametrize("activation", ["relu", "swish"])
def test_an_imported_and_adapted_model_translates_equally_in_all_libraries(
    activation: str, vocabularies: str, tmp_path: Path
) -> None:
    parent = import_random(tmp_path, activation, vocabularies)
    adapted = adapt(parent, tmp_path)
    before, after = read_tensors(parent), read_tensors(adapted)
    assert before.keys() == after.keys()
    assert not [name for name, tensor in after.items() if torch.equal(tensor, before[name])]
    assert_exports_agree(adapted, tmp_path, but_not=translate(parent))


@pytest.mark.parametrize("vocabularies", ["shared", "separate"])
def test_an_adapted_model_with_appended_tokens_translates_equally_in_all_libraries(
    vocabularies: str, tmp_path: Path
) -> None:
    parent = import_random(tmp_path, "swish", vocabularies)
    whole = tmp_path / "whole"
    whole.write_text("zebra\nZEBRA\n", encoding="utf-8")
    adapted = adapt(
        parent,
        tmp_path,
        preprocess=("--whole-tokens", whole),
        train=("--update-vocabulary",),
        sources=[*DOMAIN, "a zebra sat on the mat"],
    )
    old, new = (TextCodec.load(find_model(model) / "codec") for model in (parent, adapted))
    assert (
        len(new.encode_source("zebra")) == len(["zebra", "</s>"]) < len(old.encode_source("zebra"))
    )
    assert (
        len(new.encode_target("ZEBRA")) == len(["ZEBRA", "</s>"]) < len(old.encode_target("ZEBRA"))
    )
    assert_exports_agree(adapted, tmp_path, but_not=translate(parent))


def test_a_multilingual_model_is_adapted_with_the_symbol_of_its_language(tmp_path: Path) -> None:
    parent = import_random(tmp_path, "swish", "shared")
    tags = (f"mine={LANGUAGE}", f"mine-dev={LANGUAGE}")
    adapted = adapt(
        parent,
        tmp_path,
        preprocess=[part for tag in tags for part in ("--tag", tmp_path / tag)],
    )
    dataset = Dataset.open(tmp_path / "data")
    assert dataset.valid_source == [f"{LANGUAGE} {line}" for line in LINES]
    tagged = [f"{LANGUAGE} {line}" for line in SOURCES]
    assert_exports_agree(adapted, tmp_path, but_not=translate(parent, tagged), sources=tagged)


def test_the_preset_adapts_an_imported_model(tmp_path: Path) -> None:
    """The example of the manual: peak reached, five validations, better than the parent."""
    parent = import_random(tmp_path, "swish", "shared")
    adapted = adapt(parent, tmp_path, sources=100 * DOMAIN, settings="--preset fine-tune")
    rates = [one["learning_rate"] for one in logged(adapted, "training")]
    assert max(rates) == rates[-1] == PRESETS["fine-tune"]["learning_rate"]
    losses = [one["nll"] for one in logged(adapted, "validation")]
    assert len(losses) == 1 + 5
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 0.5
    assert len(translate(adapted)) == len(SOURCES)


def import_random(folder: Path, activation: str, vocabularies: str) -> Path:
    """Import a random model that transformers writes; returns the model folder."""
    ask_peer("make-marian", folder / "opus", activation, vocabularies)
    run(PEER, "nmtkit_cli", "import", "marian", folder / "opus", folder / "parent")
    return folder / "parent"


def adapt(
    parent: Path,
    folder: Path,
    preprocess: Sequence[object] = (),
    train: Sequence[object] = (),
    sources: Sequence[str] = DOMAIN,
    settings: str = ADAPTED,
) -> Path:
    """Adapt an imported model to lines and their capitals; returns the run."""
    for name, lines in (("mine", sources), ("mine-dev", LINES)):
        for suffix, side in (("eng", lines), ("deu", [line.upper() for line in lines])):
            text = "".join(f"{line}\n" for line in side)
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    corpus = ("-s", "eng", "-t", "deu", "--train", folder / "mine", "--valid", folder / "mine-dev")
    codec = ("--vocabulary-of", parent, *preprocess)
    run(sys.executable, "nmtkit_cli", "preprocess", *corpus, *codec, "--out", folder / "data")
    origin = ("--from", parent, *settings.split(), *train)
    run(sys.executable, "nmtkit_cli", "train", folder / "data", "--out", folder / "run", *origin)
    return folder / "run"


def assert_exports_agree(
    model: Path, folder: Path, but_not: Sequence[str], sources: Sequence[str] = SOURCES
) -> list[str]:
    """Check that an adapted model translates equally after export, and not as its parent.

    Returns its translations.
    """
    own = translate(model, sources)
    assert own != [*but_not]
    for format in ("ctranslate2", "marian"):
        _, message = run(PEER, "nmtkit_cli", "export", model, format, folder / format)
        assert largest_difference(message) < TOLERANCE
        found = ask_peer(f"translate-{format}", folder / format, MAX_LENGTH_OFFSET, lines=sources)
        assert [one_line(line) for line in found] == own, format
    return own
