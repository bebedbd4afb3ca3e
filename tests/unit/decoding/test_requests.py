"""Translations of the parts of a line, joined."""

from array import array

from nmtkit.decoding.annotations import Annotations
from nmtkit.decoding.requests import Translation, join, join_n_best


def translation(text: str, log_prob: float) -> Translation:
    words = tuple(text.split())
    annotations = Annotations(
        source_tokens=words,
        tokens=words,
        token_log_probs=(log_prob,) * len(words),
        alignment=tuple((number, number) for number in range(len(words))),
        num_words=(len(words), len(words)),
        attention=tuple(
            array("f", [float(row == column) for column in range(len(words))])
            for row in range(len(words))
        ),
    )
    return Translation(text, log_prob, log_prob / 2, len(words), annotations)


def test_texts_are_joined_by_spaces_and_numbers_add_up() -> None:
    joined = join([translation("a b", -1.0), translation("", -0.5), translation("c", -2.0)])
    assert (joined.text, joined.log_prob, joined.score) == ("a b c", -3.5, -1.75)
    assert joined.num_tokens == 3


def test_a_part_is_aligned_and_attends_to_its_own_source() -> None:
    annotations = join([translation("a b", -1.0), translation("c", -2.0)]).annotations
    assert annotations.tokens == annotations.source_tokens == ("a", "b", "c")
    assert annotations.token_log_probs == (-1.0, -1.0, -2.0)
    assert annotations.alignment == ((0, 0), (1, 1), (2, 2))
    assert annotations.num_words == (3, 3)
    assert [list(row) for row in annotations.attention] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_a_shorter_n_best_list_repeats_its_last_translation() -> None:
    first = [translation("a", -1.0), translation("b", -2.0)]
    assert [one.text for one in join_n_best([first, [translation("c", -1.0)]])] == ["a c", "b c"]


def test_a_line_in_one_part_is_that_part_and_one_without_parts_is_empty() -> None:
    only = [translation("a", -1.0)]
    assert join_n_best([only]) == only
    assert [one.text for one in join_n_best([])] == [""]
