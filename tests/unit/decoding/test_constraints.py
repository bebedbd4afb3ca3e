"""Constraints: searches are compared with all permitted translations, tried one by one."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.constraints import (
    NO_TOKEN,
    BannedToken,
    Constraint,
    Constraints,
    ForcedPrefixes,
    NoRepeatedNgrams,
    ShortestLengths,
)
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


class MustOccur(Constraint):
    """Words that must occur, for each of B sentences; what a row has is kept step by step."""

    demands = True

    def __init__(self, words: Tensor) -> None:
        """Store words (B, M), padded with NO_TOKEN."""
        self.words = words
        self.has = (words == NO_TOKEN)[:, None]  # (B, W, M)

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        if prefixes.shape[2]:
            self.has = self.has | (prefixes[:, :, -1:] == self.words[:, None])
        found = (prefixes[:, :, :, None] == self.words[:, None, None]).any(2)
        assert torch.equal(self.has, found | (self.words == NO_TOKEN)[:, None])
        sums[:, :, EOS_ID].masked_fill_(~self.has.all(2), -torch.inf)

    def proposals(self) -> Tensor:
        return self.words[:, None].where(~self.has, NO_TOKEN)

    def progress(self, parents: Tensor, tokens: Tensor) -> Tensor:
        has = self.has.gather(1, parents[:, :, None].expand(-1, -1, self.has.shape[2]))
        return (has | (tokens[:, :, None] == self.words[:, None])).sum(2)

    def expand(self, width: int) -> None:
        self.has = self.has.repeat(1, width, 1)

    def reorder(self, parents: Tensor) -> None:
        self.has = self.has.gather(1, parents[:, :, None].expand(-1, -1, self.has.shape[2]))

    def keep(self, sentences: Tensor) -> None:
        self.words, self.has = self.words[sentences], self.has[sentences]


def search(
    tables: Tables, config: SearchConfig, *constraints: Constraint
) -> list[list[Hypothesis]]:
    longest = torch.tensor(tables.max_lengths)
    together = Constraints(constraints, longest)
    return beam_search(table_step, TableState(tables), longest, config, together, config.beam)


def best_permitted(tables: Tables, sentence: int, permits: Permits) -> tuple[int, ...]:
    candidates = [
        (*words, EOS_ID)
        for length in range(tables.max_lengths[sentence])
        for words in product(WORDS, repeat=length)
        if permits(sentence, words)
    ]
    return max(candidates, key=lambda ids: score_of(tables, sentence, ids, WIDE.length_penalty))


def assert_best(tables: Tables, constraint: Constraint, permits: Permits) -> None:
    """Check that a wide search finds the best permitted translation."""
    for sentence, hypotheses in enumerate(search(tables, WIDE, constraint)):
        assert hypotheses[0].ids == best_permitted(tables, sentence, permits)
        for one in hypotheses:
            assert permits(sentence, one.ids[:-1])
            expected = score_of(tables, sentence, one.ids, WIDE.length_penalty)
            assert one.score == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(2))
def test_the_shortest_length_is_kept(seed: int) -> None:
    tables = random_tables(seed, LONGEST, VOCABULARY, end_bias=2.0)
    shortest = (4, 1, 2, 3)
    constraint = ShortestLengths(torch.tensor(shortest))
    assert_best(tables, constraint, lambda sentence, words: len(words) + 1 >= shortest[sentence])


@pytest.mark.parametrize("seed", range(2))
def test_a_banned_token_is_never_generated(seed: int) -> None:
    tables = random_tables(seed, LONGEST, VOCABULARY)
    tables.logits[:, :, UNK_ID] += 3
    assert_best(tables, BannedToken(UNK_ID), lambda _, words: UNK_ID not in words)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_is_repeated(size: int) -> None:
    def has_no_repeat(_: int, words: tuple[int, ...]) -> bool:
        ngrams = [words[i : i + size] for i in range(len(words) - size + 1)]
        return len(set(ngrams)) == len(ngrams)

    tables = random_tables(size, LONGEST, VOCABULARY, end_bias=-2.0)
    tables.logits[:, :, WORDS[-1]] += 3  # without the constraint it would repeat
    assert_best(tables, NoRepeatedNgrams(size), has_no_repeat)


@pytest.mark.parametrize("seed", range(2))
def test_translations_begin_with_the_forced_prefix(seed: int) -> None:
    forced_prefixes = ((3, 4), (0, 0, 3), (), (4,))
    tables = random_tables(seed, LONGEST, VOCABULARY)
    rows = [[*ids, *[NO_TOKEN] * (3 - len(ids))] for ids in forced_prefixes]
    assert_best(
        tables,
        ForcedPrefixes(torch.tensor(rows)),
        lambda sentence, words: (
            words[: len(forced_prefixes[sentence])] == forced_prefixes[sentence]
        ),
    )


def test_other_constraints_do_not_apply_to_a_forced_prefix() -> None:
    tables = random_tables(5, (5,), VOCABULARY)
    forced = ForcedPrefixes(torch.tensor([[UNK_ID, UNK_ID, UNK_ID]]))
    others = BannedToken(UNK_ID), NoRepeatedNgrams(1)
    ((best, *_),) = search(tables, SearchConfig(beam=3), forced, *others)
    assert search(tables, SearchConfig(beam=3), *others, forced)[0][0] == best
    assert best.ids[:3] == (UNK_ID,) * 3
    assert UNK_ID not in best.ids[3:]


@pytest.mark.parametrize("beam", [1, 3])
def test_constraints_do_not_depend_on_the_batch(beam: int) -> None:
    longest = (3, 5, 2, 4, 5, 3) * 3
    tables = random_tables(8, longest, VOCABULARY, end_bias=1.0)
    shortest = torch.tensor([1, 3, 2, 4, 2, 1] * 3)
    forced_prefixes = torch.tensor([[NO_TOKEN], [3], [4], [NO_TOKEN], [0], [3]] * 3)
    words = torch.tensor([[NO_TOKEN], [4], [NO_TOKEN], [0], [3], [3]] * 3)

    def found(sentences: list[int]) -> list[list[Hypothesis]]:
        return search(
            tables.only(sentences),
            SearchConfig(beam=beam),
            ShortestLengths(shortest[sentences]),
            ForcedPrefixes(forced_prefixes[sentences]),
            NoRepeatedNgrams(2),
            MustOccur(words[sentences]),
        )

    together = found(list(range(18)))
    for sentences in [4], [7, 3], list(reversed(range(18))):
        assert found(sentences) == [together[sentence] for sentence in sentences]


def test_constraints_may_leave_a_sentence_without_a_translation() -> None:
    tables = random_tables(1, (5, 5), VOCABULARY)
    constraints = ShortestLengths(torch.tensor([5, 1])), NoRepeatedNgrams(1)
    # Three words, none of them twice, are too few for four positions.
    none, some = search(tables, SearchConfig(beam=2), *constraints)
    assert (none, bool(some)) == ([], True)


def test_logits_that_are_not_numbers_are_reported_whatever_the_constraints_are() -> None:
    tables = random_tables(1, (5, 5), VOCABULARY)
    tables.logits[1] = float("nan")
    constraints = ShortestLengths(torch.tensor([2, 2])), NoRepeatedNgrams(2)
    with refuses(DamagedError, "model weights; checkpoint"):
        search(tables, SearchConfig(beam=2), *constraints)


MUST_OCCUR = ((4, 3), (UNK_ID, NO_TOKEN), (NO_TOKEN, NO_TOKEN), (UNK_ID, 4))


def has_words(sentence: int, words: tuple[int, ...]) -> bool:
    return {*MUST_OCCUR[sentence]} - {NO_TOKEN} <= {*words}


@pytest.mark.parametrize("seed", range(2))
def test_the_best_translation_with_the_words_that_must_occur_is_found(seed: int) -> None:
    tables = random_tables(seed, LONGEST, VOCABULARY)
    constraints = Constraints([MustOccur(torch.tensor(MUST_OCCUR))], torch.tensor(LONGEST))
    found = beam_search(table_step, TableState(tables), torch.tensor(LONGEST), WIDE, constraints)
    for sentence, (best,) in enumerate(found):
        assert best.ids == best_permitted(tables, sentence, has_words)


@pytest.mark.parametrize("beam", [3, 7])
@pytest.mark.parametrize("seed", range(2))
def test_improbable_words_that_must_occur_are_found_by_a_narrow_beam(seed: int, beam: int) -> None:
    longest = (5, 5, 5, 5)
    tables = random_tables(seed, longest, VOCABULARY)
    for sentence, words in enumerate(MUST_OCCUR):
        tables.logits[sentence][:, [word for word in words if word != NO_TOKEN]] -= 20.0
    config = SearchConfig(beam=beam, length_penalty=0.6, stop_when="proved")
    found = search(tables, config, MustOccur(torch.tensor(MUST_OCCUR)))
    for sentence, hypotheses in enumerate(found):
        assert has_words(sentence, hypotheses[0].ids)
        assert len({one.ids for one in hypotheses}) == len(hypotheses)
        for one in hypotheses:
            expected = score_of(tables, sentence, one.ids, config.length_penalty)
            assert one.score == pytest.approx(expected, abs=TOLERANCE)
    free = search(tables.only([2]), config)
    assert [found[2]] == free
