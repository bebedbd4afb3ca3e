"""The sustained rates of devices give the costs of the paper's table 2."""

import pytest

from nmtkit.model.estimate.device_rates import sustained_rate
from nmtkit.reporting.paper import TABLE_2

SECONDS_PER_DAY = 86400


@pytest.mark.parametrize(
    ("name", "days"), [("Transformer (base model)", 0.5), ("Transformer (big)", 3.5)]
)
def test_eight_p100_give_the_papers_cost(name: str, days: float) -> None:
    rate = sustained_rate("Tesla P100-SXM2-16GB", "float32")
    assert rate is not None
    (stated,) = {system.operations for system in TABLE_2 if system.name == name}
    assert stated == pytest.approx(days * SECONDS_PER_DAY * 8 * rate, rel=0.02)  # two digits


@pytest.mark.parametrize(
    ("name", "precision", "teraflops"),
    [
        ("Tesla K80", "float32", 2.8),
        ("Tesla M40 24GB", "float32", 6.0),
        ("Tesla V100-SXM2-16GB", "float32", 0.9 * 15.7),
        ("Tesla V100-PCIE-32GB", "float32", 0.9 * 14),
        ("NVIDIA A100-SXM4-40GB", "bfloat16", 0.9 * 312),
        ("NVIDIA A100-PCIE-40GB", "float32", 0.9 * 19.5),
        ("NVIDIA H100 80GB HBM3", "bfloat16", 0.9 * 989),
        ("NVIDIA H100 PCIe", "bfloat16", 0.9 * 756),
        ("NVIDIA H200", "bfloat16", 0.9 * 989),
        ("NVIDIA H200 NVL", "float32", 0.9 * 60),
    ],
)
def test_later_devices_sustain_nine_tenths_of_their_peak(
    name: str, precision: str, teraflops: float
) -> None:
    assert sustained_rate(name, precision) == pytest.approx(teraflops * 1e12)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("cpu", "float32"),
        ("NVIDIA GeForce RTX 4090", "bfloat16"),
        ("Tesla V100", "bfloat16"),
        # Names that contain the name of another device.
        ("NVIDIA RTX A1000 Laptop GPU", "float32"),
        ("Quadro P1000", "float32"),
        ("Quadro M4000", "float32"),
        ("Quadro K4000", "float32"),
        ("Tesla V100S-PCIE-32GB", "float32"),
        ("NVIDIA GH200 480GB", "bfloat16"),
        # A part of a device.
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "bfloat16"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "bfloat16"),
    ],
)
def test_other_devices_and_unsupported_precisions_have_no_figure(name: str, precision: str) -> None:
    assert sustained_rate(name, precision) is None
