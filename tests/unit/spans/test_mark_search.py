"""Marks in a search: compared with all translations that have them, tried one by one."""

from collections.abc import Sequence
from itertools import pairwise, product

import pytest
import torch

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.constraints import Constraints
from nmtkit.decoding.search import Hypothesis, beam_search
from nmtkit.spans.mark_search import WellFormedMarks
from nmtkit.spans.marked_lines import Item
from nmtkit.spans.phrases import WordEdges
from nmtkit.spans.tags import ROOT
from nmtkit.symbols import BOS_ID, EOS_ID
from tests.unit.decoding.tables import Tables, TableState, random_tables, score_of, table_step

VOCABULARY = 9
MARKS = (4, 5, 6, 7, 8)
PLACEHOLDER, INNER = 7, 3
"""A mark that replaces text, and the token that continues a word."""
WIDE = SearchConfig(beam=400, length_penalty=0.6, stop_when="proved")

Tree = tuple[tuple[int, tuple[int, ...]], ...]
"""The parent of each item, and its tokens."""

TREES: tuple[Tree, ...] = (
    ((ROOT, (4, 5)), (0, (6,))),
    ((ROOT, (6,)), (ROOT, (7,))),
    (),
    ((ROOT, (4, 5)), (ROOT, (7,))),
    ((ROOT, (4, 5)), (0, (6, 7))),
)
LONGEST = (5, 5, 3, 6, 6)


def permits(tree: Tree, words: Sequence[int]) -> bool:
    """Return whether all marks of a tree are there, each once, within those of their parents."""
    stack, seen = [ROOT], []
    for word in words:
        if word not in MARKS:
            continue
        number = next((n for n, (_, tokens) in enumerate(tree) if word in tokens), None)
        if number is None:
            return False
        parent, tokens = tree[number]
        if word == tokens[0]:
            if number in seen or stack[-1] != parent:
                return False
            seen.append(number)
            stack += [number] if len(tokens) > 1 else []
        elif stack.pop() != number or any(
            tree[n][0] == number and n not in seen for n in range(len(tree))
        ):
            return False
    return len(seen) == len(tree) and stack == [ROOT]


def splits_a_word(words: Sequence[int]) -> bool:
    """Return whether a tag is before the token that continues a word."""
    text = [place for place, word in enumerate(words) if word not in MARKS or word == PLACEHOLDER]
    return any(
        words[place] == INNER and words[before] != PLACEHOLDER and before + 1 < place
        for before, place in pairwise(text)
    )


def is_prompt(tables: Tables, sentence: int, ids: Sequence[int]) -> bool:
    """Return whether marks follow where the end is the likeliest token."""
    for place, token in enumerate(ids[:-1]):
        log_probs = tables.log_probs(sentence, tuple(ids[:place]))
        is_missing = any(one in MARKS for one in ids[place:])
        if is_missing and token not in MARKS and log_probs[EOS_ID] == max(log_probs):
            return False
    return True


def search(tables: Tables, config: SearchConfig, trees: Sequence[Tree]) -> list[list[Hypothesis]]:
    longest = torch.tensor(tables.max_lengths)
    items = [
        [Item((0, 0), parent, 0, len(own) == 1, own == (PLACEHOLDER,)) for parent, own in tree]
        for tree in trees
    ]
    tokens = [[own for _, own in tree] for tree in trees]
    begins, ends = torch.arange(VOCABULARY) == INNER, torch.arange(VOCABULARY) <= INNER
    edges = WordEdges(begins, ends, begins, ends)
    marks = WellFormedMarks(items, tokens, torch.tensor(MARKS), edges, longest)
    together = Constraints([marks], longest)
    return beam_search(table_step, TableState(tables), longest, config, together, config.beam)


@pytest.mark.parametrize("seed", range(2))
def test_a_wide_search_finds_all_translations_with_the_marks(seed: int) -> None:
    tables = random_tables(seed, LONGEST, VOCABULARY)
    words = [token for token in range(VOCABULARY) if token not in (BOS_ID, EOS_ID)]
    for sentence, found in enumerate(search(tables, WIDE, TREES)):
        expected = {
            (*own, EOS_ID): score_of(tables, sentence, (*own, EOS_ID), WIDE.length_penalty)
            for length in range(LONGEST[sentence])
            for own in product(words, repeat=length)
            if permits(TREES[sentence], own)
            and not splits_a_word(own)
            and is_prompt(tables, sentence, (*own, EOS_ID))
        }
        assert len(expected) > 1
        best = sorted(expected, key=expected.__getitem__, reverse=True)
        assert {one.ids for one in found} == set(best[: WIDE.beam])
        assert found[0].ids == best[0]
        for one in found:
            assert one.score == pytest.approx(expected[one.ids], abs=1e-5)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("bias", [-20.0, 0.0, 20.0])
def test_every_translation_has_the_marks_however_probable_they_are(beam: int, bias: float) -> None:
    for seed in range(4):
        tables = random_tables(seed, LONGEST, VOCABULARY)
        tables.logits[:, :, MARKS] += bias
        config = SearchConfig(beam=beam, length_penalty=0.6)
        for tree, found in zip(TREES, search(tables, config, TREES), strict=True):
            assert found
            for one in found:
                assert permits(tree, one.ids[:-1])
                assert not splits_a_word(one.ids)


@pytest.mark.parametrize("beam", [1, 4])
def test_marks_of_a_sentence_do_not_depend_on_the_batch(beam: int) -> None:
    tables, config = random_tables(1, (6,) * 5, VOCABULARY, end_bias=1.0), SearchConfig(beam=beam)
    together = search(tables, config, TREES)
    for sentence, tree in enumerate(TREES):
        if tree:
            assert search(tables.only([sentence]), config, [tree]) == [together[sentence]]
