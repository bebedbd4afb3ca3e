"""Who may import whom: from lower layers only, and torch only where tensors are the business."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source_tree import (
    PACKAGES,
    Source,
    imported_modules,
    imports,
    parse,
    sources,
)

# A file may import from lower layers, and from its own layer inside its own folder.
LAYERS: dict[str, int] = {
    "nmtkit.errors": 0,
    "nmtkit.version": 0,
    "nmtkit.signals": 0,
    "nmtkit.symbols": 0,
    "nmtkit.units": 0,
    "nmtkit.config": 1,
    "nmtkit.storage": 1,
    "nmtkit.storage.run_folder": 2,
    "nmtkit.progress": 2,
    "nmtkit.packed": 1,
    "nmtkit.runtime": 2,
    "nmtkit.runtime.allocator": 1,
    "nmtkit.runtime.parent_process": 1,
    "nmtkit.runtime.address_space": 1,
    "nmtkit.runtime.standard_streams": 1,
    "nmtkit.runtime.processor": 1,
    "nmtkit.runtime.workers": 1,
    "nmtkit.text": 2,
    "nmtkit.model.kernels": 2,
    "nmtkit.model.estimate": 2,
    "nmtkit.parsing": 3,
    "nmtkit.text.codec": 4,
    "nmtkit.decoding.constraints": 4,
    "nmtkit.parsing.well_formed": 5,
    "nmtkit.storage.model_description": 5,
    "nmtkit.storage.model_path": 5,
    "nmtkit.data": 6,
    "nmtkit.model": 5,
    "nmtkit.storage.model_folder": 6,
    "nmtkit.storage.checkpoint": 6,
    "nmtkit.evaluation.metric": 6,
    "nmtkit.evaluation.texts": 6,
    "nmtkit.evaluation.input_checks": 6,
    "nmtkit.parsing.evalb.metric": 7,
    "nmtkit.averaging": 7,
    "nmtkit.decoding": 8,
    "nmtkit.evaluation": 8,
    "nmtkit.rerank": 9,
    "nmtkit.interop": 9,
    "nmtkit.training": 9,
    "nmtkit.reporting": 9,
    "nmtkit.parsing.views": 10,
    "nmtkit.api": 10,
    "nmtkit": 11,
    "nmtkit_cli": 11,
}
# Help, preprocess and score start without torch, which takes longer than they do.
MAY_IMPORT_TORCH = (
    "nmtkit.progress.tensorboard",
    "nmtkit.packed",
    "nmtkit.runtime.devices",
    "nmtkit.runtime.memory",
    "nmtkit.runtime.host_copies",
    "nmtkit.runtime.threads",
    "nmtkit.data.batch",
    "nmtkit.model",
    "nmtkit.parsing.well_formed",
    "nmtkit.storage.model_folder",
    "nmtkit.storage.checkpoint",
    "nmtkit.averaging",
    "nmtkit.decoding",
    "nmtkit.interop",
    "nmtkit.training",
    "nmtkit.reporting.attention",
    "nmtkit.rerank.models",
)
WITHOUT_TORCH = (
    # Arithmetic on shapes, which reports and `nmtkit info` do as well.
    "nmtkit.model.estimate",
    "nmtkit.model.kernels.logit_chunks",
    "nmtkit.model.kernels.row_padding",
    # Checks before models are loaded.
    "nmtkit.decoding.contrastive",
    "nmtkit.decoding.corpus",
    "nmtkit.decoding.input_formats",
    # The loader's worker processes.
    "nmtkit.training.micro_batches",
    "nmtkit.training.noise",
    "nmtkit.training.seeds",
    "nmtkit.training.subword_sampling",
    "nmtkit.training.update_reader",
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


def part(module: str) -> str:
    """Return the entry of LAYERS that a module belongs to."""
    parts = [entry for entry in LAYERS if entry != "nmtkit" and is_within(module, entry)]
    if module == "nmtkit":
        return module
    assert parts, f"{module} has no layer: add it to LAYERS"
    return max(parts, key=len)


def folder(entry: str) -> str:
    """Return the folder that the files of a part lie in; single modules lie in the package's."""
    is_package = any(one.path.startswith(entry.replace(".", "/") + "/") for one in tree())
    return entry if is_package else entry.rpartition(".")[0]


def may_import_torch(module: str) -> bool:
    return is_within(module, *MAY_IMPORT_TORCH) and not is_within(module, *WITHOUT_TORCH)


def tree() -> tuple[Source, ...]:
    return sources(*PACKAGES)


def wrong_imports(source: Source, modules: set[str]) -> Iterator[str]:
    own = part(source.module)
    for one, name in imported_modules(source, modules):
        other = part(name)
        is_lower = LAYERS[other] < LAYERS[own]
        is_beside = LAYERS[other] == LAYERS[own] and folder(other) == folder(own)
        if not is_lower and not is_beside:
            yield (
                f"{source.path}:{one.line}: layer {LAYERS[own]} imports {name} "
                f"of layer {LAYERS[other]}"
            )


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
    assert list(wrong_imports(parse(path, text), module_names()))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nmtkit/model/attention.py", "from nmtkit.model.state import DecoderState"),
        ("nmtkit/training/run.py", "from nmtkit.decoding.search import beam_search"),
        ("nmtkit/config/toml.py", "from nmtkit import errors"),
    ],
)
def test_an_import_downwards_is_let_pass(path: str, text: str) -> None:
    assert not list(wrong_imports(parse(path, text), module_names()))


def test_every_layer_has_a_file() -> None:
    parts = {part(source.module) for source in tree()}
    assert set(LAYERS) - parts == set(), "LAYERS names what is not there"


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
        assert torch_imports(parse("nmtkit/text/lines.py", text)), text
    text = "from safetensors.torch import save_file"
    assert torch_imports(parse("nmtkit/storage/durable.py", text))


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
