"""Numbers of rows that products in low precision have in training on a CPU.

oneDNN, which computes them, makes code for each number of rows that it meets. That takes 1 to
2.5 ms, and ten times as long for the matrix of a vocabulary: longer than the products of an update
of a thousand tokens take. No two updates have equally many. So oneDNN is shown few numbers: zeros
fill the rows up.
"""

LEAST_STEP = 64
"""All of these numbers are multiples of this."""

STEPS_TO_DOUBLE = 16
"""So many steps there are at most from a number of rows to its double; a 16th is added at most."""


def filled_size(num_rows: int) -> int:
    """Return the number of rows that is used in place of this one: never less."""
    step = max(LEAST_STEP, (1 << num_rows.bit_length() - 1) // STEPS_TO_DOUBLE)
    return -(-num_rows // step) * step
