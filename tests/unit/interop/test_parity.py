"""Two models are compared by the scores of pairs; a difference is an error that shows it."""

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import sentencepiece
import torch

from nmtkit.config import model as model_config
from nmtkit.config.model import ModelConfig
from nmtkit.config.problems import Problem
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.interop import ctranslate2, marian
from nmtkit.interop.parity import (
    MAX_SHORT_TOKENS,
    NUM_LONG,
    SOURCE,
    TARGET,
    TOLERANCE,
    Pair,
    Peer,
    Scorer,
    check_parity,
    draw_pairs,
    import_extra,
    num_positions,
    own_scores,
    parity_line,
    quantization_line,
    write_sentencepiece,
)
from nmtkit.model.embedding import LearnedPositions
from nmtkit.packed import pack_sequences
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.text.codec import TextCodec
from tests.conversions import random_model, separate_codec, shared_codec
from tests.messages import refuses
from tests.tiny import tiny_codec, tiny_model

OUT = Path("out")


def peer_that_adds(difference: float, place: int) -> Peer:
    """Return a peer whose score of one pair differs from ours."""
    loaded = random_model(shared_codec(), {})

    def score(pairs: Sequence[Pair]) -> list[float]:
        scores = own_scores(loaded.model, pairs)
        scores[place] += difference
        return scores

    return Peer("library 1.2", 2000, score)


@torch.inference_mode()
def test_a_score_is_the_sum_of_the_steps_log_probabilities() -> None:
    codec = tiny_codec()
    model = tiny_model(codec)
    pairs = draw_pairs(codec, longest=50)[:5]
    for pair, score in zip(pairs, own_scores(model, pairs), strict=True):
        state = model.start(model.encode(pack_sequences([pair.source_ids], torch.device("cpu"))))
        total = 0.0
        for token, following in zip([BOS_ID, *pair.target_ids], pair.target_ids, strict=False):
            logits = model.step(torch.tensor([[token]]), state)[0, 0]
            total += logits.log_softmax(-1)[following].item()
        assert score == pytest.approx(total, abs=1e-4)


def test_pairs_are_text_with_its_ids() -> None:
    codec = separate_codec()
    pairs = draw_pairs(codec, longest=2000)
    assert pairs == draw_pairs(codec, longest=2000)
    for pair in pairs:
        assert pair.source_ids == codec.encode_source(pair.source)
        assert pair.target_ids == codec.encode_target(pair.target)
    short, long = pairs[:-NUM_LONG], pairs[-NUM_LONG:]
    assert max(len(pair.target_ids) for pair in short) < 100
    assert min(len(ids) for pair in long for ids in (pair.source_ids, pair.target_ids)) > 200
    drawn = {index for pair in pairs for index in pair.source_ids}
    assert len(drawn) > 0.5 * codec.source.size


def test_pairs_are_truncated_to_the_longest_sequence_of_the_model() -> None:
    loaded = random_model(shared_codec(), {"positions": "learned", "max_positions": 5})
    pairs = draw_pairs(loaded.codec, longest=5)
    assert {pair.source_ids[-1] for pair in pairs} == {EOS_ID}
    assert max(len(pair.source_ids) for pair in pairs) == 5
    for limit in (2000, 3):
        asked: list[Pair] = []
        same = Peer("library 1.2", limit, remembering(loaded, asked))
        assert check_parity(loaded, same, OUT) == 0.0
        assert max(len(pair.target_ids) for pair in asked) == min(5, limit)


def remembering(loaded: LoadedModel, asked: list[Pair]) -> Scorer:
    """Return a scorer with the model's scores that records the pairs."""

    def score(pairs: Sequence[Pair]) -> list[float]:
        asked.extend(pairs)
        return own_scores(loaded.model, pairs)

    return score


@pytest.mark.parametrize("first_wrong", [30, 199])
def test_wrong_far_positions_are_refused(first_wrong: int) -> None:
    settings = {"positions": "learned", "max_positions": 256}
    loaded, other = (random_model(shared_codec(), settings) for _ in range(2))
    positions = other.model.source_embedding.positions
    assert isinstance(positions, LearnedPositions)
    with torch.no_grad():
        positions.table.weight[first_wrong:] = positions.table.weight[0]
    peer = Peer("library 1.2", 256, lambda pairs: own_scores(other.model, pairs))
    with refuses(DamagedError, "out", recorded=False) as e:
        check_parity(loaded, peer, OUT)
    assert len(str(e.value)) < 500


@pytest.mark.parametrize("place", [0, 17, 37])
def test_the_largest_difference_is_returned(place: int) -> None:
    difference = check_parity(random_model(shared_codec(), {}), peer_that_adds(-0.0007, place), OUT)
    assert difference == pytest.approx(0.0007, abs=1e-5)
    line = parity_line(peer_that_adds(0.0, 0), difference)
    assert line.startswith("library 1.2 scores 64 drawn pairs")
    assert "the largest difference is 7.0e-04, the limit 1e-03" in line


def test_the_tolerance_grows_with_the_length_of_a_pair() -> None:
    loaded = random_model(shared_codec(), {})
    parts = len(draw_pairs(loaded.codec, longest=2000)[-1].target_ids) / MAX_SHORT_TOKENS
    difference = check_parity(loaded, peer_that_adds(0.7 * TOLERANCE * parts, -1), OUT)
    assert difference == pytest.approx(0.7 * TOLERANCE, rel=1e-3)
    with refuses(DamagedError, "out", recorded=False):
        check_parity(loaded, peer_that_adds(1.3 * TOLERANCE * parts, -1), OUT)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("difference", [2 * TOLERANCE, -2 * TOLERANCE, math.nan, -math.inf])
@pytest.mark.parametrize("place", [0, 37])
def test_another_score_is_refused(difference: float, place: int) -> None:
    loaded = random_model(shared_codec(), {})
    pair = draw_pairs(loaded.codec, longest=2000)[place]
    keys = f"out {pair.source!r} library 1.2 {pair.target!r}; library"
    with refuses(DamagedError, keys, recorded=False):
        check_parity(loaded, peer_that_adds(difference, place), OUT)


def test_the_differences_of_a_quantised_model_are_per_token() -> None:
    loaded = random_model(shared_codec(), {})
    lengths = [len(pair.target_ids) for pair in draw_pairs(loaded.codec, longest=2000)]
    line = quantization_line(loaded, peer_that_adds(-0.5, 3), "int8")
    assert line == (
        "int8: log-probabilities per token of 64 drawn pairs differ by "
        f"{0.5 / lengths[3] / 64:.2g} on average, {0.5 / lengths[3]:.2g} at most"
    )


def test_a_missing_library_is_an_error_with_the_extra_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    keys = "ctranslate2; pip install nmtkit[ctranslate2]"
    with refuses(ConfigError, keys):
        import_extra("ctranslate2", "ctranslate2")
    with refuses(ConfigError, keys):
        import_extra("ctranslate2.specs", "ctranslate2")


@pytest.mark.parametrize("unsupported", [marian.unsupported, ctranslate2.unsupported])
def test_an_unknown_activation_is_refused(
    unsupported: Callable[[ModelConfig, TextCodec], Iterator[Problem]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(model_config.ACTIVATIONS, "tanh", model_config.Activation(1))
    (problem,) = unsupported(ModelConfig(activation="tanh"), shared_codec())
    known = r"relu or silu or squared-relu( or swiglu)?"
    assert re.fullmatch(rf"activation \(tanh\) must be {known} \[model\.activation\]", problem.text)


def test_sentencepiece_models_are_those_of_the_sides(tmp_path: Path) -> None:
    codec = separate_codec()
    write_sentencepiece(codec, tmp_path)
    for name, vocabulary in ((SOURCE, codec.source), (TARGET, codec.target)):
        model = sentencepiece.SentencePieceProcessor(str(tmp_path / name))
        assert model.encode_as_ids("the cat") == vocabulary.encode("the cat")


def test_a_vocabulary_of_words_has_no_model(tmp_path: Path) -> None:
    write_sentencepiece(tiny_codec(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("positions", "longest"), [("sinusoidal", 2048), ("learned", 77)])
def test_learned_positions_are_the_longest_sequence_of_an_export(
    positions: str, longest: int
) -> None:
    assert num_positions(ModelConfig(positions=positions, max_positions=77)) == longest
