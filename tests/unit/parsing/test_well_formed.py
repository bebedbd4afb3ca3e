"""The permitted outputs are compared with all sequences of tokens."""

from functools import cache
from itertools import islice, product
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import SearchConfig
from nmtkit.config.translation import SamplingConfig
from nmtkit.decoding.constraints import Constraints
from nmtkit.decoding.sampling import SamplingSpec, sample
from nmtkit.decoding.search import Hypothesis, beam_search
from nmtkit.parsing.linearize import linearize, restore
from nmtkit.parsing.treebank import clean
from nmtkit.parsing.trees import Tree, read_trees
from nmtkit.parsing.vocabulary import TREE_VOCABULARIES, TreeTokens
from nmtkit.parsing.well_formed import (
    LONGEST_CHAIN,
    OTHER_TOKENS,
    RULES,
    TokenClasses,
    WellFormed,
)
from nmtkit.symbols import EOS_ID
from nmtkit.text.lines import read_lines
from tests.shared_data import needs_data
from tests.trees import TREE_FILES, chain_of, identifier
from tests.unit.decoding.tables import Tables, TableState, random_tables, score_of, table_step

ENTRIES = ["(S", ")S", "(NP", ")NP", "XX"]
TOKENS = TreeTokens(ENTRIES)
LONGEST = (7, 7, 6, 3)
NUM_WORDS = (1, 2, 3, 1)  # the last sentence has no room for a tree
WIDE = SearchConfig(beam=300, length_penalty=0.6)

Ids = tuple[int, ...]

in_each_linearization = pytest.mark.parametrize("linearization", RULES)


def is_tree(ids: Ids, num_words: int, linearization: str) -> bool:
    """Return whether ids are a whole tree: restoring a tree from them changes nothing."""
    tokens = TOKENS.decode(ids).split()
    if tokens.count("XX") != num_words:
        return False
    tree = restore(tokens, ["word"] * num_words, linearization)
    return bool(tree.children) and linearize(tree, True, linearization) == tokens


@cache
def all_trees(num_words: int, longest: int, linearization: str) -> set[Ids]:
    candidates = (
        (*ids, EOS_ID)
        for length in range(num_words + OTHER_TOKENS - 1, longest)
        for ids in product(range(3, TOKENS.size), repeat=length)
    )
    return {ids for ids in candidates if is_tree(ids, num_words, linearization)}


def well_formed(linearization: str) -> WellFormed:
    classes = TokenClasses.of(TOKENS, torch.device("cpu"))
    limits = torch.tensor(NUM_WORDS), torch.tensor(LONGEST), LONGEST_CHAIN
    return WellFormed(classes, RULES[linearization], *limits)


def search(
    tables: Tables, config: SearchConfig, linearization: str = "brackets"
) -> list[list[Hypothesis]]:
    longest = torch.tensor(tables.max_lengths)
    constraints = Constraints([well_formed(linearization)], longest)
    return beam_search(table_step, TableState(tables), longest, config, constraints, config.beam)


def reachable_outputs(
    tokens: TreeTokens, num_words: int, longest: int, longest_chain: int
) -> set[Ids]:
    """Return all complete outputs that permitted tokens can reach."""
    classes, rules = TokenClasses.of(tokens, torch.device("cpu")), RULES[tokens.linearization]
    limits = torch.tensor([num_words]), torch.tensor([longest]), longest_chain
    ended: set[Ids] = set()
    prefixes: list[Ids] = [()]
    for position in range(longest):
        rows = torch.tensor(prefixes, dtype=torch.int64).view(1, len(prefixes), position)
        mask = WellFormed(classes, rules, *limits).permitted(rows)[0]
        assert bool(mask.any(1).all()), "every prefix can be continued"
        longer = [(*prefixes[row], token) for row, token in mask.nonzero().tolist()]
        ended.update(ids for ids in longer if ids[-1] == EOS_ID)
        prefixes = [ids for ids in longer if ids[-1] != EOS_ID]
        if not prefixes:
            break
    assert not prefixes, "every prefix ends within the longest length"
    return ended


@cache
def forests(num_words: int, longest: int) -> tuple[tuple[Tree, ...], ...]:
    """Return all sequences of trees over `num_words` words with at most `longest` tokens."""
    if not num_words:
        return ((),)
    found: list[tuple[Tree, ...]] = []
    for here in range(1, num_words + 1):
        firsts = [Tree("XX", (), "word")] if here == 1 else []
        firsts += [Tree("S", inside) for inside in forests_in(here, longest - 2)]
        for first in firsts:
            rest = longest - len(linearize(first, False, "brackets"))
            found += [(first, *others) for others in forests_in(num_words - here, rest)]
    return tuple(found)


def forests_in(num_words: int, longest: int) -> tuple[tuple[Tree, ...], ...]:
    return forests(num_words, longest) if longest >= num_words else ()


@in_each_linearization
@pytest.mark.parametrize("sentence", [0, 1, 2])
def test_exactly_the_trees_are_permitted(sentence: int, linearization: str) -> None:
    limits = NUM_WORDS[sentence], LONGEST[sentence]
    expected = all_trees(*limits, linearization)
    assert len(expected) > 1
    tokens = TREE_VOCABULARIES[linearization](ENTRIES)
    assert reachable_outputs(tokens, *limits, LONGEST_CHAIN) == expected


@in_each_linearization
@pytest.mark.parametrize("longest_chain", [1, 2, 3])
@pytest.mark.parametrize(("num_words", "longest"), [(1, 12), (2, 14), (3, 13), (4, 13)])
def test_only_short_chains_are_permitted(
    num_words: int, longest: int, longest_chain: int, linearization: str
) -> None:
    trees = [forest[0] for forest in forests(num_words, longest - 1) if len(forest) == 1]
    chains = {
        " ".join(linearize(one, False, linearization)): chain_of(one)
        for one in trees
        if one.children
    }
    short = {tokens for tokens, chain in chains.items() if chain <= longest_chain}
    assert 0 < len(short) < len(chains)
    tokens = TREE_VOCABULARIES[linearization](["(S", ")S", "XX"])
    found = reachable_outputs(tokens, num_words, longest, longest_chain)
    assert {tokens.decode(ids) for ids in found} == short


@in_each_linearization
@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_is_wide_enough_finds_the_best_tree(seed: int, linearization: str) -> None:
    tables = random_tables(seed, LONGEST, TOKENS.size)
    for sentence, hypotheses in enumerate(search(tables, WIDE, linearization)[:3]):
        permitted = all_trees(NUM_WORDS[sentence], LONGEST[sentence], linearization)
        assert {one.ids for one in hypotheses} == permitted
        for one in hypotheses:
            expected = score_of(tables, sentence, one.ids, WIDE.length_penalty)
            assert one.score == pytest.approx(expected, abs=1e-5)  # sums over V are float32


@in_each_linearization
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_narrow_search_finds_trees(beam: int, linearization: str) -> None:
    tables = random_tables(beam, LONGEST, TOKENS.size)
    found = search(tables, SearchConfig(beam=beam), linearization)
    for sentence, hypotheses in enumerate(found[:3]):
        assert hypotheses
        assert all(is_tree(one.ids, NUM_WORDS[sentence], linearization) for one in hypotheses)


def test_a_sentence_without_room_for_a_tree_is_free() -> None:
    tables = random_tables(1, LONGEST, TOKENS.size)
    free = beam_search(
        table_step, TableState(tables), torch.tensor(LONGEST), SearchConfig(beam=3), None, 3
    )
    assert search(tables, SearchConfig(beam=3))[3] == free[3]


def test_a_free_search_finds_the_same_if_trees_are_likely() -> None:
    tables = random_tables(1, LONGEST, TOKENS.size)
    for prefix in all_trees(2, LONGEST[1], "brackets"):
        row = 0
        for token in prefix:
            tables.logits[1, row, token] += 30
            row = row * TOKENS.size + token + 1
    config = SearchConfig(beam=4)
    longest = torch.tensor(LONGEST)
    free = beam_search(table_step, TableState(tables), longest, config, None, 4)
    assert search(tables, config)[1][0] == free[1][0]


@in_each_linearization
def test_samples_are_trees(linearization: str) -> None:
    tables = random_tables(2, LONGEST, TOKENS.size)
    draws = SamplingSpec(SamplingConfig(sample=True), torch.arange(4)[:, None], 20)
    longest, config = torch.tensor(LONGEST), SearchConfig()
    constraints = Constraints([well_formed(linearization)], longest)
    found = sample(table_step, TableState(tables), longest, draws, config, constraints)
    for sentence, hypotheses in enumerate(found[:3]):
        assert all(is_tree(one.ids, NUM_WORDS[sentence], linearization) for one in hypotheses)


def test_a_bracket_without_a_counterpart_is_never_opened() -> None:
    tokens = TreeTokens(["(S", ")S", "(NP", ")VP", "XX"])
    classes = TokenClasses.of(tokens, torch.device("cpu"))
    limits = torch.tensor([1]), torch.tensor([9]), LONGEST_CHAIN
    trees = WellFormed(classes, RULES["brackets"], *limits)
    first = trees.permitted(torch.zeros(1, 1, 0, dtype=torch.int64))
    assert [tokens.piece(index) for *_, index in first.nonzero().tolist()] == ["(S"]


@needs_data
@pytest.mark.parametrize("path", TREE_FILES, ids=identifier)
def test_trees_of_treebanks_are_permitted(path: Path) -> None:
    cleaned = map(clean, read_trees(islice(read_lines(path), 300), str(path), None))
    assert max(chain_of(tree) for tree in cleaned if tree) <= LONGEST_CHAIN / 2
