from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.evaluation.segment_scores import SegmentScores

SCORES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(SCORES)
def test_the_score_of_a_text_is_the_mean_of_its_lines(scores: list[float]) -> None:
    found = SegmentScores("cat").corpus_score([repr(one) for one in scores], [["x"] * len(scores)])
    assert abs(found.score - fmean(scores)) <= 1e-9 * max(map(abs, scores))


def test_signatures_differ_by_command_and_number_of_references() -> None:
    def signature(command: str, num_references: int) -> str:
        scorer = SegmentScores(command)
        scorer.corpus_score(["1"], [["x"]] * num_references)
        return str(scorer.get_signature())

    assert signature("cat", 1) == signature("cat", 1)
    assert signature("cat", 1) != signature("tac", 1)
    assert signature("cat", 2).startswith("nrefs:2|command:")
