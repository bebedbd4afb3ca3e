"""Required phrases: searches are compared with all permitted translations, tried one by one."""

from collections.abc import Sequence
from itertools import product

import pytest
import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.constraints import Constraints
from nmtkit.decoding.search import Hypothesis, beam_search
from nmtkit.spans.phrases import RequiredPhrases, Requirement, WordEdges
from nmtkit.symbols import BOS_ID, EOS_ID
from tests.unit.decoding.tables import (
    Chain,
    Tables,
    TableState,
    random_chain,
    random_tables,
    score_of,
    table_step,
)

VOCABULARY = 6
WORDS = [token for token in range(VOCABULARY) if token not in (BOS_ID, EOS_ID)]  # 0, 3, 4, 5
BEGINS_INSIDE, ENDS_INSIDE = {5}, {4, 5}
INSIDE = (
    torch.tensor([token in BEGINS_INSIDE for token in range(VOCABULARY)]),
    torch.tensor([token in ENDS_INSIDE for token in range(VOCABULARY)]),
)
EDGES = WordEdges(*INSIDE, *INSIDE)
LONGEST = (5, 5, 6, 3, 5)
WIDE = SearchConfig(beam=260, length_penalty=0.6, stop_when="proved")


def required(*phrases: tuple[int, ...], times: int = 1, exact: bool = True) -> Requirement:
    return Requirement(phrases, (0,) * times, longer=0, is_exact=exact)


REQUIRED: tuple[tuple[Requirement, ...], ...] = (
    (required((3, 4)),),
    (required((4,), (0, 3, 0), exact=False),),
    (required((3, 3, 0)), required((4, 5), exact=False)),
    (),
    (required((3,), times=2), required((5,))),
)


def ends_of(phrase: Sequence[int], words: Sequence[int]) -> list[int]:
    """Return where a phrase ends in a translation; it may not begin inside a word."""
    size = len(phrase)
    return [
        end
        for end in range(size, len(words) + 1)
        if tuple(words[end - size : end]) == tuple(phrase)
        and not (phrase[0] in BEGINS_INSIDE and end > size and words[end - size - 1] in ENDS_INSIDE)
    ]


def permits(requirements: Sequence[Requirement], words: tuple[int, ...]) -> bool:
    """Return whether a translation has what is required, as whole words."""
    phrases = [phrase for one in requirements for phrase in one.phrases]
    for one in requirements:
        ends = {end for phrase in one.phrases for end in ends_of(phrase, words)}
        grows = {end for end in ends if words[end - 1] in ENDS_INSIDE}
        grown = {end for end in grows if words[end : end + 1] and words[end] in BEGINS_INSIDE}
        for end in grown:  # only a longer phrase may continue
            beginnings = [phrase[:size] for phrase in phrases for size in range(2, len(phrase) + 1)]
            if not any(end + 1 in ends_of(beginning, words) for beginning in beginnings):
                return False
        num_times = len(ends - grown)
        if num_times < len(one.starts) or (one.is_exact and num_times > len(one.starts)):
            return False
    return True


def search(
    tables: Tables, config: SearchConfig, requirements: Sequence[Sequence[Requirement]]
) -> list[list[Hypothesis]]:
    longest = torch.tensor(tables.max_lengths)
    phrases = RequiredPhrases(requirements, EDGES, longest, config.beam)
    together = Constraints([phrases], longest)
    return beam_search(table_step, TableState(tables), longest, config, together, config.beam)


@pytest.mark.parametrize("seed", range(2))
def test_a_wide_search_finds_all_translations_with_the_phrases(seed: int) -> None:
    tables = random_tables(seed, LONGEST, VOCABULARY)
    for sentence, found in enumerate(search(tables, WIDE, REQUIRED)):
        expected = {
            (*words, EOS_ID): score_of(tables, sentence, (*words, EOS_ID), WIDE.length_penalty)
            for length in range(LONGEST[sentence])
            for words in product(WORDS, repeat=length)
            if permits(REQUIRED[sentence], words)
        }
        assert len(expected) > 1
        best = sorted(expected, key=expected.__getitem__, reverse=True)
        assert found[0].ids == best[0]
        assert {one.ids for one in found} == set(best[: WIDE.beam])
        for one in found:
            assert one.score == pytest.approx(expected[one.ids], abs=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_improbable_phrases_are_found_by_a_narrow_beam(seed: int, beam: int) -> None:
    tables = random_tables(seed, (6,) * len(REQUIRED), VOCABULARY)
    tables.logits[:, :, [3, 4, 5]] -= 15.0
    config = SearchConfig(beam=beam, length_penalty=0.6)
    for requirements, found in zip(REQUIRED, search(tables, config, REQUIRED), strict=True):
        assert found
        for one in found:
            assert permits(requirements, one.ids[:-1])


@pytest.mark.parametrize("beam", [1, 4])
def test_phrases_of_a_sentence_do_not_depend_on_the_batch(beam: int) -> None:
    longest = (6,) * len(REQUIRED)
    tables, config = random_tables(1, longest, VOCABULARY, end_bias=1.0), SearchConfig(beam=beam)
    together = search(tables, config, REQUIRED)
    for sentence, requirements in enumerate(REQUIRED):
        if requirements:
            assert search(tables.only([sentence]), config, [requirements]) == [together[sentence]]


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("start", range(6))
def test_a_phrase_begins_where_the_free_search_attends_to_it(start: int, beam: int) -> None:
    chain, _ = random_chain()

    def step(tokens: Tensor, state: Chain) -> Tensor:
        logits = chain(tokens, state).clone()
        logits[:, :, [30, 40]] -= 15.0
        return logits

    edges = WordEdges(*[torch.zeros(50, dtype=torch.bool)] * 4)
    late = Requirement(((30, 40),), (start,), longer=0, is_exact=True)
    longest = torch.tensor([12])
    phrases = Constraints([RequiredPhrases([[late]], edges, longest, beam)], longest)
    ((best,),) = beam_search(step, Chain(), longest, SearchConfig(beam=beam), phrases)
    earliest = start - (beam > 1)
    assert earliest <= best.ids.index(30) <= earliest + (beam if beam > 1 else 0)


def test_a_length_that_cannot_hold_a_phrase_leaves_no_translation() -> None:
    tables = random_tables(1, (3, 3), VOCABULARY)
    found = search(tables, SearchConfig(beam=4), [[required((3, 4, 0))], [required((3, 4))]])
    assert found[0] == []
    assert [one.ids for one in found[1]] == [(3, 4, EOS_ID)]
