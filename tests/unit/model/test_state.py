"""The decoder's state, compared with a plain model of it.

Each test drives a state as a search does. The plain model is a list of prefixes per sentence, in
which every row has a copy of its whole prefix. Entries carry tags, so prefixes can be compared.
"""

from copy import deepcopy
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmtkit.model.state import ENTRY_BLOCK, DecoderState
from tests.doubles import LargestTensor

LAYERS, HEADS, VALUE_SIZE, SOURCE = 2, 3, 2, 4
KEY_SIZE = 4
SCALE = 0.5
"""Factor for keys of this size; a power of 2, so tags are not rounded."""
HEAD = 1000.0
"""Difference between the tags of two heads."""


@dataclass
class Rows:
    """The state under test and, for each sentence and row, the tags that it must hold."""

    state: DecoderState
    prefixes: list[list[list[float]]]
    memories: list[float]
    window: int
    num_tags: int = 0

    @staticmethod
    def start(num_sentences: int, window: int = 0) -> "Rows":
        memories = [float(sentence) for sentence in range(num_sentences)]
        tagged = torch.tensor(memories)[None, :, None, None, None]
        keys = tagged.expand(LAYERS, -1, HEADS, KEY_SIZE, SOURCE).clone()
        values = tagged.expand(LAYERS, -1, HEADS, SOURCE, VALUE_SIZE).clone()
        lengths = torch.arange(num_sentences) % SOURCE + 1
        mask = torch.arange(SOURCE) < lengths[:, None]
        state = DecoderState((keys, values), mask, (KEY_SIZE, VALUE_SIZE), window)
        return Rows(state, [[[]] for _ in memories], memories, window)

    def step(self) -> None:
        """Append one entry per row, in every layer, and compare all rows."""
        state, shape = self.state, (self.state.num_sentences, self.state.width)
        tags = torch.arange(shape[0] * shape[1]).view(shape) + float(self.num_tags)
        self.num_tags += shape[0] * shape[1]
        for sentence, rows in enumerate(self.prefixes):
            for row, prefix in enumerate(rows):
                prefix.append(float(tags[sentence, row]))
        state.begin_step()
        for layer in range(LAYERS):
            # Each head has tags of its own, and each element of a key and a value is the tag.
            heads = torch.arange(HEADS)[:, None, None] * HEAD
            own = tags[:, None, :, None] + heads + layer / 2  # (B, H, W, 1)
            keys, values = state.append(
                layer, own.expand(-1, -1, -1, KEY_SIZE), -own.expand(-1, -1, -1, VALUE_SIZE)
            )
            expected = [
                [[tag + head * HEAD + layer / 2 for tag in self.seen(prefix)] for prefix in rows]
                for rows in self.prefixes
                for head in range(HEADS)
            ]
            for element in range(KEY_SIZE):
                assert self.visible(keys[:, element] / SCALE) == expected
            for element in range(VALUE_SIZE):
                assert self.visible(-values[:, :, element]) == expected
        self.check_memory()

    def seen(self, prefix: list[float]) -> list[float]:
        return prefix[-self.window :] if self.window else prefix

    def visible(self, entries: Tensor) -> list[list[list[float]]]:
        """Return the sorted tags of the entries (BH, n) that each row may attend to."""
        bias = self.state.prefix_bias
        assert bias.shape == (entries.shape[0], self.state.width, entries.shape[1])
        assert bool(((bias == 0) | (bias == -torch.inf)).all())
        return [
            [sorted(own[is_seen].tolist()) for is_seen in rows]
            for own, rows in zip(entries, bias == 0, strict=True)
        ]

    def check_memory(self) -> None:
        num_matrices = len(self.memories) * HEADS
        of_matrices = [memory for memory in self.memories for _ in range(HEADS)]
        for layer in range(LAYERS):
            keys, values = self.state.memory(layer)
            assert keys.shape == (num_matrices, KEY_SIZE, SOURCE)
            assert values.shape == (num_matrices, SOURCE, VALUE_SIZE)
            assert keys[:, 0, 0].tolist() == values[:, 0, 0].tolist() == of_matrices
        num_visible = (self.state.memory_bias == 0).sum(2).flatten().tolist()
        assert num_visible == [int(memory) % SOURCE + 1 for memory in of_matrices]

    def expand(self, width: int) -> None:
        self.state.expand(width)
        self.prefixes = [[list(rows[0]) for _ in range(width)] for rows in self.prefixes]

    def reorder(self, parents: list[list[int]]) -> None:
        self.state.reorder(torch.tensor(parents))
        self.prefixes = [
            [list(rows[parent]) for parent in order]
            for rows, order in zip(self.prefixes, parents, strict=True)
        ]

    def keep(self, sentences: list[int]) -> None:
        self.state.keep(torch.tensor(sentences))
        self.prefixes = [self.prefixes[s] for s in sentences]
        self.memories = [self.memories[s] for s in sentences]


def draw_parents(data: st.DataObject, rows: Rows) -> list[list[int]]:
    width = rows.state.width
    order = st.lists(st.integers(0, width - 1), min_size=width, max_size=width)
    return [data.draw(order) for _ in rows.prefixes]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 6), st.data())
def test_rows_keep_their_prefix_after_any_reorder_and_keep(
    num_sentences: int, width: int, window: int, data: st.DataObject
) -> None:
    rows = Rows.start(num_sentences, window)
    rows.step()
    rows.expand(width)
    for _ in range(data.draw(st.integers(1, 12))):
        rows.step()
        if data.draw(st.booleans()):
            rows.reorder(draw_parents(data, rows))
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            order = data.draw(st.permutations(range(len(rows.prefixes))))
            rows.keep(list(order)[: data.draw(st.integers(1, len(order)))])
    rows.step()


@given(st.integers(1, 3), st.integers(1, 4), st.data())
def test_two_reorders_equal_their_composition(
    num_sentences: int, width: int, data: st.DataObject
) -> None:
    twice, once = Rows.start(num_sentences), Rows.start(num_sentences)
    for rows in (twice, once):
        rows.expand(width)
        rows.step()
    first, second = draw_parents(data, twice), draw_parents(data, twice)
    twice.state.reorder(torch.tensor(first))
    twice.state.reorder(torch.tensor(second))
    once.reorder(torch.tensor(first).gather(1, torch.tensor(second)).tolist())
    twice.prefixes = deepcopy(once.prefixes)
    twice.step()
    once.step()


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("window", [0, 1, 9, ENTRY_BLOCK + 5])
@pytest.mark.parametrize("parent", [0, -1], ids=["one ancestor", "no reorder"])
def test_growing_and_compacting_changes_no_result(width: int, window: int, parent: int) -> None:
    # All rows continue row 0, so nearly all entries die; or none does, and the storage must grow.
    rows = Rows.start(2, window)
    rows.expand(width)
    for _ in range(2 * ENTRY_BLOCK + 3):
        rows.step()
        if parent == 0:
            rows.reorder([[0] * width] * 2)


def test_one_layer_at_a_time_is_copied_when_storage_grows() -> None:
    rows = Rows.start(2)
    for _ in range(ENTRY_BLOCK):
        rows.step()
    with LargestTensor() as largest:  # type: ignore[no-untyped-call]
        rows.state.begin_step()
    assert largest.num_elements == 2 * HEADS * 2 * ENTRY_BLOCK * KEY_SIZE


def stored_entries(state: DecoderState) -> int:
    new = torch.zeros(2, HEADS, 4, KEY_SIZE), torch.zeros(2, HEADS, 4, VALUE_SIZE)
    keys, _ = state.append(0, *new)
    return keys.shape[2]


def test_dead_entries_are_removed() -> None:
    rows = Rows.start(2)
    rows.expand(4)
    num_steps = 150
    for _ in range(num_steps):
        rows.step()
        rows.reorder([[0, 0, 0, 0], [1, 1, 1, 1]])
    # One of the four entries per step stays alive; up to as many dead ones are still stored.
    assert stored_entries(rows.state) <= 2.5 * num_steps


@pytest.mark.parametrize("window", [1, 12])
def test_with_a_window_storage_does_not_grow_with_the_length(window: int) -> None:
    rows = Rows.start(2, window)
    rows.expand(4)
    sizes = []
    for _ in range(2 * ENTRY_BLOCK):
        rows.step()
        sizes.append(rows.state.prefix_bias.shape[2])
    # Each of four rows attends to `window` entries; as many dead ones may still be stored.
    assert max(sizes[-window:]) <= 2 * max(4 * window, ENTRY_BLOCK)
