"""Finer cuts hold from their update on, in this session and in later ones."""

from pathlib import Path

import pytest

from nmtkit.errors import DamagedError
from nmtkit.training.pieces import FILE, Pieces


def test_slots_are_whole_where_nothing_was_cut(tmp_path: Path) -> None:
    assert Pieces(tmp_path).at(1) == 1
    assert list(tmp_path.iterdir()) == []


def test_cuts_hold_from_their_update_on_and_are_kept_with_the_run(tmp_path: Path) -> None:
    pieces = Pieces(tmp_path)
    pieces.cut(7, 2, writes=True)
    pieces.cut(20, 4, writes=True)
    for known in (pieces, Pieces(tmp_path)):
        assert [known.at(update) for update in (1, 6, 7, 19, 20, 10**6)] == [1, 1, 2, 2, 4, 4]


def test_a_rank_that_does_not_write_cuts_all_the_same(tmp_path: Path) -> None:
    pieces = Pieces(tmp_path)
    pieces.cut(7, 2, writes=False)
    assert pieces.at(7) == 2
    assert Pieces(tmp_path).at(7) == 1


@pytest.mark.parametrize("content", ["{", "[1]", '[{"pieces": 2}]', '{"from_update": 1}'])
def test_a_file_that_is_something_else_is_damaged(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    with pytest.raises(DamagedError, match=r"pieces.json: not a list of cuts; delete it"):
        Pieces(tmp_path)
