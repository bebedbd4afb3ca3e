"""Frozen parameters keep every bit, and the others are trained as if nothing were frozen."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from nmtkit.config.freezing import pattern_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch
from nmtkit.packed import pack_sequences
from nmtkit.storage.model_folder import load_tensors
from nmtkit.storage.run_folder import RunFolder, state_dir_of
from nmtkit.training import distributed
from nmtkit.training.initialization import Parent, freeze
from nmtkit.training.objective import Objective
from nmtkit.training.run import train
from tests.commands import nmtkit_in_text
from tests.launching import SETTINGS
from tests.ranks import DONE, UNEXPECTED, recipe_of, run_ranks, train_on
from tests.snapshots import read_tensors
from tests.tiny import tiny_codec, tiny_model
from tests.training import assert_same_tensors, with_updates

CPU = torch.device("cpu")
PARTS = [
    ("embeddings",),
    ("encoder", "source-embeddings"),
    ("encoder.1", "cross-attention"),
    ("decoder", "norms"),
    ("self-attention", "feed-forward"),
]


def frozen_recipe(*parts: str, ema_decay: float = 0.0) -> TrainRecipe:
    """Return a recipe of few updates with weight decay and untied embeddings."""
    recipe = recipe_of(dropout=0.1, micro_batches=4, max_updates=3)
    training = replace(
        recipe.training, freeze=parts, weight_decay=0.5, ema_decay=ema_decay, clip_norm=1.0
    )
    return replace(
        recipe,
        model=replace(recipe.model, tie_embeddings=False, norm="pre"),
        training=training,
    )


def is_frozen(name: str, parts: tuple[str, ...]) -> bool:
    return any(pattern_of(part).match(name) for part in parts)


@pytest.fixture(scope="module")
def parent(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trained model, whose biases are not 0."""
    run = tmp_path_factory.mktemp("parent") / "parent"
    train(frozen_recipe(), data, run)
    return run


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
@pytest.mark.parametrize("parts", PARTS)
def test_frozen_parameters_keep_every_bit_and_have_no_moments(
    parts: tuple[str, ...], ema_decay: float, data: Path, parent: Path, tmp_path: Path
) -> None:
    train(frozen_recipe(*parts, ema_decay=ema_decay), data, tmp_path, parent=Parent(parent))
    before, after = read_tensors(parent), read_tensors(tmp_path)
    for name, tensor in after.items():
        is_equal = torch.equal(tensor, before[name])
        assert is_equal == is_frozen(name, parts), name
    state = load_tensors(state_dir_of(RunFolder(tmp_path).model_dir(3)) / "state.safetensors")
    moments = {name.rpartition(".")[0] for name in state if not name.endswith(".weights")}
    assert moments == {name for name in after if not is_frozen(name, parts)}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_a_resumed_run_has_the_bits_of_the_uninterrupted_one(
    size: int, ema_decay: float, data: Path, tmp_path: Path
) -> None:
    recipe = frozen_recipe("encoder", "embeddings", ema_decay=ema_decay)
    for run, ends in (("whole", (3,)), ("resumed", (1, 2, 3))):
        for updates in ends:
            done = train_on(size, with_updates(recipe, updates), data, tmp_path / run)
            assert done == [DONE] * size
    assert_same_tensors(read_tensors(tmp_path / "resumed"), read_tensors(tmp_path / "whole"))


def gradients(parts: tuple[str, ...], precision: torch.dtype | None) -> dict[str, Tensor | None]:
    """Return the gradients of an update of a model with frozen parts."""
    model = tiny_model(tiny_codec()).train()
    if parts:
        freeze(model, parts)
    source = pack_sequences([[3, 4, 5, 2], [6, 2]], CPU)
    target = pack_sequences([[7, 6, 2], [8, 9, 10, 2]], CPU)
    batch = Batch(source, target, target.values.roll(-1))
    torch.manual_seed(1)
    Objective(model, 0.1, precision)(batch).loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize(
    ("parts", "precision"),
    [
        *((parts, None) for parts in [*PARTS, ("output",), ("encoder", "embeddings", "output")]),
        # Where a frozen encoder needs no gradients, bfloat16 has another kernel of attention.
        *((parts, torch.bfloat16) for parts in [*PARTS[:1], *PARTS[2:], ("output",)]),
    ],
)
def test_gradients_of_the_others_are_those_without_freezing(
    parts: tuple[str, ...], precision: torch.dtype | None
) -> None:
    whole, part = gradients((), precision), gradients(parts, precision)
    for name, gradient in part.items():
        if is_frozen(name, parts):
            assert gradient is None, name
        else:
            expected = whole[name]
            assert gradient is not None
            assert expected is not None
            assert torch.equal(gradient, expected), name


def test_ranks_exchange_no_gradients_of_frozen_parameters(data: Path, tmp_path: Path) -> None:
    exchanged: list[DistributedDataParallel] = []

    class Recorded(DistributedDataParallel):
        def __init__(self, *arguments: object, **settings: object) -> None:
            super().__init__(*arguments, **settings)  # type: ignore[arg-type]
            exchanged.append(self)

    def work(_: int) -> None:
        vars(distributed)["DistributedDataParallel"] = Recorded
        train(frozen_recipe("encoder", "embeddings"), data, tmp_path)
        (one,) = exchanged
        (part,) = (record["num_parameter_tensors"] for record in [one._get_ddp_logging_data()])
        trained = [p for p in one.module.parameters() if p.requires_grad]
        assert part == len(trained) < len([*one.module.parameters()])

    assert UNEXPECTED not in {end.exit_code for end in run_ranks(2, work)}


def test_an_error_is_reported_once(data: Path, tmp_path: Path) -> None:
    recipe = frozen_recipe("embeddings", "encoder", "decoder", "output")
    first, second = train_on(2, recipe, data, tmp_path)
    assert (first.exit_code, second.exit_code) == (2, 2)
    assert "leaves nothing to train; freeze fewer parts [training.freeze]" in first.message
    assert not second.message


def test_the_command_freezes_and_says_so(data: Path, tmp_path: Path) -> None:
    flags = ("--freeze", "encoder.1", "--freeze", "embeddings", "--max-updates", "2")
    command = ("train", data, "--out", tmp_path / "run", *SETTINGS.split(), *flags)
    done = nmtkit_in_text(*command)
    assert done.returncode == 0, done.stderr
    assert "; also projection.weight, which is tied" in done.stderr
    assert RunFolder(tmp_path / "run").read_recipe().training.freeze == ("encoder.1", "embeddings")
    done = nmtkit_in_text(*command, "--freeze", "decoder.1")
    assert "freeze was ('encoder.1', 'embeddings') and is now" in done.stderr
    done = nmtkit_in_text(*command[:-6], "--freeze", "encoder.2")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the encoder has layers 1 to 1" in done.stderr
