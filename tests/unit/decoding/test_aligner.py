"""Links of pairs against a plain computation, whatever else is in the batch."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from nmtkit.config.model import AligningAttention
from nmtkit.config.translation import AligningConfig, LinksConfig
from nmtkit.decoding.aligner import Aligner, AligningModel
from nmtkit.decoding.alignment import all_attention_weights
from nmtkit.decoding.answers import AlignedPair, Pair
from nmtkit.errors import DamagedError
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from tests.messages import refuses
from tests.tiny import never_warn, tiny_codec, tiny_model

PAIRS = [
    Pair("a b c", "A B C"),
    Pair("", ""),
    Pair("d", "H G F E D C B A"),
    Pair("h g f e d c b", "A B"),
    Pair("f f", "F F F"),
    Pair("a b", " "),
]
TOLERANCE = 1e-5
"""Of weights in float32."""


def aligning_model(
    seed: int, stored: AligningAttention | None = None, **head: int
) -> AligningModel:
    """Return a model with a stored attention, or a trained head."""
    codec = tiny_codec()
    model = tiny_model(codec, seed, **head)
    model.stored_aligning_attention = stored
    return AligningModel(model, codec)


OTHER = AligningAttention(1, None, is_shifted=True)
FORWARD, REVERSE = aligning_model(1), aligning_model(2, OTHER)


def aligner(
    models: Sequence[AligningModel], max_tokens: int = 0, max_length: int = 1024, **links: Any
) -> Aligner:
    config = AligningConfig(max_tokens=max_tokens, max_length=max_length)
    settings = replace(LinksConfig(probabilities=True, min_weight=0.15), **links)
    return Aligner(models, settings, config, never_warn)


def align(one: Aligner, pairs: Sequence[Pair] = PAIRS) -> list[AlignedPair]:
    results = list(one.answer_chunk(pairs, 1))
    assert sum(result.num_lines for result in results) == len(pairs)
    return [answer for result in results for answer in result.answers]


def plain_weights(one: AligningModel, source: str, target: str) -> Tensor:
    """Return the weights (target words, source words) of a pair whose words are tokens."""
    ids = one.codec.encode_source(source), one.codec.encode_target(target)
    memory = all_attention_weights(one.model, *ids).memory
    assert memory is not None
    read = one.model.aligning_attention
    heads = memory[read.layer] if read.head is None else memory[read.layer, read.head][None]
    rows = heads.mean(0)
    # A head that sees the target has the rows as they align.
    is_shifted = read.is_shifted and not read.sees_target
    return (rows[1:] if is_shifted else rows[:-1])[:, :-1]


@pytest.mark.parametrize(
    "read",
    [
        {},
        {"stored": OTHER},
        {"alignment_layer": 1, "alignment_head": 2, "stored": OTHER},
        {"alignment_layer": 2, "full_context_alignment": True},
    ],
    ids=str,
)
def test_a_word_is_linked_to_the_word_that_it_attends_to_most(read: dict[str, Any]) -> None:
    model = aligning_model(1, **read)
    for answer in align(aligner([model], min_weight=0.3)):
        expected = []
        if answer.request.source and answer.request.target.strip():
            weights = plain_weights(model, answer.request.source, answer.request.target)
            for target, row in enumerate(weights.tolist()):
                best = max(range(len(row)), key=row.__getitem__)
                if row[best] >= 0.3:
                    expected.append(((best, target), row[best]))
        assert list(answer.links) == [link for link, _ in expected]
        assert answer.probabilities == pytest.approx([one for _, one in expected], abs=TOLERANCE)


@pytest.mark.parametrize("max_tokens", [1, 9, 100])
def test_a_pair_alone_is_aligned_as_in_any_batch(max_tokens: int) -> None:
    together = align(aligner([FORWARD, REVERSE], max_tokens))
    for answer in together:
        (alone,) = align(aligner([FORWARD, REVERSE]), [answer.request])
        assert alone.links == answer.links
        assert alone.probabilities == pytest.approx(answer.probabilities, abs=TOLERANCE)


COMBINED = ("intersection", "union")
"""Ways that depend on no order of words."""


@pytest.mark.parametrize("symmetrize", COMBINED)
def test_swapped_models_and_sides_transpose_the_links(symmetrize: str) -> None:
    swapped = [Pair(pair.target, pair.source) for pair in PAIRS]
    there = align(aligner([FORWARD, REVERSE], symmetrize=symmetrize))
    back = align(aligner([REVERSE, FORWARD], symmetrize=symmetrize), swapped)
    assert any(answer.links for answer in there)
    for one, other in zip(there, back, strict=True):
        assert {*one.links} == {(target, source) for source, target in other.links}
        by_link = dict(zip(one.links, one.probabilities, strict=True))
        for (target, source), found in zip(other.links, other.probabilities, strict=True):
            assert found == pytest.approx(by_link[source, target], abs=TOLERANCE)


def test_words_of_both_sides_are_linked_by_the_mean_of_both_directions() -> None:
    there = [*PAIRS[:1], *PAIRS[2:5]]
    found = {how: align(aligner([FORWARD, REVERSE], symmetrize=how), there) for how in COMBINED}
    for number, pair in enumerate(there):
        weights = plain_weights(FORWARD, pair.source, pair.target)
        mean = (weights + plain_weights(REVERSE, pair.target, pair.source).T) / 2
        by_target = {(row.argmax().item(), t) for t, row in enumerate(mean) if row.max() >= 0.15}
        by_source = {(s, row.argmax().item()) for s, row in enumerate(mean.T) if row.max() >= 0.15}
        assert {*found["union"][number].links} == by_target | by_source
        of_links = [mean[target, source].item() for source, target in found["union"][number].links]
        assert found["union"][number].probabilities == pytest.approx(of_links, abs=TOLERANCE)
        assert {*found["intersection"][number].links} == by_target & by_source


def test_directions_agree_as_their_links_do() -> None:
    found = aligner([FORWARD, REVERSE]).agreements(PAIRS)
    each = [AligningAttention(layer, None, step) for layer in (0, 1) for step in (False, True)]
    assert list(found) == [*product(each, repeat=2)]
    for (one, other), agreement in found.items():
        num_common = num_links = 0
        for pair in PAIRS:
            if not (pair.source and pair.target.strip()):
                continue
            forward, reverse = aligning_model(1, one), aligning_model(2, other)
            there = plain_weights(forward, pair.source, pair.target).argmax(1).tolist()
            back = plain_weights(reverse, pair.target, pair.source).argmax(1).tolist()
            num_common += sum(back[source] == target for target, source in enumerate(there))
            num_links += len(there) + len(back)
        assert agreement == pytest.approx(2 * num_common / num_links)


def test_a_pair_that_is_too_long_has_no_links() -> None:
    warnings: list[str] = []
    config = AligningConfig(max_length=6)
    one = Aligner([FORWARD], LinksConfig(min_weight=0.0), config, warnings.append)
    answers = [answer for result in one.answer_all([(5, PAIRS)]) for answer in result.answers]
    assert [bool(answer.links) for answer in answers] == [True, False, False, False, True, False]
    assert warnings == [
        "line 7: 9 tokens on one side, more than 6; the pair has no links",
        "and 1 more line was too long and treated in the same way",
    ]


def test_a_model_that_is_damaged_aligns_nothing() -> None:
    model = aligning_model(3)
    torch.nn.init.constant_(model.model.decoder[0].memory_attention.query.weight, float("nan"))
    with refuses(DamagedError, "attention; checkpoint"):
        align(aligner([model]), PAIRS[:1])


def test_a_trained_head_is_the_only_choice() -> None:
    guided = aligning_model(1, alignment_layer=2, alignment_head=1)
    found = {one for one, _ in aligner([guided, REVERSE]).agreements(PAIRS)}
    assert found == {AligningAttention(1, 0, is_shifted=False)}


CHINESE, GERMAN = "\u4f60\u597d \u4e16\u754c", "hallo Welt"


@pytest.mark.parametrize(("is_tokenized", "num_words"), [(False, 4), (True, 2)])
def test_tokens_between_spaces_count_in_any_script(is_tokenized: bool, num_words: int) -> None:
    vocabulary = Subword.train([CHINESE, GERMAN], "bpe", 290, "x")
    codec = TextCodec("de", "zh", vocabulary, vocabulary, is_shared=True)
    model = AligningModel(tiny_model(codec), codec)
    (answer,) = align(
        aligner([model], tokenized=is_tokenized, min_weight=0.0), [Pair(GERMAN, CHINESE)]
    )
    assert [target for _, target in answer.links] == [*range(num_words)]
    assert all(source < 2 for source, _ in answer.links)
