"""Finer cuts of slots that did not fit into memory: a function of the update, kept with the run.

A run whose update does not fit goes on with each slot cut in two, four, ... pieces from that update
on. The cuts stand in RUN/pieces.json, so that a resumed run repeats them; no pair is left out.
"""

import json
from pathlib import Path

from nmtkit.durable import replace_file
from nmtkit.errors import DamagedError

FILE = "pieces.json"


class Pieces:
    """Into how many pieces the slots of each update are cut."""

    def __init__(self, run_dir: Path) -> None:
        """Read what stands in the folder of a run.

        Raises:
            DamagedError: the file is not what was written.
        """
        self._path = run_dir / FILE
        self._cuts = self._read()

    def at(self, update: int) -> int:
        """Return the number of pieces of each slot of an update, 1 = whole."""
        return max((pieces for first, pieces in self._cuts if first <= update), default=1)

    def cut(self, update: int, pieces: int, writes: bool) -> None:
        """Cut slots in so many pieces, more than before, from an update on.

        Args:
            update: the first.
            pieces: how many.
            writes: note it in the run's folder, as one rank must.

        Raises:
            ResourceError: it cannot be noted.
        """
        self._cuts.append((update, pieces))
        if not writes:
            return
        values = [{"from_update": first, "pieces": number} for first, number in self._cuts]
        replace_file(self._path, json.dumps(values, indent=2).encode() + b"\n")

    def _read(self) -> list[tuple[int, int]]:
        if not self._path.exists():
            return []
        try:
            values = json.loads(self._path.read_bytes())
            cuts = [(one["from_update"], one["pieces"]) for one in values]
        except (ValueError, TypeError, KeyError, RecursionError):
            cuts = [(0, 0)]
        if not all(isinstance(number, int) and number > 0 for cut in cuts for number in cut):
            raise DamagedError(
                f"{self._path}: not a list of cuts; delete it, and slots are whole again"
            )
        return cuts
