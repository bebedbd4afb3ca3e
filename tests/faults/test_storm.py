"""A short storm of kills; `make test-faults` has a long one."""

import random
from pathlib import Path

from tests.faults.storm import storm

NUM_ROUNDS = 10


def test_a_run_that_is_killed_at_random_moments_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)  # other moments in every run of the test
    tally = storm(NUM_ROUNDS, seed, tmp_path)
    assert tally.num_rounds == NUM_ROUNDS
    assert tally.num_runs_equal > 0
    assert tally.num_kills == tally.num_rounds - tally.num_runs_equal
