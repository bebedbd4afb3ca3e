"""The mean of checkpoints, and models that cannot be averaged."""

import gc
import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmtkit import averaging
from nmtkit.averaging import average
from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage import model_folder
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.model_folder import write_model
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from tests.doubles import report_everything
from tests.messages import refuses
from tests.snapshots import PROVENANCE, read_tensors, tiny_model_folder, tiny_run, tiny_tensors
from tests.tiny import tiny_codec


def bits(tensor: Tensor) -> bytes:
    return bytes(tensor.contiguous().view(torch.uint8).numpy())


def random_tensors(seed: int, dtype: torch.dtype) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(5, 7, generator=generator) * 10 ** torch.randn(5, 1, generator=generator)
    return {"weight": weight.to(dtype), "bias": torch.tensor([-0.0, seed]).to(dtype)}


def mean_of(folders: list[Path], out: Path) -> dict[str, Tensor]:
    average(folders, out, overwrite=False, different_runs=False)
    return read_tensors(out)


# -------------------------------------------------------------------------------------- the mean


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_the_mean_is_numpys_in_float64_rounded_once(dtype: torch.dtype, tmp_path: Path) -> None:
    models = [random_tensors(seed, dtype) for seed in range(3)]
    folders = [tiny_model_folder(tmp_path / str(n), n, model) for n, model in enumerate(models)]
    for name, tensor in mean_of(folders, tmp_path / "out").items():
        stacked = np.stack([model[name].double().numpy() for model in models])
        assert tensor.dtype == dtype
        # One rounding to the stored type; float64's own sums may differ in their last bit.
        expected = torch.from_numpy(stacked.mean(axis=0)).to(dtype)
        tolerance = 1e-15 if dtype == torch.float64 else 0.0
        assert torch.allclose(tensor, expected, rtol=tolerance, atol=0), name


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_the_mean_of_copies_is_the_same_to_the_bit(count: int, tmp_path: Path) -> None:
    model = random_tensors(1, torch.float32)
    model["extremes"] = torch.tensor([3e38, 1e-45, -0.0, 1.1, -3e38])
    folder = tiny_model_folder(tmp_path / "one", 1, model)
    for name, tensor in mean_of([folder] * count, tmp_path / "out").items():
        assert bits(tensor) == bits(model[name]), name


def test_the_order_of_checkpoints_does_not_matter(tmp_path: Path) -> None:
    models = [random_tensors(seed, torch.float32) for seed in range(4)]
    folders = [tiny_model_folder(tmp_path / str(n), n, model) for n, model in enumerate(models)]
    forward = mean_of(folders, tmp_path / "forward")
    backward = mean_of(folders[::-1], tmp_path / "backward")
    assert all(bits(tensor) == bits(backward[name]) for name, tensor in forward.items())


def test_tied_parameters_stay_tied(tmp_path: Path) -> None:
    folders = [tiny_model_folder(tmp_path / str(n), n, tiny_tensors(n)) for n in (1, 2)]
    mean = mean_of(folders, tmp_path / "out")
    assert mean["tied"] is mean["weight"]
    assert torch.equal(mean["weight"], tiny_tensors(1)["weight"] + 0.5)


def test_the_manifest_names_the_sources_and_follows_the_newest(tmp_path: Path) -> None:
    folders = [tiny_model_folder(tmp_path / f"n{n}", n, tiny_tensors(n)) for n in (3, 9, 5)]
    average(folders, tmp_path / "out", overwrite=False, different_runs=False)
    manifest = describe_model(tmp_path / "out").manifest
    hashes = [
        describe_model(folder).manifest["files"]["model.safetensors"]["sha256"]
        for folder in folders
    ]
    assert manifest["update"] == 9
    assert manifest["provenance"] == PROVENANCE
    assert manifest["sources"] == [
        {"name": "n3", "update": 3, "sha256": hashes[0]},
        {"name": "n9", "update": 9, "sha256": hashes[1]},
        {"name": "n5", "update": 5, "sha256": hashes[2]},
    ]


@pytest.mark.parametrize("others", [("p", "p"), ("q", "p"), ("q", "q"), ("", "p")])
def test_a_line_of_descent_is_kept_only_if_all_sources_have_it(
    others: tuple[str, str], tmp_path: Path
) -> None:
    parents = {name: [{"name": name, "sha256": name}] for name in ("p", "q")}
    folders = []
    for update, name in enumerate((*others, "p"), 1):
        provenance: Json = {**PROVENANCE, **({"parents": parents[name]} if name else {})}
        fields: dict[str, Json] = {"update": update, "provenance": provenance}
        folders.append(tmp_path / f"n{update}")
        write_model(
            folders[-1], tiny_tensors(update), TrainRecipe(), tiny_codec(), fields, overwrite=False
        )
    average(folders, tmp_path / "out", overwrite=False, different_runs=True)
    manifest = describe_model(tmp_path / "out").manifest
    is_common = others == ("p", "p")
    assert manifest["provenance"] == {
        **PROVENANCE,
        **({"parents": parents["p"]} if is_common else {}),
    }
    of_sources = [source.get("parents") for source in manifest["sources"]]
    assert of_sources == [parents.get(name) for name in (*others, "p")]


def test_a_mean_can_be_averaged_again(tmp_path: Path) -> None:
    folders = [tiny_model_folder(tmp_path / str(n), n, tiny_tensors(n)) for n in (1, 3)]
    average(folders, tmp_path / "mean", overwrite=False, different_runs=False)
    mean = mean_of([tmp_path / "mean", folders[0]], tmp_path / "out")
    assert torch.equal(mean["weight"], tiny_tensors(1)["weight"] + 0.5)


def test_pointers_of_a_run_can_be_averaged(tmp_path: Path) -> None:
    tiny_run(tmp_path / "run", 1, 3).point_best([1])
    mean = mean_of([tmp_path / "run" / "best", tmp_path / "run" / "last"], tmp_path / "out")
    assert torch.equal(mean["weight"], tiny_tensors(2)["weight"])


def test_an_existing_output_is_replaced_only_when_asked(tmp_path: Path) -> None:
    folders = [tiny_model_folder(tmp_path / str(n), n, tiny_tensors(n)) for n in (1, 3)]
    average(folders[:1], tmp_path / "out", overwrite=False, different_runs=False)
    with refuses(ConfigError, "out; --overwrite"):
        average(folders, tmp_path / "out", overwrite=False, different_runs=False)
    average(folders, tmp_path / "out", overwrite=True, different_runs=False)
    assert torch.equal(read_tensors(tmp_path / "out")["weight"], tiny_tensors(2)["weight"])


def test_parameters_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report_everything(monkeypatch)
    messages: list[str] = []
    folders = [tiny_model_folder(tmp_path / str(n), n, tiny_tensors(n)) for n in (1, 3)]
    average(folders, tmp_path / "out", False, False, WorkReporter(messages.append))
    # Tied parameters are stored once.
    assert [line.partition(", ")[0] for line in messages] == [
        "averaged 1 of 2 parameters (50%)",
        "averaged 2 parameters",
    ]


# ---------------------------------------------------------------------------------------- memory


def num_held(is_one: Callable[[Any], bool]) -> int:
    """Count the objects of a kind, except those that are older than the test."""
    return sum(map(is_one, gc.get_objects()))


def is_sum(one: Any) -> bool:
    return type(one) is Tensor and one.dtype == torch.float64


def is_codec(one: Any) -> bool:
    return type(one) is TextCodec


@pytest.fixture
def _old_objects_apart() -> Iterator[None]:
    """Hide older objects from the garbage collector."""
    gc.freeze()
    yield
    gc.unfreeze()


class Watch:
    """Replaces `open_tensors`, and counts the live objects whenever a tensor is read.

    Attributes:
        held: numbers of open files, tensors read, sums and codecs, at each read.
    """

    def __init__(self) -> None:
        self.held: list[tuple[int, ...]] = []
        self._num_open = 0
        self._read: list[weakref.ref[Tensor]] = []

    @contextmanager
    def open_tensors(self, path: Path) -> Iterator[Any]:
        self._num_open += 1
        with model_folder.open_tensors(path) as file:
            yield Watched(file, self)
        self._num_open -= 1

    def see(self, tensor: Tensor) -> Tensor:
        num_read_before = sum(one() is not None for one in self._read)
        self.held.append(
            (self._num_open, num_read_before + 1, num_held(is_sum), num_held(is_codec))
        )
        self._read.append(weakref.ref(tensor))
        return tensor


class Watched:
    """A file of tensors that reports each read to a `Watch`."""

    def __init__(self, file: Any, watch: Watch) -> None:
        self._file = file
        self._watch = watch
        self.keys = file.keys
        self.get_slice = file.get_slice

    def get_tensor(self, name: str) -> Tensor:
        return self._watch.see(self._file.get_tensor(name))


@pytest.mark.usefixtures("_old_objects_apart")
@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_memory_holds_one_sum_and_one_tensor_for_any_number_of_sources(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_tensors(1, torch.float32)
    folder = tiny_model_folder(tmp_path / "one", 1, model)
    watch = Watch()
    monkeypatch.setattr(averaging, "open_tensors", watch.open_tensors)
    average([folder] * count, tmp_path / "out", overwrite=False, different_runs=False)
    assert watch.held == [(1, 1, 0, 1), *[(1, 1, 1, 1)] * (count - 1)] * len(model)


# --------------------------------------------------------------------- models without a mean


def without_bias(tensors: dict[str, Tensor]) -> None:
    del tensors["bias"]


def with_another(tensors: dict[str, Tensor]) -> None:
    tensors["wing"] = torch.ones(1)


def transposed(tensors: dict[str, Tensor]) -> None:
    tensors["weight"] = tensors["weight"].t()


def halved(tensors: dict[str, Tensor]) -> None:
    tensors["weight"] = tensors["weight"].half()


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (without_bias, "bias F32 [2]"),
        (with_another, "wing F32 [1]"),
        (transposed, "weight F32 [3, 2] [2, 3]"),
        (halved, "weight F16 F32 [2, 3]"),
    ],
)
def test_models_with_different_parameters_cannot_be_averaged(
    change: Callable[[dict[str, Tensor]], None], keys: str, tmp_path: Path
) -> None:
    tensors = tiny_tensors(2)
    del tensors["tied"]
    one = tiny_model_folder(tmp_path / "one", 1, tensors)
    change(tensors)
    two = tiny_model_folder(tmp_path / "two", 2, tensors)
    with refuses(DamagedError, f"two {keys}"):
        average([one, one, two], tmp_path / "out", overwrite=False, different_runs=False)
    assert not (tmp_path / "out").exists()


def write_with(folder: Path, recipe: TrainRecipe, codec: TextCodec) -> Path:
    fields: dict[str, Json] = {"update": 1, "provenance": PROVENANCE}
    write_model(folder, tiny_tensors(1), recipe, codec, fields, overwrite=False)
    return folder


def test_models_with_different_codecs_cannot_be_averaged(tmp_path: Path) -> None:
    words = Words(["x", "y"])
    one = write_with(tmp_path / "one", TrainRecipe(), tiny_codec())
    two = write_with(tmp_path / "two", TrainRecipe(), TextCodec("en", "de", words, words, True))
    with refuses(DamagedError, "two one codec"):
        average([one, two], tmp_path / "out", overwrite=False, different_runs=False)
    assert not (tmp_path / "out").exists()


def test_models_with_different_configurations_cannot_be_averaged(tmp_path: Path) -> None:
    recipe = TrainRecipe()
    other = replace(recipe, model=replace(ModelConfig(), norm="pre"))
    one = write_with(tmp_path / "one", recipe, tiny_codec())
    two = write_with(tmp_path / "two", other, tiny_codec())
    with refuses(DamagedError, "two one model.norm pre post"):
        average([one, two], tmp_path / "out", overwrite=False, different_runs=False)
    assert not (tmp_path / "out").exists()


def test_models_of_different_runs_are_averaged_only_if_asked(tmp_path: Path) -> None:
    recipe = TrainRecipe()
    other_seed = replace(recipe, seed=replace(recipe.seed, seed=2))
    shorter = replace(recipe, training=replace(recipe.training, max_updates=3))
    one = write_with(tmp_path / "one", recipe, tiny_codec())
    resumed = write_with(tmp_path / "resumed", shorter, tiny_codec())
    two = write_with(tmp_path / "two", other_seed, tiny_codec())
    average([one, resumed], tmp_path / "same", overwrite=False, different_runs=False)
    with refuses(ConfigError, "two one seed; --different-runs"):
        average([one, two], tmp_path / "out", overwrite=False, different_runs=False)
    assert not (tmp_path / "out").exists()
    average([one, two], tmp_path / "out", overwrite=False, different_runs=True)


def test_checkpoints_of_two_run_folders_are_of_different_runs(tmp_path: Path) -> None:
    runs = [tiny_run(tmp_path / name, 1, 2) for name in "ab"]
    with refuses(ConfigError, "b/checkpoints/00000002; --different-runs"):
        average([runs[0].model_dir(1), runs[1].model_dir(2)], tmp_path / "out", False, False)


def test_a_damaged_model_is_not_averaged(tmp_path: Path) -> None:
    one = tiny_model_folder(tmp_path / "one", 1, tiny_tensors(1))
    content = (one / "model.safetensors").read_bytes()
    (one / "model.safetensors").write_bytes(content[:-1] + b"\x7f")
    with refuses(DamagedError, "one/model.safetensors"):
        average([one], tmp_path / "out", overwrite=False, different_runs=False)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_model_that_is_not_finite_is_named_and_not_averaged(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tiny_model_folder(tmp_path / "one", 1, tiny_tensors(1))
    tensors = tiny_tensors(2)
    tensors["bias"][0] = value
    with monkeypatch.context() as unchecked:
        unchecked.setattr(model_folder, "_check_finite", lambda *_: None)
        two = tiny_model_folder(tmp_path / "two", 2, tensors)
    with refuses(DamagedError, "two bias"):
        average([one, two, one], tmp_path / "out", overwrite=False, different_runs=False)
    assert not (tmp_path / "out").exists()


def test_a_run_cannot_be_averaged(tmp_path: Path) -> None:
    tiny_run(tmp_path / "run", 1)
    with refuses(ConfigError, "run; run"):
        average([tmp_path / "run"], tmp_path / "out", overwrite=False, different_runs=False)
