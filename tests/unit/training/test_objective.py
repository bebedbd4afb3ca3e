"""Loss and gradients with activation checkpointing and in low precision."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nmtkit.config.metrics import NLL
from nmtkit.config.model import ModelConfig
from nmtkit.config.training import TrainingConfig
from nmtkit.data.batch import Batch, LinkedPieces
from nmtkit.model.kernels import training as kernels
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.training.objective import GUIDED_ALIGNMENT, LOSSES, Loss, Objective

CPU = torch.device("cpu")
SIZE = 64
MODEL = ModelConfig(
    encoder_layers=2, decoder_layers=2, model_size=64, feed_forward_size=128, heads=4, dropout=0.1
)


def ragged_batch() -> Batch:
    generator = torch.Generator().manual_seed(1)

    def draw(lengths: tuple[int, ...]) -> list[list[int]]:
        return [torch.randint(3, SIZE, (n,), generator=generator).tolist() for n in lengths]

    target = pack_sequences(draw((9, 4, 6)), CPU)
    return Batch(pack_sequences(draw((5, 8, 2)), CPU), target, target.values.roll(-1))


def objective_of(
    config: ModelConfig, low_precision: torch.dtype | None, checkpointing: bool = False
) -> Objective:
    torch.manual_seed(2)
    model = Transformer(config, SIZE, SIZE, is_shared=True, activation_checkpointing=checkpointing)
    return Objective(model, TrainingConfig(), low_precision).train()


def gradients(objective: Objective) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    objective(ragged_batch()).loss.backward()
    return {n: p.grad for n, p in objective.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_recomputed_layers_give_the_same_gradients_to_the_bit(norm: str) -> None:
    config = replace(MODEL, norm=norm, attention_dropout=0.1, activation_dropout=0.1)
    kept = gradients(objective_of(config, None))
    recomputed = gradients(objective_of(config, None, checkpointing=True))
    assert kept.keys() == recomputed.keys()
    for name, gradient in kept.items():
        assert torch.equal(gradient, recomputed[name]), name


def test_an_output_bias_takes_part_in_the_loss_as_in_the_logits() -> None:
    objective = objective_of(replace(MODEL, dropout=0.0, output_bias=True), None).double()
    model, batch = objective.model, ragged_batch()
    assert model.output_bias is not None
    torch.nn.init.normal_(model.output_bias)
    own = objective(batch)
    logits = model.logits(model.decode(batch.target_in, model.encode(batch.source)))
    expected = torch.nn.functional.cross_entropy(
        logits, batch.target_out, label_smoothing=0.1, reduction="sum"
    )
    torch.testing.assert_close(own.loss, expected, rtol=1e-12, atol=0.0)
    parameters = [model.output_bias, model.output_weight]
    torch.testing.assert_close(
        torch.autograd.grad(own.loss, parameters),
        torch.autograd.grad(expected, parameters),
        rtol=0.0,
        atol=1e-10,  # another order of summation in float64
    )


def test_low_precision_changes_losses_and_gradients_by_its_rounding_only() -> None:
    exact, low = objective_of(MODEL, None), objective_of(MODEL, torch.bfloat16)
    exact_gradients, low_gradients = gradients(exact), gradients(low)
    for name, gradient in exact_gradients.items():
        assert low_gradients[name].dtype == torch.float32, name
        if "query_key" in name and name.endswith("bias"):
            continue  # a third of it are biases of keys, whose gradients are rounding alone
        error = (low_gradients[name] - gradient).norm() / gradient.norm()
        assert error < 0.1, f"{name}: {error}"
    exact_losses, low_losses = (one.eval()(ragged_batch()) for one in (exact, low))
    for one, other in zip(low_losses.sums.values(), exact_losses.sums.values(), strict=True):
        assert one.dtype == torch.float32
        assert one.detach().item() == pytest.approx(other.detach().item(), rel=0.01)


def test_products_are_computed_in_low_precision() -> None:
    seen: list[torch.dtype] = []
    objective = objective_of(MODEL, torch.bfloat16)
    layer = objective.model.encoder[0].feed_forward.inner
    layer.register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype))
    objective(ragged_batch())
    assert seen == [torch.bfloat16]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_weights_that_are_rounded_together_give_the_same_gradients_to_the_bit(
    norm: str, checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(frozen: str) -> dict[str, torch.Tensor]:
        config = replace(MODEL, norm=norm, dropout=0.1, output_bias=True)
        objective = objective_of(config, torch.bfloat16, checkpointing)
        for name, parameter in objective.named_parameters():
            parameter.requires_grad_(not name.startswith(f"model.{frozen}"))
        return gradients(objective)

    # On a GPU autocast computes torch's own linear layers.
    monkeypatch.setattr(kernels, "is_low_precision_on_cpu", lambda *_: False)
    for frozen in ("nothing", "encoder.0", "decoder.1.self_attention"):
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "_rounds_together", lambda _: True)
            with CountedCasts() as together:
                own = trained(frozen)
        with CountedCasts() as alone:
            expected = trained(frozen)
        assert together.number < alone.number
        assert own.keys() == expected.keys()
        for name, gradient in expected.items():
            assert torch.equal(own[name], gradient), name


@pytest.mark.parametrize("has_failed", [False, True])
def test_rounded_weights_are_forgotten_after_a_pass(
    has_failed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective = objective_of(MODEL, torch.bfloat16)
    monkeypatch.setattr(kernels, "_rounds_together", lambda _: torch.is_grad_enabled())
    linears = [one for one in objective.modules() if isinstance(one, kernels.Linear)]
    assert linears
    if has_failed:
        monkeypatch.setattr(objective.model.decoder[1].memory_attention, "forward", _fail)
        with pytest.raises(RuntimeError, match="no memory"):
            objective(ragged_batch())
    else:
        objective(ragged_batch())
    assert all(linear.rounded is None for linear in linears)


def _fail(*_: object, **__: object) -> torch.Tensor:
    raise RuntimeError("no memory")


class CountedCasts(TorchDispatchMode):
    """Counts conversions of tensors to another type."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.number = 0

    def __torch_dispatch__(
        self, function: Any, _types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        self.number += function is torch.ops.aten._to_copy.default
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize("num_units", [0, 5, 40])
def test_a_term_is_normalized_by_its_own_units(
    num_units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second term, with a weight of 0.3: of an update, the mean over its units counts."""
    other = Loss(weight=lambda _: 0.3, count=lambda _: num_units)
    plain = objective_of(MODEL, None).eval()(ragged_batch())
    monkeypatch.setitem(LOSSES, "cross_entropy", other)
    num_tokens = 19
    counts = {"cross_entropy": num_units, NLL: num_tokens}
    found = objective_of(MODEL, None).eval()(ragged_batch(), counts)
    mean = plain.sums["cross_entropy"] / max(1, num_units)
    torch.testing.assert_close(found.loss / num_tokens, 0.3 * mean)
    assert found.sums == plain.sums


PLACES = {0: (3, 1), 2: (0,), 7: (4,), 9: (7, 0, 2), 15: (1,), 17: (0, 1)}
"""Source places, within their sentence, of the links of some target places of `ragged_batch`.

The last target places, of the end symbol, have none.
"""

SENTENCES = ((0, 9, 0, 5), (9, 13, 5, 13), (13, 19, 13, 15))
"""Where target and source of each of its sentences begin and end."""


def linked_batch() -> Batch:
    links = [(t, s, 1 / len(own)) for t, own in PLACES.items() for s in own]
    targets, sources, weights = zip(*links, strict=True)
    linked = LinkedPieces(torch.tensor(targets), torch.tensor(sources), torch.tensor(weights))
    return replace(ragged_batch(), links=linked)


def guided(config: ModelConfig, weight: float = 0.3, checkpointing: bool = False) -> Objective:
    torch.manual_seed(2)
    model = Transformer(config, SIZE, SIZE, is_shared=True, activation_checkpointing=checkpointing)
    training = TrainingConfig(guided_alignment_weight=weight)
    return Objective(model, training, None).double().train()


def loss_of_links(model: Transformer, layer: int, head: int) -> torch.Tensor:
    """Compute the loss of links by torch's own attention, sentence by sentence."""
    config, batch = model.config, linked_batch()
    own = model.decoder[layer].memory_attention
    key, value = own.key_value.weight.split(own.sizes)
    biases = [own.query.bias, *own.key_value.bias.split(own.sizes)]
    inputs: list[torch.Tensor] = []
    handle = own.register_forward_pre_hook(lambda _, arguments: inputs.append(arguments[0]))
    memory, is_full = model.encode(batch.source), config.full_context_alignment
    model.decode(batch.target_in, memory, is_causal=not is_full)
    handle.remove()
    total = torch.zeros((), dtype=torch.float64)
    for first, end, begin, stop in SENTENCES:
        _, weights = torch.nn.functional.multi_head_attention_forward(
            query=inputs[0][first:end, None],
            key=memory.values[begin:stop, None],
            value=memory.values[begin:stop, None],
            embed_dim_to_check=config.model_size,
            num_heads=config.heads,
            in_proj_weight=None,
            in_proj_bias=torch.cat(biases),
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=0.0,
            out_proj_weight=own.output.weight,
            out_proj_bias=own.output.bias,
            use_separate_proj_weight=True,
            q_proj_weight=own.query.weight,
            k_proj_weight=key,
            v_proj_weight=value,
            average_attn_weights=False,
        )
        assert weights is not None
        for target in range(first, end):
            if linked := PLACES.get(target):
                log_weights = [
                    weights[0, head, target + is_full - first, place].log() for place in linked
                ]
                total = total - torch.stack(log_weights).mean()
    return total


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_guided_alignment_has_the_loss_and_gradients_of_torchs_attention(
    norm: str, is_full: bool
) -> None:
    head = replace(MODEL, alignment_layer=2, alignment_head=3, full_context_alignment=is_full)
    config = replace(head, norm=norm, dropout=0.0)
    objective, batch = guided(config), linked_batch()
    names, parameters = zip(*objective.model.named_parameters(), strict=True)
    losses = objective(batch)
    expected = loss_of_links(objective.model, layer=1, head=2)
    torch.testing.assert_close(losses.sums[GUIDED_ALIGNMENT], expected.detach())
    whole = losses.sums["cross_entropy"] + 0.3 * expected.detach()
    torch.testing.assert_close(losses.loss.detach(), whole)
    plain = objective(ragged_batch()).loss
    found = torch.autograd.grad(losses.loss, parameters)
    of_plain = torch.autograd.grad(plain, parameters)
    of_links = torch.autograd.grad(expected, parameters, allow_unused=True)
    for name, mine, other, linked in zip(names, found, of_plain, of_links, strict=True):
        theirs = other + 0.3 * (torch.zeros_like(other) if linked is None else linked)
        torch.testing.assert_close(mine, theirs, msg=name)


@pytest.mark.parametrize("is_full", [False, True])
def test_guided_alignment_is_recomputed_with_its_layer(is_full: bool) -> None:
    config = replace(MODEL, alignment_layer=2, full_context_alignment=is_full)
    found = []
    for checkpointing in (False, True):
        objective = guided(config, checkpointing=checkpointing)
        torch.manual_seed(3)
        objective(linked_batch()).loss.backward()
        found.append([one.grad for one in objective.parameters()])
    for kept, recomputed in zip(*found, strict=True):
        assert kept is not None
        assert recomputed is not None
        assert torch.equal(kept, recomputed)


def test_links_without_a_weight_or_a_head_change_nothing() -> None:
    for config, weight in ((MODEL, 0.3), (replace(MODEL, alignment_layer=1), 0.0)):
        objective = guided(config, weight)
        results = []
        for batch in (linked_batch(), ragged_batch()):
            torch.manual_seed(3)
            results.append(objective(batch).loss)
        assert torch.equal(*results)


def test_guided_alignment_is_computed_in_float32_in_low_precision() -> None:
    config = replace(MODEL, dropout=0.0, alignment_layer=1)
    exact = guided(config).float()
    rounded = Objective(exact.model, TrainingConfig(guided_alignment_weight=0.3), torch.bfloat16)
    found = [one(linked_batch()).sums[GUIDED_ALIGNMENT] for one in (exact, rounded)]
    assert found[1].dtype == torch.float32
    torch.testing.assert_close(*found, rtol=0.05, atol=0)  # rounded factors, exact sums
