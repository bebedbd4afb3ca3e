"""Samples follow the given distribution, and depend only on seed, key and position."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.config.translation import SamplingConfig
from nmtkit.decoding.constraints import (
    BannedToken,
    Constraints,
    ForcedPrefixes,
    NoRepeatedNgrams,
    ShortestLengths,
)
from nmtkit.decoding.sampling import SamplingSpec, sample
from nmtkit.decoding.search import Hypothesis
from nmtkit.errors import DamagedError
from nmtkit.symbols import BOS_ID, EOS_ID
from tests.messages import refuses
from tests.unit.decoding.tables import (
    Chain,
    Tables,
    TableState,
    random_chain,
    random_tables,
    score_of,
    table_step,
)

NEUTRAL = SearchConfig(length_penalty=0.6)
MANY = 10_000


def draw(
    tables: Tables,
    config: SamplingConfig,
    num_samples: int = 3,
    keys: Sequence[int | tuple[int, int]] = (),
    seed: int = 1,
) -> list[list[Hypothesis]]:
    longest = torch.tensor(tables.max_lengths)
    numbers = torch.tensor(keys or range(len(longest))).view(len(longest), -1)
    draws = SamplingSpec(replace(config, seed=seed), numbers, num_samples)
    return sample(table_step, TableState(tables), longest, draws, NEUTRAL)


def first_tokens(tables: Tables, config: SamplingConfig) -> Counter[int]:
    """Count the first tokens of many translations of the only sentence."""
    (hypotheses,) = draw(tables, config, MANY)
    return Counter(one.ids[0] for one in hypotheses)


def chi_square(counts: Counter[int], probs: Tensor) -> float:
    expected = (probs * MANY).tolist()
    assert all(expected[token] > 0 for token in counts)
    return math.fsum(
        (counts[token] - count) ** 2 / count for token, count in enumerate(expected) if count > 0
    )


def distribution(tables: Tables, temperature: float = 1.0) -> Tensor:
    """Return the probabilities of the first token, without the begin symbol's."""
    logits = tables.logits[0, 0].double()
    log_probs = logits.log_softmax(0)
    log_probs[BOS_ID] = -math.inf
    return (log_probs / temperature).softmax(0)


# 99.9 % quantiles of the chi-square distribution.
QUANTILES = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 8: 26.12}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_those_of_the_softmax(temperature: float) -> None:
    tables = random_tables(3, (2,), vocabulary=10)
    counts = first_tokens(tables, SamplingConfig(sample=True, temperature=temperature))
    assert chi_square(counts, distribution(tables, temperature)) < QUANTILES[8]


@pytest.mark.parametrize("top_k", [2, 4])
def test_top_k_draws_among_the_likeliest(top_k: int) -> None:
    tables = random_tables(4, (2,), vocabulary=10)
    probs = distribution(tables)
    least = probs.sort(descending=True).values[top_k - 1]
    expected = probs.masked_fill(probs < least, 0.0)
    counts = first_tokens(tables, SamplingConfig(sample=True, top_k=top_k))
    assert len(counts) == top_k
    assert chi_square(counts, expected / expected.sum()) < QUANTILES[top_k - 1]


KNOWN = {0: 0.5, 3: 0.25, 4: 0.15, 5: 0.1}
"""The probabilities of the first token in `known_tables`."""


def known_tables() -> Tables:
    tables = Tables(torch.full((1, 7, 6), -50.0), (2,))
    for token, prob in KNOWN.items():
        tables.logits[0, 0, token] = math.log(prob)
    return tables


def test_top_p_draws_among_the_fewest_that_have_the_probability() -> None:
    tables = known_tables()
    for top_p, tokens in ((0.4, {0}), (0.6, {0, 3}), (0.8, {0, 3, 4}), (0.999, {*KNOWN})):
        counts = first_tokens(tables, SamplingConfig(sample=True, top_p=top_p))
        assert set(counts) == tokens
    counts = first_tokens(tables, SamplingConfig(sample=True, top_p=0.6))
    expected = torch.tensor([2 / 3, 0, 0, 1 / 3, 0, 0])
    assert chi_square(counts, expected) < QUANTILES[1]


def test_the_epsilon_cutoff_drops_tokens_below_it_except_the_likeliest() -> None:
    tables = known_tables()
    for epsilon, tokens in ((0.05, {*KNOWN}), (0.12, {0, 3, 4}), (0.2, {0, 3}), (0.9, {0})):
        counts = first_tokens(tables, SamplingConfig(sample=True, epsilon_cutoff=epsilon))
        assert set(counts) == tokens
    counts = first_tokens(tables, SamplingConfig(sample=True, epsilon_cutoff=0.2))
    assert chi_square(counts, torch.tensor([2 / 3, 0, 0, 1 / 3, 0, 0])) < QUANTILES[1]
    # The probabilities are those after temperature (0.725, 0.181, 0.065, 0.029), and after top-p.
    cold = SamplingConfig(sample=True, temperature=0.5, epsilon_cutoff=0.04)
    assert set(first_tokens(tables, cold)) == {0, 3, 4}
    nucleus = SamplingConfig(sample=True, top_p=0.6, epsilon_cutoff=0.3)
    assert set(first_tokens(tables, nucleus)) == {0, 3}


def test_the_epsilon_cutoff_alone_draws_as_after_a_top_k_without_effect() -> None:
    """Alone, only the likeliest tokens are looked at; a top-k of all tokens looks at all."""
    tables = random_tables(9, (3, 2, 3, 1, 3), vocabulary=12)
    for temperature, epsilon in ((1.0, 0.1), (0.7, 0.12), (1.5, 0.3)):
        alone = SamplingConfig(sample=True, temperature=temperature, epsilon_cutoff=epsilon)
        assert draw(tables, alone, 50) == draw(tables, replace(alone, top_k=12), 50)


def test_later_tokens_follow_the_distribution_of_their_prefix() -> None:
    tables = random_tables(6, (3,), vocabulary=4)
    (hypotheses,) = draw(tables, SamplingConfig(sample=True), MANY)
    counts = Counter(one.ids for one in hypotheses)
    # The end symbol is certain at the last position; the others get the begin symbol's probability.
    total = 0.0
    for ids, count in counts.items():
        prob = 1.0
        for place, token in enumerate(ids[:2]):
            log_probs = torch.tensor(tables.log_probs(0, ids[:place])).double()
            log_probs[BOS_ID] = -math.inf
            prob *= float(log_probs.softmax(0)[token])
        total += prob
        assert abs(count - prob * MANY) < 5 * math.sqrt(prob * MANY) + 1
    assert total == pytest.approx(1, abs=0.01)


def test_scores_do_not_depend_on_the_settings_of_sampling() -> None:
    tables = random_tables(7, (3, 5, 4), vocabulary=5)
    config = SamplingConfig(sample=True, temperature=0.5, top_k=3, top_p=0.9, epsilon_cutoff=0.01)
    for sentence, hypotheses in enumerate(draw(tables, config, 20)):
        for one in hypotheses:
            assert one.ids[-1] == EOS_ID
            assert BOS_ID not in one.ids
            assert len(one.ids) <= tables.max_lengths[sentence]
            assert one.score == pytest.approx(score_of(tables, sentence, one.ids, 0.6), abs=1e-5)
            assert one.log_prob == pytest.approx(score_of(tables, sentence, one.ids, 0), abs=1e-5)


def test_samples_depend_only_on_seed_and_key() -> None:
    tables = random_tables(8, (5, 4, 5, 3, 5), vocabulary=8)
    config = SamplingConfig(sample=True)
    together = draw(tables, config, 4, [10, 11, 12, 13, 14])
    assert draw(tables.only([3, 0]), config, 4, [13, 10]) == [together[3], together[0]]
    assert draw(tables.only([2]), config, 2, [12]) == [together[2][:2]]
    assert draw(tables, config, 4, [10, 11, 12, 13, 14], seed=2) != together
    same = draw(tables.only([1, 1]), config, 4, [20, 21])
    assert same[0] != same[1]
    # Part 20 of line 1 is another than part 1 of line 20.
    swapped = draw(tables.only([1, 1]), config, 4, [(20, 1), (1, 20)])
    assert swapped[0] != swapped[1]
    # Another seed does not give the samples of the next line.
    shifted = draw(tables.only([1]), config, 4, [20], seed=2)
    assert shifted[0] != same[1]


def test_constraints_hold_for_samples() -> None:
    tables = random_tables(9, (5, 5), vocabulary=5, end_bias=3.0)
    longest = torch.tensor(tables.max_lengths)
    each = (
        ShortestLengths(torch.tensor([4, 1])),
        ForcedPrefixes(torch.tensor([[3, 3], [4, -1]])),
        BannedToken(0),
        NoRepeatedNgrams(3),
    )
    constraints = Constraints(each, longest)
    draws = SamplingSpec(SamplingConfig(sample=True), torch.arange(2)[:, None], 200)
    found = sample(table_step, TableState(tables), longest, draws, NEUTRAL, constraints)
    assert {one.ids[:2] for one in found[0]} == {(3, 3)}
    assert {one.ids[0] for one in found[1]} == {4}
    assert min(len(one.ids) for one in found[0]) == 4
    assert not any(0 in one.ids for hypotheses in found for one in hypotheses)


def test_the_end_symbol_follows_where_constraints_forbid_all() -> None:
    tables = random_tables(9, (9,), vocabulary=4)
    draws = SamplingSpec(SamplingConfig(sample=True), torch.arange(1)[:, None], 5)
    longest = torch.tensor([9])
    constraints = Constraints([ShortestLengths(longest), NoRepeatedNgrams(1)], longest)
    (found,) = sample(table_step, TableState(tables), longest, draws, NEUTRAL, constraints)
    assert {len(one.ids) for one in found} == {3}


def test_logits_that_are_not_numbers_are_reported() -> None:
    tables = random_tables(1, (3,), vocabulary=4)
    tables.logits[0, 0] = float("nan")
    with refuses(DamagedError, "logits"):
        draw(tables, SamplingConfig(sample=True))


def test_rounding_errors_do_not_grow_with_the_length_of_samples() -> None:
    longest, (step, sum_of) = 500, random_chain()
    draws = SamplingSpec(SamplingConfig(sample=True), torch.arange(1)[:, None], 3)
    (found,) = sample(step, Chain(), torch.tensor([longest]), draws, NEUTRAL)
    for one in found:
        assert len(one.ids) == longest
        # Rounded to float32, each of 500 additions near 1500 may be wrong by 6e-5.
        assert one.log_prob == pytest.approx(sum_of(one.ids), abs=5e-5)
