"""Beam search against exhaustive and plain-list searches of the same tables."""

import pytest
import torch

from nmtkit.config.schema import SearchConfig, TranslateRecipe, fields_of
from nmtkit.decoding.search import (
    GROUP_SIZE,
    LENGTH_PENALTIES,
    STOP_RULES,
    beam_search,
    length_penalty,
    row_topk,
)
from nmtkit.errors import DamagedError
from nmtkit.symbols import EOS_ID
from tests.messages import refuses
from tests.unit.decoding.tables import (
    Chain,
    Tables,
    TableState,
    best_of_all,
    greedy,
    random_chain,
    random_tables,
    score_of,
    search_in_lists,
    search_tables,
    table_step,
)

TOLERANCE = 1e-5
"""Sums of at most six float32 log-probabilities against float64: a few units of 2**-24 each."""

MIXED_LENGTHS = (3, 1, 5, 2, 5, 4, 1, 3, 5, 2)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_as_wide_as_the_language_finds_the_best_of_all_translations(
    seed: int, alpha: float
) -> None:
    tables = random_tables(seed, (4, 1, 3, 2), vocabulary=5)
    found = search_tables(tables, beam=40, length_penalty=alpha)  # 1 + 3 + 9 + 27 translations
    for sentence, hypotheses in enumerate(found):
        assert hypotheses[0].ids == best_of_all(tables, sentence, alpha)


@pytest.mark.parametrize("seed", range(5))
def test_width_one_is_greedy(seed: int) -> None:
    tables = random_tables(seed, MIXED_LENGTHS, vocabulary=4, end_bias=-1.0)
    found = search_tables(tables, beam=1, length_penalty=0.6)
    for sentence, hypotheses in enumerate(found):
        assert [h.ids for h in hypotheses] == [greedy(tables, sentence)]


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 1.5])
@pytest.mark.parametrize("end_bias", [-2.0, 0.0, 2.0])
def test_the_first_hypothesis_is_that_of_a_plain_search(
    beam: int, alpha: float, end_bias: float
) -> None:
    tables = random_tables(beam, MIXED_LENGTHS, vocabulary=4, end_bias=end_bias)
    found = search_tables(tables, beam, alpha, n_best=1)
    for sentence, hypotheses in enumerate(found):
        score, ids = search_in_lists(tables, sentence, beam, alpha)[0]
        assert hypotheses[0].ids == ids
        assert hypotheses[0].score == pytest.approx(score, abs=TOLERANCE)


@pytest.mark.parametrize("beam", [2, 4])
@pytest.mark.parametrize("n_best", [1, 2])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 4.0])
@pytest.mark.parametrize("end_bias", [-1.0, 1.0])
def test_a_proved_search_has_the_result_of_one_that_never_stops(
    beam: int, n_best: int, alpha: float, end_bias: float
) -> None:
    tables = random_tables(beam, (3, 5, 6, 4) * 15, vocabulary=4, end_bias=end_bias)
    found = search_tables(tables, beam, alpha, n_best, stop_when="proved")
    for sentence, hypotheses in enumerate(found):
        expected = search_in_lists(tables, sentence, beam, alpha, stops_when_full=False)[:n_best]
        assert [h.ids for h in hypotheses] == [ids for _, ids in expected]


def test_greedy_search_ends_with_the_first_end_symbol_whatever_stops_others() -> None:
    tables = random_tables(1, MIXED_LENGTHS, vocabulary=4, end_bias=1.0)
    proved = search_tables(tables, beam=1, length_penalty=2.0, stop_when="proved")
    assert proved == search_tables(tables, beam=1, length_penalty=2.0)


def test_early_stopping_saves_steps() -> None:
    tables = random_tables(7, (6,) * 20, vocabulary=4, end_bias=3.0)
    state = TableState(tables)
    beam_search(table_step, state, torch.tensor(tables.max_lengths), SearchConfig(beam=3))
    assert len(state.num_sentences_of_steps) < 6


@pytest.mark.parametrize(("beam", "n_best"), [(2, 1), (2, 2), (3, 2), (3, 3), (10, 4), (10, 10)])
def test_the_n_best_are_those_of_a_search_without_early_stopping(beam: int, n_best: int) -> None:
    tables = random_tables(11, (3, 4, 5) * 20, vocabulary=4)
    for sentence, hypotheses in enumerate(search_tables(tables, beam, 0.6, n_best)):
        expected = search_in_lists(tables, sentence, beam, 0.6)[:n_best]
        assert [h.ids for h in hypotheses] == [ids for _, ids in expected]


@pytest.mark.parametrize("beam", [1, 3, 50])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_scores_and_log_probs_are_those_of_the_table(beam: int, alpha: float) -> None:
    tables = random_tables(4, MIXED_LENGTHS, vocabulary=5)
    for sentence, hypotheses in enumerate(search_tables(tables, beam, alpha)):
        for h in hypotheses:
            score = score_of(tables, sentence, h.ids, alpha)
            log_prob = score_of(tables, sentence, h.ids, 0.0)
            assert h.score == pytest.approx(score, abs=TOLERANCE)
            assert h.log_prob == pytest.approx(log_prob, abs=TOLERANCE)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_alone_has_the_hypotheses_that_it_has_in_any_batch(beam: int) -> None:
    tables = random_tables(12, MIXED_LENGTHS, vocabulary=4)
    together = search_tables(tables, beam, 0.6)
    for order in torch.randperm(len(MIXED_LENGTHS)).tolist(), [3], [6, 2], list(range(4, 10)):
        # Equal to the last bit: torch computes a row independently of other rows.
        assert search_tables(tables.only(order), beam, 0.6) == [together[s] for s in order]


@pytest.mark.parametrize("pruning_fraction", [0.001, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_when_done_sentences_are_removed(
    seed: int, pruning_fraction: float
) -> None:
    tables = random_tables(seed, MIXED_LENGTHS, vocabulary=4, end_bias=1.0)
    expected = search_tables(tables, 3, 0.6)
    assert search_tables(tables, 3, 0.6, pruning_fraction=pruning_fraction) == expected


def test_done_sentences_are_removed_once_they_are_an_eighth_of_the_batch() -> None:
    longest = (1, 2, 2, *[5] * 14)
    tables = random_tables(1, longest, vocabulary=4)
    tables.logits[:, :, EOS_ID] = -50.0  # none ends before it must
    state = TableState(tables)
    beam_search(table_step, state, torch.tensor(longest), SearchConfig(beam=2))
    assert state.num_sentences_of_steps == [17, 17, 14, 14, 14]


@pytest.mark.parametrize("beam", [1, 3])
def test_among_equal_sums_the_end_symbol_is_first_and_searches_repeat(beam: int) -> None:
    tables = Tables(torch.zeros(4, 400, 7), (4, 4, 3, 4))
    found = search_tables(tables, beam, 0.0)
    assert [hypotheses[0].ids for hypotheses in found] == [(EOS_ID,)] * 4
    assert found == search_tables(tables, beam, 0.0)


def test_of_equal_scores_the_one_that_finished_first_is_the_better() -> None:
    tables = Tables(torch.zeros(1, 21, 4), (2,))
    # A sure second token gives (0, 2) exactly the score of (2,).
    tables.logits[0, 0] = torch.tensor([0.0, -200.0, 0.0, -200.0])
    tables.logits[0, 1] = torch.tensor([-200.0, -200.0, 0.0, -200.0])
    (hypotheses,) = search_tables(tables, 4, 0.0)
    assert hypotheses[0].ids == (EOS_ID,)


@pytest.mark.parametrize("beam", [1, 4])
def test_rounding_errors_do_not_grow_with_the_length_of_translations(beam: int) -> None:
    longest, (step, sum_of) = 500, random_chain()
    config = SearchConfig(beam=beam, length_penalty_form="none")
    (found,) = beam_search(step, Chain(), torch.tensor([longest]), config, n_best=beam)
    for one in found:
        assert len(one.ids) == longest
        # Rounded to float32, each of 500 additions near 1000 may be wrong by 3e-5.
        assert one.log_prob == pytest.approx(sum_of(one.ids), abs=2e-5)


def test_logits_of_low_precision_are_summed_in_float32() -> None:
    tables = random_tables(9, (5, 4), vocabulary=5)
    coarse = Tables(tables.logits.bfloat16(), tables.max_lengths)
    for sentence, hypotheses in enumerate(search_tables(coarse, 3, 0.6)):
        for h in hypotheses:
            expected = score_of(coarse, sentence, h.ids, 0.6)
            assert h.score == pytest.approx(expected, abs=TOLERANCE)


def test_a_model_whose_logits_are_not_numbers_is_reported_as_damaged() -> None:
    tables = random_tables(10, (3, 3), vocabulary=4)
    tables.logits[1] = float("nan")
    with refuses(DamagedError, "logits; translate"):
        search_tables(tables, 2, 0.6)


def test_the_length_penalty_is_equation_14_of_wu_et_al() -> None:
    assert length_penalty(1, SearchConfig(length_penalty=0.6)) == 1
    assert length_penalty(7, SearchConfig(length_penalty=1.0)) == 2
    assert length_penalty(19, SearchConfig(length_penalty=0.5)) == 2
    assert length_penalty(30, SearchConfig(length_penalty=0.0)) == 1


def test_the_length_penalty_may_be_a_power_or_none() -> None:
    power = SearchConfig(length_penalty=0.5, length_penalty_form="power")
    assert length_penalty(16, power) == 4
    assert torch.equal(length_penalty(torch.tensor([1, 4]), power), torch.tensor([1.0, 2.0]))
    assert length_penalty(16, SearchConfig(length_penalty_form="none")) == 1


@pytest.mark.parametrize("count", [1, 4, 20])
@pytest.mark.parametrize("size", [20, 63, GROUP_SIZE, 5 * GROUP_SIZE - 1, 9 * GROUP_SIZE + 17])
def test_row_topk_equals_sorting(size: int, count: int) -> None:
    values = torch.randn(6, size, generator=torch.Generator().manual_seed(size + count))
    values[0, 5:] = float("-inf")
    values[1:4] = values[1:4].round()  # many equal values
    best, indices = row_topk(values, count)
    assert torch.equal(best, values.sort(descending=True).values[:, :count])
    assert torch.equal(best, values.gather(1, indices))
    assert all(len(set(row)) == count for row in indices.tolist())


def test_settings_name_exactly_the_existing_stop_rules_and_length_penalties() -> None:
    fields = fields_of(TranslateRecipe)
    assert fields["stop_when"].choices == tuple(STOP_RULES)
    assert fields["length_penalty_form"].choices == tuple(LENGTH_PENALTIES)


@pytest.mark.parametrize("form", LENGTH_PENALTIES)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 10.0])
def test_a_length_penalty_never_falls_and_is_equal_for_numbers_and_tensors(
    form: str, alpha: float
) -> None:
    config = SearchConfig(length_penalty=alpha, length_penalty_form=form)
    lengths = list(range(1, 40))
    numbers = [length_penalty(length, config) for length in lengths]
    assert numbers == sorted(numbers)
    tensor = length_penalty(torch.tensor(lengths, dtype=torch.float64), config)
    assert tensor.tolist() == pytest.approx(numbers, rel=1e-12)  # pow of torch and of Python


def test_a_length_penalty_is_an_entry_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LENGTH_PENALTIES, "linear", lambda length, alpha: 1 + alpha * length)
    config = SearchConfig(beam=4, length_penalty=2.0, length_penalty_form="linear")
    tables = random_tables(11, MIXED_LENGTHS, vocabulary=4)
    state = TableState(tables)
    for found in beam_search(table_step, state, torch.tensor(tables.max_lengths), config):
        for one in found:
            assert one.score == pytest.approx(one.log_prob / (1 + 2 * len(one.ids)))
