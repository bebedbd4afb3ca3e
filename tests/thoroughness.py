"""Which cases run: a sample in `make test`, all of them in `make test-system`.

Of a test or a file marked `sampled(every=N)`, every N-th case runs. So are the files of
`SAMPLED_FOLDERS`, whose tests start processes; a test there that is always to run is marked
`sampled(every=1)`. A test that loops over cases takes them from `sample`, and is marked `sampled`
without a number. A test marked `thorough` runs in `make test-system` only. The sample changes from
day to day, and is repeated with its seed:

    NMTKIT_SAMPLE_SEED=739581 make test
"""

import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

Case = TypeVar("Case")

IS_THOROUGH = os.environ.get("NMTKIT_THOROUGH", "") == "1"
SEED = os.environ.setdefault(  # also for the processes of pytest-xdist, which must agree
    "NMTKIT_SAMPLE_SEED", str(datetime.now(UTC).toordinal())
)

SAMPLED_FOLDERS = {"integration": 4, "faults": 4}
"""The N of files without a mark, by folder of `tests`."""


def sample(cases: Sequence[Case], every: int, name: str = "") -> Sequence[Case]:
    """Return every N-th case, from an offset drawn by the day's seed; all cases if thorough.

    Args:
        cases: what a test checks.
        every: N.
        name: of the test; tests with other names have other offsets.
    """
    if IS_THOROUGH:
        return cases
    return cases[random.Random(f"{SEED} {name}").randrange(min(every, len(cases))) :: every]
