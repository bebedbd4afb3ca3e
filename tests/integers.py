"""Whether products of integers can be tested here."""

import pytest

from nmtkit.model.kernels.inference import weight_levels

needs_integers = pytest.mark.skipif(
    weight_levels() == 0, reason="this torch does not multiply integers on this processor"
)
