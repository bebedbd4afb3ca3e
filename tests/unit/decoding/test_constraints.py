"""Constraints: searches are compared with all permitted translations, tried one by one."""

from collections.abc import Callable
from itertools import product

import pytest
import torch

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.constraints import NO_TOKEN, Constraints
from nmtkit.decoding.search import Hypothesis, beam_search
from nmtkit.errors import DamagedError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from tests.messages import refuses
from tests.unit.decoding.tables import Tables, TableState, random_tables, score_of, table_step

LONGEST = (4, 5, 3, 5)
VOCABULARY = 5
WIDE = SearchConfig(beam=400, length_penalty=0.6)
WORDS = [token for token in range(VOCABULARY) if token not in (BOS_ID, EOS_ID)]
TOLERANCE = 1e-5

Permits = Callable[[int, tuple[int, ...]], bool]
"""Returns whether a sentence may have a translation, given without its end symbol."""


def search(
    tables: Tables, config: SearchConfig, constraints: Constraints
) -> list[list[Hypothesis]]:
    longest = torch.tensor(tables.max_lengths)
    return beam_search(table_step, TableState(tables), longest, config, constraints)


def best_permitted(tables: Tables, sentence: int, permits: Permits) -> tuple[int, ...]:
    candidates = [
        (*words, EOS_ID)
        for length in range(tables.max_lengths[sentence])
        for words in product(WORDS, repeat=length)
        if permits(sentence, words)
    ]
    return max(candidates, key=lambda ids: score_of(tables, sentence, ids, WIDE.length_penalty))


def assert_best(tables: Tables, constraints: Constraints, permits: Permits) -> None:
    """Check that a wide search finds the best permitted translation."""
    for sentence, hypotheses in enumerate(search(tables, WIDE, constraints)):
        assert hypotheses[0].ids == best_permitted(tables, sentence, permits)
        for one in hypotheses:
            assert permits(sentence, one.ids[:-1])
            expected = score_of(tables, sentence, one.ids, WIDE.length_penalty)
            assert one.score == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(4))
def test_the_shortest_length_is_kept(seed: int) -> None:
    tables = random_tables(seed, LONGEST, VOCABULARY, end_bias=2.0)
    shortest = (4, 1, 2, 3)
    constraints = Constraints(min_lengths=torch.tensor(shortest))
    assert_best(tables, constraints, lambda sentence, words: len(words) + 1 >= shortest[sentence])


@pytest.mark.parametrize("seed", range(4))
def test_a_banned_token_is_never_generated(seed: int) -> None:
    tables = random_tables(seed, LONGEST, VOCABULARY)
    tables.logits[:, :, UNK_ID] += 3
    assert_best(tables, Constraints(banned=(UNK_ID,)), lambda _, words: UNK_ID not in words)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_is_repeated(size: int) -> None:
    def has_no_repeat(_: int, words: tuple[int, ...]) -> bool:
        ngrams = [words[i : i + size] for i in range(len(words) - size + 1)]
        return len(set(ngrams)) == len(ngrams)

    tables = random_tables(size, LONGEST, VOCABULARY, end_bias=-2.0)
    tables.logits[:, :, WORDS[-1]] += 3  # without the constraint it would repeat
    assert_best(tables, Constraints(no_repeat_ngram=size), has_no_repeat)


@pytest.mark.parametrize("seed", range(4))
def test_translations_begin_with_the_forced_prefix(seed: int) -> None:
    forced_prefixes = ((3, 4), (0, 0, 3), (), (4,))
    tables = random_tables(seed, LONGEST, VOCABULARY)
    rows = [[*ids, *[NO_TOKEN] * (3 - len(ids))] for ids in forced_prefixes]
    constraints = Constraints(forced_prefixes=torch.tensor(rows))
    assert_best(
        tables,
        constraints,
        lambda sentence, words: (
            words[: len(forced_prefixes[sentence])] == forced_prefixes[sentence]
        ),
    )


def test_other_constraints_do_not_apply_to_a_forced_prefix() -> None:
    tables = random_tables(5, (5,), VOCABULARY)
    constraints = Constraints(
        forced_prefixes=torch.tensor([[UNK_ID, UNK_ID, UNK_ID]]),
        banned=(UNK_ID,),
        no_repeat_ngram=1,
    )
    ((best, *_),) = search(tables, SearchConfig(beam=3), constraints)
    assert best.ids[:3] == (UNK_ID,) * 3
    assert UNK_ID not in best.ids[3:]


@pytest.mark.parametrize("beam", [1, 3])
def test_constraints_do_not_depend_on_the_batch(beam: int) -> None:
    longest = (3, 5, 2, 4, 5, 3) * 3
    tables = random_tables(8, longest, VOCABULARY, end_bias=1.0)
    shortest = torch.tensor([1, 3, 2, 4, 2, 1] * 3)
    forced_prefixes = torch.tensor([[NO_TOKEN], [3], [4], [NO_TOKEN], [0], [3]] * 3)

    def found(sentences: list[int]) -> list[list[Hypothesis]]:
        constraints = Constraints(shortest[sentences], forced_prefixes[sentences], (), 2)
        return search(tables.only(sentences), SearchConfig(beam=beam), constraints)

    together = found(list(range(18)))
    for sentences in [4], [7, 3], list(reversed(range(18))):
        assert found(sentences) == [together[sentence] for sentence in sentences]


def test_constraints_may_leave_a_sentence_without_a_translation() -> None:
    tables = random_tables(1, (5, 5), VOCABULARY)
    constraints = Constraints(min_lengths=torch.tensor([5, 1]), no_repeat_ngram=1)
    # Three words, none of them twice, are too few for four positions.
    none, some = search(tables, SearchConfig(beam=2), constraints)
    assert (none, bool(some)) == ([], True)


def test_logits_that_are_not_numbers_are_reported_whatever_the_constraints_are() -> None:
    tables = random_tables(1, (5, 5), VOCABULARY)
    tables.logits[1] = float("nan")
    constraints = Constraints(min_lengths=torch.tensor([2, 2]), no_repeat_ngram=2)
    with refuses(DamagedError, "logits"):
        search(tables, SearchConfig(beam=2), constraints)
