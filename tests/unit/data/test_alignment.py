import math
import random
from collections.abc import Sequence

import pytest

from nmtkit.data.alignment import (
    LAGS,
    MAX_LAG,
    MIN_CORRESPONDENCE,
    Misaligned,
    correspondence,
    find_misaligned,
)
from nmtkit.text.corpus import Pair
from tests.made_up import made_up_pairs

BLOCK = 64


def in_blocks(pairs: Sequence[Pair]) -> list[Sequence[Pair]]:
    return [pairs[i : i + BLOCK] for i in range(0, len(pairs), BLOCK)]


def shifted(pairs: Sequence[Pair], first: int, last: int, lag: int) -> list[Pair]:
    """Shift the targets of pairs first..last - 1 by some lines, within these pairs."""
    sources, targets = map(list, zip(*pairs, strict=True))
    part = targets[first:last]
    targets[first:last] = part[-lag:] + part[:-lag]
    return list(zip(sources, targets, strict=True))


def with_names(pairs: Sequence[Pair]) -> list[Pair]:
    return [(f"{a} N{i // 2}.", f"{b}, N{i // 2}!") for i, (a, b) in enumerate(pairs)]


def test_correspondence_equals_its_definition() -> None:
    pairs = with_names(made_up_pairs(40))
    words = [
        [{word.strip(".,!") for word in line.split()} | {line[-1]} for line in side]
        for side in zip(*pairs, strict=True)
    ]
    logs = [[math.log(len(line) + 2) / 0.35 for line in side] for side in zip(*pairs, strict=True)]
    means = [sum(side) / 40 for side in logs]

    def weight(word: str) -> float:
        return math.log(40 / max(sum(word in line for line in side) for side in words))

    alike = [
        [
            (logs[0][i] - means[0]) * (logs[1][j] - means[1])
            + sum(weight(word) for word in words[0][i] & words[1][j])
            for j in range(40)
        ]
        for i in range(40)
    ]
    rows = [sum(row) / 40 for row in alike]
    columns = [sum(row[j] for row in alike) / 40 for j in range(40)]
    mean = sum(rows) / 40
    centred = [[alike[i][j] - rows[i] - columns[j] + mean for j in range(40)] for i in range(40)]
    scale = math.sqrt(sum(one * one for row in centred for one in row) / 1600)
    for lag, value in zip(LAGS, correspondence(pairs), strict=True):
        diagonal = [centred[i][i + lag] for i in range(40) if 0 <= i + lag < 40]
        assert value == pytest.approx(sum(diagonal) / scale / math.sqrt(len(diagonal)), abs=1e-9)


def test_translations_correspond_at_no_lag_only() -> None:
    for pairs in in_blocks(made_up_pairs(20 * BLOCK)):
        values = correspondence(pairs)
        assert values.argmax() == MAX_LAG
        assert values[MAX_LAG] > MIN_CORRESPONDENCE


def test_names_between_chinese_characters_are_shared_words() -> None:
    lengths = [(random.Random(i).randrange(9), random.Random(~i).randrange(9)) for i in range(64)]
    pairs = [
        (f"It is N{i}{'.' * one}", "\u8fd9\u662f" + f"N{i}" + "\u7684" * other)
        for i, (one, other) in enumerate(lengths)
    ]
    assert correspondence(pairs)[MAX_LAG] > MIN_CORRESPONDENCE


def test_text_that_corresponds_has_no_misaligned_part() -> None:
    assert find_misaligned(in_blocks(made_up_pairs(30 * BLOCK))) is None


@pytest.mark.parametrize(
    ("first", "last", "lag"),
    [(10, 14, -MAX_LAG), (10, 14, 1), (10, 14, MAX_LAG), (0, 30, 1), (17, 30, 1)],
)
def test_a_shifted_part_is_found_with_its_lag(first: int, last: int, lag: int) -> None:
    pairs = shifted(made_up_pairs(30 * BLOCK), first * BLOCK, last * BLOCK, lag)
    assert find_misaligned(in_blocks(pairs)) == Misaligned(first, last - 1, lag)


def test_a_part_does_not_contain_longer_text_that_corresponds() -> None:
    pairs = shifted(made_up_pairs(30 * BLOCK), 3 * BLOCK, 5 * BLOCK, 1)
    pairs = shifted(pairs, 25 * BLOCK, 26 * BLOCK, 1)
    assert find_misaligned(in_blocks(pairs)) == Misaligned(3, 4, 1)


def test_lines_in_another_order_are_found_without_a_lag() -> None:
    pairs = made_up_pairs(20 * BLOCK)
    targets = [target for _, target in pairs]
    random.Random(1).shuffle(targets)
    sources = [source for source, _ in pairs]
    blocks = in_blocks(list(zip(sources, targets, strict=True)))
    assert find_misaligned(blocks) == Misaligned(0, 19, 0)


def test_blocks_that_say_nothing_are_not_judged() -> None:
    same_lengths = [(f"aa {i:04}", f"bb {9999 - i:04}") for i in range(4 * BLOCK)]
    assert find_misaligned(in_blocks(same_lengths)) is None
    short = made_up_pairs(31)
    sources, targets = zip(*short, strict=True)
    assert find_misaligned([list(zip(sources, reversed(targets), strict=True))]) is None
    assert find_misaligned([[("", "")] * BLOCK]) is None
    assert find_misaligned([]) is None


def test_a_shift_begins_before_blocks_that_seem_to_correspond() -> None:
    pairs = made_up_pairs(12 * BLOCK)
    # In these blocks after the shift, neighbouring lines are equal, as news repeats its words.
    for block in (5, 7):
        for i in range(block * BLOCK, (block + 1) * BLOCK):
            pairs[i] = pairs[i - i % 4]
    found = find_misaligned(in_blocks(shifted(pairs, 4 * BLOCK, 12 * BLOCK, 1)))
    assert found
    assert (found.first, found.lag) == (4, 1)
