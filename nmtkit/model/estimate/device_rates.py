"""Sustained operations per second of devices, for the training cost of the paper's table 2.

The cost is training time x number of GPUs x sustained operations per second of one GPU. The paper's
GPUs have the paper's figures. Later ones have nine tenths of their peak in the precision of the
matrix products, without sparsity: the paper uses 9.5 of the P100's 10.6.

A module of its own: these figures of data sheets are independent of a model, and each new GPU adds
a line.
"""

import re

SHARE_OF_PEAK = 0.9

FLOAT32, BFLOAT16 = "float32", "bfloat16"

PAPER_RATES = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
"""Operations per second, in float32. Source: paper, section 6.1, footnote 5."""

PEAK_RATES = {
    "H200 NVL": {FLOAT32: 60e12, BFLOAT16: 835e12},
    "H200": {FLOAT32: 67e12, BFLOAT16: 989e12},
    "H100 NVL": {FLOAT32: 60e12, BFLOAT16: 835e12},
    "H100 PCIe": {FLOAT32: 51e12, BFLOAT16: 756e12},
    "H100": {FLOAT32: 67e12, BFLOAT16: 989e12},
    "A100": {FLOAT32: 19.5e12, BFLOAT16: 312e12},
    "V100-PCIE": {FLOAT32: 14e12},
    "V100": {FLOAT32: 15.7e12},
}
"""Peak operations per second, by words of the device name; the first match counts.

float32 is without TF32, which nmtkit does not use. Source: NVIDIA's data sheets of the V100
(2020), A100 (2021), H100 (2023) and H200 (2024); half of the figures with sparsity.
"""


def sustained_rate(name: str, precision: str) -> float | None:
    """Return the floating-point operations per second that a device sustains.

    Args:
        name: the driver's name of the device, such as "NVIDIA A100-SXM4-40GB".
        precision: of matrix products, float32 or bfloat16.

    Returns:
        The rate; None if there is no figure, as for CPUs and for parts of a GPU (MIG).
    """
    if _names("MIG", name):
        return None
    for model, rate in PAPER_RATES.items():
        if _names(model, name):
            return rate
    peaks = next((peaks for model, peaks in PEAK_RATES.items() if _names(model, name)), {})
    return SHARE_OF_PEAK * peaks[precision] if precision in peaks else None


def _names(model: str, name: str) -> bool:
    """Return whether a device name contains a model as whole words: A1000 is not A100."""
    return re.search(rf"\b{re.escape(model)}\b", name) is not None
