"""Who may import whom: from lower layers only, and torch only where tensors are the business.

docs/design.md has the layer of each folder; the files on another layer are listed here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source_tree import (
    PACKAGES,
    ROOT,
    Source,
    imported_modules,
    imports,
    sources,
)

ROW = re.compile(r"^\| (\d+) \| `([\w/]+)/` \|", re.M)
"""A row of the rooms in docs/design.md: layer and folder."""
FILES = {
    "nmtkit": {
        "errors": 0,
        "symbols": 0,
        "units": 0,
        "version": 0,
        "signals": 0,
        "packed": 1,
        "averaging": 7,
        "calibration": 10,
        "api": 10,
        "__init__": 11,
    },
    "nmtkit.storage": {
        "run_folder": 2,
        "model_description": 5,
        "model_folder": 6,
        "checkpoint": 6,
    },
    "nmtkit.runtime": {"standard_streams": 1, "workers": 1, "processor": 1, "environment": 1},
    "nmtkit.text": {"codec": 4, "language_symbols": 4},
    "nmtkit.parsing": {"well_formed": 5, "evalb.metric": 7},
    "nmtkit.spans": {
        "phrases": 5,
        "mark_search": 5,
        "required": 5,
        "keeper": 5,
        "markup_metric": 7,
        "terms_metric": 7,
    },
    "nmtkit.model": {"cost": 2},
    "nmtkit.decoding": {"constraints": 4, "answers": 4},
    "nmtkit.evaluation": {"texts": 6, "metric": 6, "summed_metric": 6},
}
"""The layers of files that are not on the layer of their room."""


@dataclass(frozen=True)
class Part:
    """A file may import from lower layers, and from its own layer inside its own room."""

    layer: int
    room: str


def rooms_of_the_design() -> dict[str, Part]:
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    rooms = {}
    for layer, folder in ROW.findall(page):
        room = ("" if folder in PACKAGES else "nmtkit.") + folder.replace("/", ".")
        rooms[room] = Part(int(layer), room)
    return rooms


ROOMS = rooms_of_the_design()
PARTS = ROOMS | {
    f"{room}.{name}": Part(layer, room)
    for room, files in FILES.items()
    for name, layer in files.items()
}
# Help, preprocess and score start without torch, which takes longer than they do.
MAY_IMPORT_TORCH = (
    "nmtkit.progress.tensorboard",
    "nmtkit.packed",
    "nmtkit.runtime.devices",
    "nmtkit.data.batch",
    "nmtkit.model",
    "nmtkit.parsing.well_formed",
    "nmtkit.spans.keeper",
    "nmtkit.spans.mark_search",
    "nmtkit.spans.phrases",
    "nmtkit.storage.model_folder",
    "nmtkit.storage.checkpoint",
    "nmtkit.averaging",
    "nmtkit.calibration",
    "nmtkit.decoding",
    "nmtkit.interop",
    "nmtkit.training",
    "nmtkit.reporting.attention",
)
WITHOUT_TORCH = (
    # Arithmetic on shapes, which reports and `nmtkit info` do as well.
    "nmtkit.model.cost",
    # Checks before models are loaded.
    "nmtkit.decoding.answers",
    "nmtkit.decoding.corpus",
    "nmtkit.decoding.formats",
    # What `nmtkit info` shows.
    "nmtkit.decoding.quality",
    # The loader's worker processes.
    "nmtkit.training.micro_batches",
    "nmtkit.training.text_hook",
    "nmtkit.training.updates",
)
# What the command line may load before it knows which command is wanted.
CHEAP_FOR_CLI = (
    "nmtkit.version",
    "nmtkit.config",
    "nmtkit.errors",
    "nmtkit.signals",
    "nmtkit.units",
    "nmtkit.runtime.standard_streams",
    "nmtkit_cli",
)
HEAVY = ("torch", "safetensors.torch", "sentencepiece", "sacrebleu", "numpy")


def is_within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def part(module: str) -> Part:
    """Return the part of a module: its own, or that of its room."""
    entry = "nmtkit.__init__" if module == "nmtkit" else module
    while entry not in PARTS:
        assert "." in entry, f"{module} is in no room of docs/design.md"
        entry = entry.rpartition(".")[0]
    return PARTS[entry]


def may_import_torch(module: str) -> bool:
    return is_within(module, *MAY_IMPORT_TORCH) and not is_within(module, *WITHOUT_TORCH)


def tree() -> tuple[Source, ...]:
    return sources(*PACKAGES)


def wrong_imports(source: Source, modules: set[str]) -> Iterator[str]:
    own = part(source.module)
    for one, name in imported_modules(source, modules):
        other = part(name)
        if other.layer >= own.layer and other != own:
            yield f"{source.path}:{one.line}: layer {own.layer} imports {name} of {other.layer}"


@cache
def module_names() -> set[str]:
    return {source.module for source in tree()}


def test_imports_point_to_lower_layers() -> None:
    found = [line for source in tree() for line in wrong_imports(source, module_names())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nmtkit/model/attention.py", "from nmtkit.data.batch import Batch"),
        ("nmtkit/decoding/search.py", "import nmtkit.evaluation.metrics"),
        ("nmtkit/errors.py", "from nmtkit.config import schema"),
        ("nmtkit/text/lines.py", "def f():\n    from nmtkit.training import run"),
        ("nmtkit/config/toml.py", "from nmtkit.packed import Packed"),
    ],
)
def test_an_import_upwards_or_sideways_is_found(path: str, text: str) -> None:
    assert list(wrong_imports(Source(path, text), module_names()))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nmtkit/model/attention.py", "from nmtkit.model.state import DecoderState"),
        ("nmtkit/training/run.py", "from nmtkit.decoding.search import beam_search"),
        ("nmtkit/config/toml.py", "from nmtkit import errors"),
    ],
)
def test_an_import_downwards_is_let_pass(path: str, text: str) -> None:
    assert not list(wrong_imports(Source(path, text), module_names()))


def test_every_room_and_file_that_has_a_layer_is_there() -> None:
    modules = {"nmtkit.__init__", *module_names()}
    assert set(PARTS) - set(ROOMS) <= modules
    for room in ROOMS:
        assert any(module.startswith(f"{room}.") for module in modules), room


def test_there_is_no_ring_of_imports() -> None:
    graph = {
        source.module: {name for _, name in imported_modules(source, module_names())}
        - {source.module}
        for source in tree()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def torch_imports(source: Source) -> list[str]:
    return [
        f"{source.path}:{one.line}: {one.name}"
        for one in imports(source)
        if is_within(one.name, "torch", "safetensors.torch")
    ]


def test_torch_is_imported_only_where_tensors_are_the_business() -> None:
    found = [
        line
        for source in tree()
        if not may_import_torch(source.module)
        for line in torch_imports(source)
    ]
    assert not found, "\n".join(found)


def test_an_import_of_torch_is_found() -> None:
    for text in ("import torch", "from torch import nn", "import torch.nn as nn"):
        assert torch_imports(Source("nmtkit/text/lines.py", text)), text
    text = "from safetensors.torch import save_file"
    assert torch_imports(Source("nmtkit/storage/durable.py", text))


def test_files_without_torch_do_not_load_it_through_others() -> None:
    carriers = {name for name in module_names() if may_import_torch(name)}
    found = [
        f"{source.path}:{one.line}: {name}"
        for source in tree()
        if source.module not in carriers
        for one, name in imported_modules(source, module_names())
        if one.is_at_top and name in carriers and not is_empty_package(name)
    ]
    assert not found, "\n".join(found)


def is_empty_package(name: str) -> bool:
    return any(source.module == name and not source.text.strip() for source in tree())


def test_every_package_begins_with_an_empty_file() -> None:
    found = [
        source.path
        for source in tree()
        if source.path.endswith("/__init__.py")
        and source.path != "nmtkit/__init__.py"
        and source.text.strip()
    ]
    assert not found


def test_the_command_line_loads_the_library_inside_functions_only() -> None:
    found = [
        f"{source.path}:{one.line}: {one.name}"
        for source in sources("nmtkit_cli")
        for one in imports(source)
        if one.is_at_top
        and is_within(one.name, "nmtkit", *HEAVY)
        and not is_within(one.name, *CHEAP_FOR_CLI)
    ]
    assert not found, "\n".join(found)
