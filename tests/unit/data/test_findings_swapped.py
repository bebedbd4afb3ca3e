import random
from itertools import pairwise

import numpy as np

from tests.unit.data.test_findings import CLEAN, evidence_of


def test_both_sides_of_one_language_are_not_swapped() -> None:
    generator = random.Random(1)
    pairs = [
        (line, " ".join(generator.sample(words := line.split(), len(words)))) for line, _ in CLEAN
    ]
    evidence = evidence_of(pairs, pairs[:300])
    assert not evidence.are_swapped.any()
    assert np.count_nonzero(evidence.nats_of_swap) == 0


def test_untranslated_targets_are_not_swapped() -> None:
    sources = [source for source, _ in CLEAN]
    untranslated = list(pairwise(sources))
    assert not evidence_of([*CLEAN, *untranslated[:500]]).are_swapped.any()
