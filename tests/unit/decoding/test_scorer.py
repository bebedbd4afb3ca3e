import math
from dataclasses import replace

import pytest

from nmtkit.config.schema import ScoringConfig
from nmtkit.decoding.answers import ScoredLine
from nmtkit.decoding.forced import score_pairs
from nmtkit.decoding.scorer import Scorer, Totals, line_names
from nmtkit.errors import DataError
from nmtkit.text.subword import Subword
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, WORDS, never_warn, tiny_codec, tiny_model

PAIRS = [
    (
        " ".join(WORDS[i * j % 8] for j in range(i % 9)),
        " ".join(WORDS[(i + j) % 8].upper() for j in range(i % 7)),
    )
    for i in range(70)
]


def tiny_scorer(config: ScoringConfig) -> Scorer:
    codec = tiny_codec()
    return Scorer([tiny_model(codec)], codec, config, never_warn)


def score(pairs: list[tuple[str, str]]) -> list[ScoredLine]:
    return tiny_scorer(ScoringConfig()).score(pairs, line_names(1))


def test_each_pair_has_the_score_of_its_ids_in_its_place() -> None:
    codec = tiny_codec()
    model = tiny_model(codec)
    lines = tiny_scorer(ScoringConfig(max_tokens=30)).score(PAIRS, line_names(1))
    for (source, target), line in list(zip(PAIRS, lines, strict=True))[::3]:
        if source or target:
            pair = codec.encode_source(source), codec.encode_target(target)
            (expected,) = score_pairs(model, [pair], 1)
            assert line.token_log_probs == pytest.approx(expected, abs=1e-5)
            assert line.tokens == (*target.split(), "</s>")


def test_a_pair_of_blank_lines_is_not_scored() -> None:
    blank = ScoredLine((), (), 0)
    lines = score([("", " \t"), ("a", ""), ("", "A"), ("", "")])
    assert [line == blank for line in lines] == [True, False, False, True]
    assert lines[1].tokens == ("</s>",)
    assert lines[2].tokens == ("A", "</s>")
    assert all(line.log_prob < 0 for line in lines[1:3])


def test_every_pair_and_token_is_in_one_batch() -> None:
    batches: list[tuple[int, int]] = []

    def note(num_pairs: int, num_tokens: int) -> None:
        batches.append((num_pairs, num_tokens))

    pairs = [*PAIRS, ("", " ")]
    scorer = tiny_scorer(ScoringConfig(max_tokens=30))
    lines = scorer.score(pairs, line_names(1), note)
    assert len(batches) > 2
    assert sum(number for number, _ in batches) == len(pairs)
    assert sum(tokens for _, tokens in batches) == sum(len(line.tokens) for line in lines)


def test_words_are_counted_in_the_text_and_tokens_in_the_ids() -> None:
    vocabulary = Subword.train(TRAIN_LINES * 10, "bpe", 275, "tiny text")
    codec = replace(tiny_codec(), source=vocabulary, target=vocabulary)
    line, chinese = Scorer([tiny_model(codec)], codec, ScoringConfig(), never_warn).score(
        [("a", "zzz qq"), ("a", "\u6211\u559c\u6b22\u3002")], line_names(2)
    )
    assert (line.num_words, chinese.num_words) == (3, 5)
    assert line.tokens == (*map(vocabulary.piece, vocabulary.encode("zzz qq")), "</s>")
    assert len(line.tokens) > 3


@pytest.mark.parametrize(
    ("pair", "side"),
    [(("a b c", "A"), "4 tokens in the source"), (("a", "A B C"), "4 tokens in the translation")],
)
def test_a_line_that_is_too_long_is_an_error_that_names_it(
    pair: tuple[str, str], side: str
) -> None:
    under_test = tiny_scorer(ScoringConfig(max_length=3))
    with refuses(DataError, f"line 4 {side} 3; --max-length"):
        under_test.score([("a", "A"), pair], line_names(3))


def test_pairs_with_names_have_the_same_scores_and_names_in_errors() -> None:
    under_test = tiny_scorer(ScoringConfig(max_length=3))
    pairs = [("a b", "A B"), ("", "")]
    assert under_test.score(pairs, ["one", "two"]) == under_test.score(pairs, line_names(1))
    with refuses(DataError, "two 4 3; --max-length"):
        under_test.score([("a", "A"), ("a b c", "A")], ["one", "two"])


@pytest.mark.parametrize("positions", [(3,), (3, 5), (5, 3)])
def test_the_fewest_learned_positions_limit_both_sides(positions: tuple[int, ...]) -> None:
    codec = tiny_codec()
    models = [tiny_model(codec, positions="learned", max_positions=count) for count in positions]
    under_test = Scorer(models, codec, ScoringConfig(), never_warn)
    assert len(under_test.score([("a b", "A B")], line_names(1))) == 1
    with refuses(DataError, "line 7 4 3"):
        under_test.score([("a b", "A B C")], line_names(7))


def test_totals_are_sums_and_perplexities_follow_from_them() -> None:
    totals = Totals()
    totals.add([ScoredLine(("A", "x", "</s>"), (-1.0, -2.0, -0.5), 2)])
    totals.add([ScoredLine((), (), 0), ScoredLine(("</s>",), (-0.5,), 1)])
    assert (totals.num_lines, totals.num_tokens, totals.num_words) == (3, 4, 3)
    assert totals.log_prob == pytest.approx(-4.0)
    assert totals.perplexity == pytest.approx(math.e)
    assert totals.word_perplexity == pytest.approx(math.exp(4 / 3))


def test_a_line_has_the_perplexity_of_its_tokens() -> None:
    line = ScoredLine(("A", "x", "</s>"), (-1.0, -2.0, -0.6), 2)
    assert line.perplexity == pytest.approx(math.exp(1.2))


def test_no_tokens_have_a_perplexity_of_1() -> None:
    assert (Totals().perplexity, Totals().word_perplexity) == (1.0, 1.0)
    assert ScoredLine((), (), 0).perplexity == 1.0
