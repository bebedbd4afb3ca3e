"""Models of a few tokens whose distributions are in a table, and searches in plain lists.

A table has logits for each sentence and each prefix, so a distribution depends on the whole prefix.
The searches here follow the definition in nmtkit/decoding/search.py literally, and share no code
with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.search import PRUNING_FRACTION, Hypothesis, Step, beam_search
from nmtkit.symbols import BOS_ID, EOS_ID


@dataclass(frozen=True)
class Tables:
    """Logits (B, P, V) of P prefixes, and the longest translation of each of the B sentences.

    The empty prefix has index 0; prefix p and token t make the prefix p * V + t + 1.
    """

    logits: Tensor
    max_lengths: tuple[int, ...]

    def only(self, sentences: list[int]) -> "Tables":
        return Tables(self.logits[sentences], tuple(self.max_lengths[s] for s in sentences))

    def log_probs(self, sentence: int, prefix: tuple[int, ...]) -> list[float]:
        row = 0
        for token in prefix:
            row = row * self.logits.shape[2] + token + 1
        logits: list[float] = self.logits[sentence, row].double().log_softmax(0).tolist()
        return logits


def random_tables(
    seed: int, max_lengths: tuple[int, ...], vocabulary: int, end_bias: float = 0.0
) -> Tables:
    """Tables of normal logits with deviation 1.5; a bias makes the end symbol likelier."""
    generator = torch.Generator().manual_seed(seed)
    num_prefixes = sum(vocabulary**length for length in range(max(max_lengths)))
    shape = (len(max_lengths), num_prefixes, vocabulary)
    logits = 1.5 * torch.randn(shape, generator=generator)
    logits[:, :, EOS_ID] += end_bias
    return Tables(logits, max_lengths)


class TableState:
    """The prefix that each row (B, W) has read."""

    def __init__(self, tables: Tables) -> None:
        self.logits = tables.logits
        self.prefixes: Tensor | None = None
        self.num_sentences_of_steps: list[int] = []

    def expand(self, width: int) -> None:
        assert self.prefixes is not None
        assert self.prefixes.shape[1] == 1
        self.prefixes = self.prefixes.repeat(1, width)

    def reorder(self, parents: Tensor) -> None:
        assert self.prefixes is not None
        self.prefixes = self.prefixes.gather(1, parents)

    def keep(self, sentences: Tensor) -> None:
        assert self.prefixes is not None
        self.prefixes = self.prefixes[sentences]
        self.logits = self.logits[sentences]


def table_step(tokens: Tensor, state: TableState) -> Tensor:
    """Look up the logits (B, W, V) after one more token; beyond the table, of any row."""
    num_sentences, num_prefixes, vocabulary = state.logits.shape
    state.num_sentences_of_steps.append(num_sentences)
    if state.prefixes is None:
        assert tokens.tolist() == [[BOS_ID]] * num_sentences
        state.prefixes = torch.zeros_like(tokens)
    else:
        assert tokens.shape == state.prefixes.shape
        state.prefixes = state.prefixes * vocabulary + tokens + 1
    rows = state.prefixes % num_prefixes
    return state.logits.gather(1, rows[:, :, None].expand(-1, -1, vocabulary))


def search_tables(
    tables: Tables,
    beam: int,
    length_penalty: float,
    n_best: int | None = None,
    pruning_fraction: float = PRUNING_FRACTION,
    stop_when: str = "finished",
) -> list[list[Hypothesis]]:
    """Run the search under test; `n_best` is the beam width by default."""
    config = SearchConfig(beam=beam, length_penalty=length_penalty, stop_when=stop_when)
    longest = torch.tensor(tables.max_lengths)
    return beam_search(
        table_step,
        TableState(tables),
        longest,
        config,
        n_best=n_best or config.beam,
        pruning_fraction=pruning_fraction,
    )


def score_of(tables: Tables, sentence: int, ids: tuple[int, ...], length_penalty: float) -> float:
    """Score a translation, token by token."""
    total = sum(tables.log_probs(sentence, ids[:i])[token] for i, token in enumerate(ids))
    return total / float(((5 + len(ids)) / 6) ** length_penalty)


def best_of_all(tables: Tables, sentence: int, length_penalty: float) -> tuple[int, ...]:
    """Find the best translation by trying every one."""
    vocabulary = tables.logits.shape[2]
    words = [token for token in range(vocabulary) if token not in (BOS_ID, EOS_ID)]
    candidates = [
        (*prefix, EOS_ID)
        for length in range(tables.max_lengths[sentence])
        for prefix in product(words, repeat=length)
    ]
    return max(candidates, key=lambda ids: score_of(tables, sentence, ids, length_penalty))


def greedy(tables: Tables, sentence: int) -> tuple[int, ...]:
    """Take the most probable token at each step."""
    ids: tuple[int, ...] = ()
    while len(ids) < tables.max_lengths[sentence] - 1:
        log_probs = tables.log_probs(sentence, ids)
        log_probs[BOS_ID] = float("-inf")
        ids = (*ids, log_probs.index(max(log_probs)))
        if ids[-1] == EOS_ID:
            return ids
    return (*ids, EOS_ID)


def search_in_lists(
    tables: Tables, sentence: int, beam: int, length_penalty: float, stops_when_full: bool = True
) -> list[tuple[float, tuple[int, ...]]]:
    """Search for one sentence, without stopping by a proof: (score, ids), best first."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    longest = tables.max_lengths[sentence]
    for length in range(1, longest + 1):
        candidates = [
            (total + log_prob, (*prefix, token))
            for total, prefix in live
            for token, log_prob in enumerate(tables.log_probs(sentence, prefix))
            if token == EOS_ID or (token != BOS_ID and length < longest)
        ]
        candidates.sort(key=lambda candidate: -candidate[0])
        penalty = ((5 + length) / 6) ** length_penalty
        ended = [c for c in candidates[:beam] if c[1][-1] == EOS_ID]
        finished += [(total / penalty, ids) for total, ids in ended]
        live = [c for c in candidates if c[1][-1] != EOS_ID][:beam]
        if stops_when_full and len(finished) >= beam:
            break
    return sorted(finished, key=lambda hypothesis: -hypothesis[0])[:beam]


class Chain:
    """The state of a model that depends only on the last token: there is nothing to reorder."""

    def expand(self, width: int) -> None:
        del width

    def reorder(self, parents: Tensor) -> None:
        del parents

    def keep(self, sentences: Tensor) -> None:
        del sentences


def random_chain() -> tuple[Step[Chain], Callable[[tuple[int, ...]], float]]:
    """Make a model of 50 tokens that almost never ends, and a function that scores its outputs."""
    table = torch.randn(50, 50, generator=torch.Generator().manual_seed(4))
    table[:, EOS_ID] = -30.0
    log_probs = table.double().log_softmax(-1)

    def sum_of(ids: tuple[int, ...]) -> float:
        return float(log_probs[[BOS_ID, *ids[:-1]], list(ids)].sum())

    return lambda tokens, _: table[tokens], sum_of
