"""A writer that ends, or fails, before any one of its changes leaves the old or the new, whole."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.faults.harness import Fault, fault_points, injected, run_in_child
from tests.faults.scenarios import SCENARIOS, Scenario, everything_in
from tests.thoroughness import sample


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("mode", ["kill", "enospc"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_it_leaves_the_old_or_the_new_and_the_next_try_ends_well(
    scenario: Scenario, mode: str, tmp_path: Path
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    with injected(Fault("count", 0), is_synced=False):
        scenario.prepare(before)
        shutil.copytree(before, after)
        points = fault_points(partial(scenario.act, after))
        assert len(points) > 3
        for point in sample(points, 7, mode):
            root = tmp_path / str(point)
            shutil.copytree(before, root)
            outcome = run_in_child(partial(scenario.act, root), Fault(mode, point))
            assert outcome.is_killed == (mode == "kill"), outcome
            assert not outcome.exception or outcome.exception.startswith("ResourceError: ")
            scenario.check(root)
            scenario.act(root)
            scenario.check(root)
            assert everything_in(root) == everything_in(after), point
