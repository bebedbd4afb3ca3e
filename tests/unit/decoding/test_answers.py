"""Translations of the parts of a line, joined; the answers of a chunk, in order."""

from array import array
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.decoding.annotations import Annotations
from nmtkit.decoding.answers import (
    Answer,
    ChunkAnswers,
    Translation,
    join,
    join_n_best,
)
from nmtkit.decoding.input_formats import Request


def word_of(part: int, word: int) -> int:
    """Return the index of a source word in a line whose parts begin at its words 0, 7 and 14."""
    return 7 * part + word


def translation(text: str, log_prob: float) -> Translation:
    words = tuple(text.split())
    annotations = Annotations(
        source_tokens=words,
        token_log_probs=(log_prob,) * len(words),
        alignment=tuple((number, number) for number in range(len(words))),
        num_target_words=len(words),
        attention=tuple(
            array("f", [float(row == column) for column in range(len(words))])
            for row in range(len(words))
        ),
    )
    return Translation(text, log_prob, log_prob / 2, words, annotations)


def test_texts_are_joined_by_spaces_and_numbers_add_up() -> None:
    joined = join(
        [translation("a b", -1.0), translation("", -0.5), translation("c", -2.0)], word_of
    )
    assert (joined.text, joined.log_prob, joined.score) == ("a b c", -3.5, -1.75)
    assert joined.tokens == ("a", "b", "c")


def test_a_part_is_aligned_and_attends_to_its_own_source() -> None:
    joined = join([translation("a b", -1.0), translation("c", -2.0)], word_of)
    annotations = joined.annotations
    assert joined.tokens == annotations.source_tokens == ("a", "b", "c")
    assert annotations.token_log_probs == (-1.0, -1.0, -2.0)
    assert annotations.alignment == ((0, 0), (1, 1), (7, 2))
    assert annotations.num_target_words == 3
    assert [list(row) for row in annotations.attention] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_equal_translations_are_one_in_a_set_also_with_annotations() -> None:
    assert len({translation("a b", -1.0), translation("a b", -1.0), translation("c", -1.0)}) == 2


def test_a_shorter_n_best_list_repeats_its_last_translation() -> None:
    first = [translation("a", -1.0), translation("b", -2.0)]
    assert [one.text for one in join_n_best([first, [translation("c", -1.0)]], word_of)] == [
        "a c",
        "b c",
    ]


def test_a_line_in_one_part_is_that_part_and_one_without_parts_is_empty() -> None:
    only = [translation("a", -1.0)]
    assert join_n_best([only], word_of) == only
    assert [one.text for one in join_n_best([], word_of)] == [""]


@given(st.lists(st.integers(0, 3), max_size=12), st.randoms(use_true_random=False))
def test_answers_come_in_order_as_soon_as_all_lines_before_are_finished(
    num_parts: list[int], random: Random
) -> None:
    def complete(line: int, found: list[list[Translation]]) -> Answer:
        text = " ".join(one[0].text for one in found)
        return Answer(Request(str(line)), [Translation(text, 0.0, 0.0, (text,) * len(found))])

    parts = [(line, place) for line, count in enumerate(num_parts) for place in range(count)]
    order = random.sample(range(len(parts)), len(parts))
    answers = ChunkAnswers(num_parts, complete)
    results = [answers.add_blank()]
    translated: set[int] = set()
    while order:
        batch, order = order[:3], order[3:]
        found_now = [[Translation(str(parts[part]), 0.0, 0.0, ("",))] for part in batch]
        results.append(answers.add(batch, found_now))
        translated |= set(batch)
        missing = {line for part, (line, _) in enumerate(parts) if part not in translated}
        num_ready = sum(len(result.answers) for result in results)
        assert num_ready == min(missing, default=len(num_parts))
        assert sum(result.num_lines for result in results) == len(num_parts) - len(missing)
    found = [answer for result in results for answer in result.answers]
    assert [answer.request.source for answer in found] == [*map(str, range(len(num_parts)))]
    assert [answer.translations[0].text for answer in found] == [
        " ".join(str((line, place)) for place in range(count))
        for line, count in enumerate(num_parts)
    ]
    assert sum(result.num_tokens for result in results) == len(parts)
