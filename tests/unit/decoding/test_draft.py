"""Search with a draft finds what greedy search finds, whatever the draft proposes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import ConstraintsConfig, OutputConfig, TranslationConfig
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.answers import Answer
from nmtkit.decoding.constraints import NO_TOKEN, Constraints
from nmtkit.decoding.draft import Draft, draft_search
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.search import Hypothesis, beam_search
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model.transformer import Transformer
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.codec import TextCodec
from tests.doubles import watch_embedding
from tests.messages import refuses
from tests.tiny import WORDS, tiny_codec, tiny_model
from tests.unit.decoding.tables import Tables, TableState, random_tables, table_step

GREEDY = SearchConfig(beam=1, length_penalty=0.7)
CODEC = tiny_codec()
LINES = [" ".join(WORDS[i * j % 8] for j in range(i % 9 + 1)) for i in range(24)]


class Sequences:
    """The tokens that each sentence has read, and the logits of their tables."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.rows: list[list[int]] = [[] for _ in tables.max_lengths]
        self.num_steps = 0

    def expand(self, width: int) -> None:
        raise AssertionError(width)

    def reorder(self, parents: Tensor) -> None:
        raise AssertionError(parents)

    def keep(self, sentences: Tensor) -> None:
        self.tables = self.tables.only(sentences.tolist())
        self.rows = [self.rows[index] for index in sentences.tolist()]

    def remove_last(self, counts: Sequence[int]) -> None:
        self.rows = [row[: len(row) - count] for row, count in zip(self.rows, counts, strict=True)]


def read(tokens: Tensor, state: Sequences) -> Tensor:
    """Read T tokens of each sentence; look up the logits (B, T, V) after each."""
    state.num_steps += 1
    logits = []
    for index, new in enumerate(tokens.tolist()):
        row = state.rows[index]
        assert (row or new)[0] == BOS_ID
        for token in new:
            row.append(token)
            assert len(row) <= state.tables.max_lengths[index], "beyond the longest hypothesis"
            place = 0
            for one in row[1:]:
                place = place * state.tables.logits.shape[2] + one + 1
            logits.append(state.tables.logits[index, place])
    return torch.stack(logits).view(*tokens.shape, -1)


def drafted(
    tables: Tables, draft: Tables, num_proposed: int, constraints: Constraints | None = None
) -> tuple[list[list[Hypothesis]], Sequences]:
    """Search with a draft; return the hypotheses and the state of the model."""
    state = Sequences(tables)
    proposer = Draft(read, Sequences(draft), num_proposed)
    longest = torch.tensor(tables.max_lengths)
    return draft_search(read, state, proposer, longest, GREEDY, constraints), state


def assert_greedy(
    found: list[list[Hypothesis]], tables: Tables, constraints: Constraints | None = None
) -> None:
    longest = torch.tensor(tables.max_lengths)
    expected = beam_search(table_step, TableState(tables), longest, GREEDY, constraints)
    assert [[one.ids for one in of_one] for of_one in found] == [
        [one.ids for one in of_one] for of_one in expected
    ]
    for (one,), (other,) in zip(found, expected, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)
        assert one.score == pytest.approx(other.score, abs=1e-5)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([-3.0, 0.0, 2.0]),
)
def test_the_result_is_that_of_greedy_search(
    seed: int, longest: list[int], num_proposed: int, noise: float, end_bias: float
) -> None:
    tables = random_tables(seed, tuple(longest), 5, end_bias)
    other = random_tables(seed + 1, tuple(longest), 5, end_bias)
    draft = replace(tables, logits=torch.lerp(tables.logits, other.logits, noise))
    found, _ = drafted(tables, draft, num_proposed)
    assert_greedy(found, tables)


def test_a_perfect_draft_saves_steps_and_a_bad_one_costs_none() -> None:
    tables = random_tables(3, (6,), 5, end_bias=-30.0)
    (best,), state = drafted(tables, tables, 2)[0], drafted(tables, tables, 2)[1]
    assert len(best[0].ids) == 6
    assert state.num_steps == best[0].num_steps == 2  # two proposals and its own token in each
    opposite = replace(tables, logits=-tables.logits)
    found, state = drafted(tables, opposite, 2)
    assert found == [best]
    assert state.num_steps == found[0][0].num_steps == 6


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.data())
def test_constraints_hold_as_in_greedy_search(
    seed: int, num_proposed: int, data: st.DataObject
) -> None:
    tables = random_tables(seed, (5, 3, 5), 6)
    draft = random_tables(seed + 1, (5, 3, 5), 6)
    forced = data.draw(st.lists(st.lists(st.integers(3, 5), max_size=2), min_size=3, max_size=3))
    shortest = data.draw(st.lists(st.integers(1, 3), min_size=3, max_size=3))

    def constraints() -> Constraints:
        rows = [[*ids, *[NO_TOKEN] * (2 - len(ids))] for ids in forced]
        return Constraints(torch.tensor(shortest), torch.tensor(rows), (UNK_ID,))

    found, _ = drafted(tables, draft, num_proposed, constraints())
    assert_greedy(found, tables, constraints())
    for (one,), ids, minimum in zip(found, forced, shortest, strict=True):
        assert list(one.ids[: len(ids)]) == ids
        assert len(one.ids) >= minimum
        assert UNK_ID not in one.ids


def test_no_hypothesis_where_constraints_leave_none() -> None:
    tables = random_tables(1, (3, 3), 4)  # the tokens are UNK, the symbols, and 3
    everything = Constraints(torch.tensor([3, 1]), None, (UNK_ID, 3))
    found, _ = drafted(tables, tables, 2, everything)
    assert found[0] == []
    assert found[1][0].ids == (EOS_ID,)


def test_logits_that_are_not_numbers_are_damage() -> None:
    tables = random_tables(1, (3, 3), 4)
    damaged = replace(tables, logits=tables.logits.clone())
    damaged.logits[1, 0, 3] = torch.nan
    with refuses(DamagedError, "logits"):
        drafted(damaged, tables, 2)


def test_of_equal_tokens_the_end_symbol_is_first() -> None:
    tables = Tables(torch.zeros(1, 21, 4), (3,))
    assert drafted(tables, tables, 2)[0][0][0].ids == (EOS_ID,)


# -------------------------------------------------------------------------------- real models


def answers(
    models: Sequence[Transformer],
    draft: Transformer | None,
    codec: TextCodec = CODEC,
    shortlist: Shortlist | None = None,
    **changed: Any,
) -> list[Answer]:
    recipe = TranslateRecipe(
        search=SearchConfig(beam=1, max_length_offset=6, max_length_ratio=0.5),
        constraints=ConstraintsConfig(min_length_offset=2, ban_unknown=True),
        output=OutputConfig(output_format="json"),
        translation=TranslationConfig(**{"draft_tokens": 3, **changed}),
    )
    requests = [Request(line) for line in LINES] + [Request("a b", "h G c"), Request("")]
    return Translator(models, codec, recipe, print, shortlist, draft).answer(requests, 1)


def same(found: list[Answer], expected: list[Answer], tolerance: float = 1e-4) -> bool:
    """Compare texts and scores."""
    pairs = [
        (one.translations[0], other.translations[0])
        for one, other in zip(found, expected, strict=True)
    ]
    assert [one.log_prob for one, _ in pairs] == pytest.approx(
        [other.log_prob for _, other in pairs], abs=tolerance
    )
    return [one.text for one, _ in pairs] == [other.text for _, other in pairs]


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_translations_of_prepared_models_stay_the_same(precision: torch.dtype) -> None:
    models = [tiny_model(CODEC, seed) for seed in (0, 7)]
    for model in models:
        model.prepare(precision)
    plain = answers(models[:1], None)
    assert same(answers(models[:1], models[1]), plain, tolerance=0.05)


def test_a_step_of_more_tokens_has_fewer_sentences() -> None:
    batches: list[tuple[int, ...]] = []
    model = tiny_model(CODEC, 0)
    watch_embedding(model.source_embedding, batches)
    for num_proposed, largest in ((3, 8), (7, 4), (15, 2), (63, 1)):
        batches.clear()
        answers([model], tiny_model(CODEC, 1), batch_size=8, draft_tokens=num_proposed)
        assert max(map(len, batches)) == largest


@pytest.mark.parametrize("batch_size", [1, 5, 64])
@pytest.mark.parametrize("num_models", [1, 2])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_translations_of_a_model_stay_the_same(
    num_models: int, batch_size: int, positions: str
) -> None:
    models = [tiny_model(CODEC, seed, positions=positions) for seed in range(num_models)]
    draft = tiny_model(CODEC, 7, positions=positions, decoder_layers=1)
    plain = answers(models, None, batch_size=batch_size)
    assert len({one.translations[0].text for one in plain}) > 5
    for one in (draft, models[0]):
        assert same(answers(models, one, batch_size=batch_size), plain)


def test_a_shortlist_restricts_model_and_draft() -> None:
    draw = torch.Generator().manual_seed(1)
    size = CODEC.target.size
    candidates = torch.stack([torch.randperm(size, generator=draw)[:4] for _ in range(size)])
    shortlist = Shortlist(
        candidates.numpy(), torch.tensor([UNK_ID, BOS_ID, EOS_ID]).numpy(), size, CODEC.fingerprint
    )
    model, draft = tiny_model(CODEC, 0), tiny_model(CODEC, 7)
    plain = answers([model], None, shortlist=shortlist)
    assert not same_texts(plain, answers([model], None))
    assert same(answers([model], draft, shortlist=shortlist), plain)


def same_texts(found: list[Answer], expected: list[Answer]) -> bool:
    texts = [[one.translations[0].text for one in answers] for answers in (found, expected)]
    return texts[0] == texts[1]


def test_lines_that_fill_all_learned_positions_stay_the_same() -> None:
    shape = {"positions": "learned", "max_positions": 9}
    model, draft = tiny_model(CODEC, 0, **shape), tiny_model(CODEC, 7, **shape)
    plain = answers([model], None)
    assert (
        max(len(one.translations[0].tokens) for one in plain if one.request.source.count(" ") < 8)
        == 9
    )
    assert same(answers([model], draft), plain)


@pytest.mark.parametrize(
    ("model", "draft", "keys"),
    [
        ({"window": 3}, {}, "attention; --draft"),
        ({}, {"window": 3}, "attention; --draft"),
        ({}, {"positions": "learned", "max_positions": 9}, "--draft 9; --positions sinusoidal"),
    ],
)
def test_a_draft_that_does_not_fit_is_refused(
    model: dict[str, Any], draft: dict[str, Any], keys: str
) -> None:
    with refuses(ConfigError, keys):
        answers([tiny_model(CODEC, 0, **model)], tiny_model(CODEC, 1, **draft))
