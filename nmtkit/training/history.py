"""The validations of a run: which was the best, and whether waiting for a better one is over.

All of it follows from the validation records of the run's log, so nothing of it is saved.
"""

import math
from collections.abc import Sequence

from nmtkit.records import ValidationRecord


class History:
    """Validations, oldest first, compared by nll or BLEU."""

    def __init__(self, metric: str, records: Sequence[ValidationRecord]) -> None:
        """Take the validations so far.

        Args:
            metric: "nll" or "bleu".
            records: in the order of their updates.
        """
        self._metric = metric
        self._updates: list[int] = []
        self._costs: list[float] = []
        for record in records:
            self.add(record.update, record.nll, record.bleu)

    def add(self, update: int, nll: float, bleu: float | None) -> bool:
        """Add the validation after an update; returns whether it is the best so far."""
        cost = nll if self._metric == "nll" else -_known(bleu)
        cost = math.inf if math.isnan(cost) else cost
        is_best = all(cost < earlier for earlier in self._costs)
        self._updates.append(update)
        self._costs.append(cost)
        return is_best

    @property
    def last_update(self) -> int:
        """The update that was validated last; 0 = none yet."""
        return self._updates[-1] if self._updates else 0

    @property
    def best_update(self) -> int:
        """The update that validated best, the earliest of equal ones; 0 = none yet."""
        return self._updates[self._best()] if self._updates else 0

    @property
    def num_stale(self) -> int:
        """Validations in a row, up to the last, that were no new best."""
        return len(self._costs) - 1 - self._best() if self._costs else 0

    def best_first(self) -> list[int]:
        """Return the updates that were validated, the best first, the earlier of equal ones."""
        order = sorted(range(len(self._costs)), key=self._costs.__getitem__)
        return [self._updates[place] for place in order]

    def _best(self) -> int:
        return min(range(len(self._costs)), key=self._costs.__getitem__)


def _known(bleu: float | None) -> float:
    assert bleu is not None, "best_metric bleu needs validate_bleu; validation of recipes checks it"
    return bleu
