"""Translating with parsers: any model returns a tree of the words of each line."""

from dataclasses import replace
from typing import Any

import pytest

from nmtkit.config.schema import ScoringConfig, SearchConfig, TranslateRecipe
from nmtkit.config.translation import ConstraintsConfig, OutputConfig, TranslationConfig
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.answers import Request
from nmtkit.decoding.forced import score_pairs
from nmtkit.decoding.scorer import Scorer, line_names
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.parsing.linearize import linearize
from nmtkit.parsing.trees import escape, parse_tree, split_words
from nmtkit.parsing.well_formed import LONGEST_CHAIN
from nmtkit.text.codec import TextCodec
from tests.messages import refuses
from tests.tiny import WORDS, never_warn, tiny_codec, tiny_model
from tests.translating import answers_to, translate
from tests.trees import chain_of, parser_codec

pytestmark = pytest.mark.sampled(every=3)

CODEC, IN_ORDER = parser_codec(), parser_codec(linearization="in-order")
in_each_linearization = pytest.mark.parametrize("codec", [CODEC, IN_ORDER])
LINES = [
    *(" ".join(WORDS[i * j % 8] for j in range(i)) for i in range(1, 14)),
    "",
    "unknown (words) and\u00a0spaces",
    "(",
    "\u2028",
    "a b c d",
]
PREVENT, REPAIR = (ConstraintsConfig(malformed_trees=value) for value in ("prevent", "repair"))
RECIPE = TranslateRecipe(
    search=SearchConfig(beam=3, max_length_offset=20, length_penalty=0.6),
    output=OutputConfig(n_best=3, output_format="json"),
)


def parser(seed: int = 1, codec: TextCodec = CODEC, **settings: Any) -> Translator:
    recipe = replace(RECIPE, **settings)
    return Translator([tiny_model(codec, seed)], codec, recipe, lambda _: None)


def leaves(tree: str) -> list[str]:
    return parse_tree(tree, "text").words() if tree else []


@in_each_linearization
@pytest.mark.parametrize("constraints", [PREVENT, REPAIR])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_line_is_answered_by_a_tree_of_its_words(
    seed: int, constraints: ConstraintsConfig, codec: TextCodec
) -> None:
    answers = answers_to(parser(seed, codec, constraints=constraints), [*map(Request, LINES)])
    for line, answer in zip(LINES, answers, strict=True):
        for one in answer.translation.n_best:
            assert leaves(one.text) == [escape(word) for word in split_words(line)]


@in_each_linearization
def test_the_search_finds_trees_with_the_scores_of_forced_decoding(codec: TextCodec) -> None:
    line = "a b c d e"
    (answer,) = answers_to(parser(codec=codec), [Request(line)])
    source = codec.encode_source(line)
    for one in answer.translation.n_best:
        ids = codec.encode_target(one.text)  # equal to the found ids, as nothing was repaired
        assert len(ids) == len(one.tokens)
        (forced,) = score_pairs(tiny_model(codec), [(source, ids)], 100)
        assert one.log_prob == pytest.approx(sum(forced), abs=1e-4)


def test_a_free_search_finds_other_outputs_which_are_repaired() -> None:
    prevented = list(translate(parser(constraints=PREVENT), LINES))
    repaired = list(translate(parser(constraints=REPAIR), LINES))
    assert prevented != repaired


def test_repaired_translations_are_marked() -> None:
    recipe = replace(RECIPE, constraints=REPAIR)
    found = [
        Translator([tiny_model(CODEC)], CODEC, one, lambda _: None) for one in (RECIPE, recipe)
    ]
    constrained, free = ([answers_to(one, [Request(line)])[0] for line in LINES] for one in found)
    for line, answer in zip(LINES, constrained, strict=True):
        expected = False if split_words(line) else None
        assert [one.is_repaired for one in answer.translation.n_best] == [expected] * len(
            answer.translation.n_best
        )
    assert {one.is_repaired for answer in free for one in answer.translation.n_best} >= {True, None}
    short = ConstraintsConfig(max_output_length=3)
    (cut_off,) = answers_to(parser(constraints=short), [Request("a b")])
    assert all(one.is_repaired for one in cut_off.translation.n_best)


@in_each_linearization
def test_there_is_always_room_for_a_tree(codec: TextCodec) -> None:
    search = SearchConfig(beam=3, max_length_offset=0, max_length_ratio=0.5)
    for answer in answers_to(parser(codec=codec, search=search), [Request("a b c d e f")]):
        for one in answer.translation.n_best:
            tokens = linearize(parse_tree(one.text, "text"), False, "brackets")
            assert len(tokens) + 1 == len(one.tokens) == len("abcdef") + 3


@in_each_linearization
def test_chains_of_brackets_end_however_long_the_output_may_be(codec: TextCodec) -> None:
    found = parser(codec=codec, search=SearchConfig(beam=3, max_length_offset=100))
    trees = [parse_tree(tree, "text") for tree in translate(found, ["a", "a b c"])]
    assert max(map(chain_of, trees)) == LONGEST_CHAIN


@in_each_linearization
@pytest.mark.parametrize("on_too_long", ["split", "cut"])
def test_a_line_that_is_too_long_is_answered_by_one_tree(
    on_too_long: str, codec: TextCodec
) -> None:
    config = TranslationConfig(max_source_length=5, on_too_long=on_too_long)
    lines = ["a b c d e f g h a b c", "a b"]
    trees = translate(parser(codec=codec, translation=config), lines)
    for line, tree in zip(lines, trees, strict=True):
        assert leaves(tree) == line.split()


def test_a_beginning_cannot_be_forced() -> None:
    with refuses(DataError, "line 3 target_prefix"):
        answers_to(parser(), [Request("a", target_prefix="(TOP")], 3)


def test_a_shortlist_is_refused() -> None:
    shortlist = Shortlist.__new__(Shortlist)
    with refuses(ConfigError, "--shortlist"):
        Translator([tiny_model(CODEC)], CODEC, RECIPE, lambda _: None, shortlist)


def test_repairing_trees_is_refused_for_a_model_of_text() -> None:
    recipe, codec = replace(RECIPE, constraints=REPAIR), tiny_codec()
    with refuses(ConfigError, "malformed_trees repair"):
        Translator([tiny_model(codec)], codec, recipe, lambda _: None)


def test_scoring_names_the_line_of_a_malformed_tree() -> None:
    scorer = Scorer([tiny_model(CODEC)], CODEC, ScoringConfig(), never_warn)
    with refuses(DataError, "line 2"):
        scorer.score([("a", "(TOP (N a))"), ("a", "(TOP (N a)")], line_names(1))
