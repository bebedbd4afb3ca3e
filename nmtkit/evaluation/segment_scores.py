"""Scores of segments as a metric of sacreBLEU: the score of a text is their mean.

A module of its own: importing it imports sacreBLEU.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature

from nmtkit.version import __version__


class SegmentScores(Metric):
    """The mean of scores; each hypothesis is the score of its segment, written as a number."""

    _SIGNATURE_TYPE = Signature

    def __init__(self, command: str) -> None:
        """Keep the command that computes the scores, for the signature."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.command = command

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def _compute_segment_statistics(
        self,
        hypothesis: str,
        ref_kwargs: dict[str, Any],  # noqa: ARG002
    ) -> list[float]:
        return [float(hypothesis), 1.0]

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> Score:
        return self._compute_score_from_stats(
            [math.fsum(column) for column in zip(*stats, strict=True)]
        )

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        total, count = stats
        return Score("mean", float(total) / float(count))

    def get_signature(self) -> Signature:
        """Return the settings that the score depends on."""
        signature = super().get_signature()
        digest = hashlib.sha256(self.command.encode("utf-8", "surrogateescape"))
        signature.update("command", digest.hexdigest()[:8])
        signature.update("version", f"nmtkit-{__version__}")
        return signature
