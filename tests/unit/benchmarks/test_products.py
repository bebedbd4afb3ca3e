"""What is recorded of an update is the list of products that the shape makes one expect."""

import pytest
import torch

from benchmarks.products import Factor, Pools, Product, record, seconds_of
from nmtkit.config.training import ModelConfig
from nmtkit.data.batch import Batch
from nmtkit.model.estimate.cost import Work, training_operations
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.training.objective import Objective

CPU = torch.device("cpu")
CONFIG = ModelConfig(
    encoder_layers=1, decoder_layers=2, model_size=16, feed_forward_size=24, heads=2
)


@pytest.mark.parametrize("low", [None, torch.bfloat16], ids=["float32", "bfloat16"])
def test_products_of_an_update_are_all_but_those_within_attention(low: torch.dtype | None) -> None:
    # As many tokens as products in bfloat16 are filled up to.
    target = pack_sequences([[4] * 71, [4] * 57], CPU)
    batch = Batch(pack_sequences([[3] * 27, [3] * 37], CPU), target, target.values)
    objective = Objective(Transformer(CONFIG, 19, 19, is_shared=True), 0.1, low)
    _, products = record(lambda: objective(batch).loss.backward())
    expected = training_operations(CONFIG, 19, Work(64, 128, 0, 0))
    assert sum(product.operations for product in products) == expected
    assert {product.left.dtype for product in products} == {low or torch.float32}


def test_operands_lie_in_memory_as_they_did() -> None:
    left, right = torch.ones(3, 5), torch.ones(7, 5).T
    _, (product,) = record(lambda: left @ right)
    assert product.operations == 2 * 3 * 5 * 7
    taken = Pools(CPU).operands(product)
    for own, one in zip((left, right), taken, strict=True):
        assert (own.shape, own.stride()) == (one.shape, one.stride())


def test_operands_are_of_other_memory_than_the_last_ones() -> None:
    matrix = Factor((4, 4), is_transposed=False, dtype=torch.float32)
    left, right = Pools(CPU).operands(Product(matrix, matrix))
    assert left.data_ptr() != right.data_ptr()
    assert seconds_of([Product(matrix, matrix)], Pools(CPU), CPU) > 0
