"""A shortlist of the whole vocabulary changes nothing; a smaller one limits the search."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import OutputConfig, TranslationConfig
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.answers import Answer, Request
from nmtkit.decoding.translator import Translator
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model
from tests.translating import answers_to

CODEC = tiny_codec()
SIZE = CODEC.target.size
SPECIAL = np.array([UNK_ID, BOS_ID, EOS_ID])
RECIPE = TranslateRecipe(
    search=SearchConfig(beam=4), output=OutputConfig(n_best=3, output_format="json")
)
REQUESTS = [Request(line) for line in TRAIN_LINES] + [Request("a b", "h G c")]


def shortlist(candidates: Sequence[Sequence[int]], frequent: Sequence[int] = ()) -> Shortlist:
    ids = np.union1d(np.array(frequent, np.int64), SPECIAL)
    return Shortlist(np.array(candidates, np.int64), ids, SIZE, CODEC.fingerprint)


def random_shortlist(count: int) -> Shortlist:
    draw = np.random.default_rng(1)
    return shortlist([draw.permutation(SIZE)[:count].tolist() for _ in range(SIZE)], [5])


def answers(
    models: Sequence[Transformer], chosen: Shortlist | None, recipe: TranslateRecipe = RECIPE
) -> list[Answer]:
    return answers_to(Translator(models, CODEC, recipe, print, chosen), REQUESTS)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("is_prepared", [False, True])
@pytest.mark.parametrize("num_models", [1, 2])
def test_a_shortlist_of_all_of_the_vocabulary_changes_nothing(
    num_models: int, is_prepared: bool
) -> None:
    models = [tiny_model(CODEC, seed) for seed in range(num_models)]
    if is_prepared:
        for model in models:
            model.prepare(torch.float32)
    everything = shortlist([list(range(SIZE))] * SIZE)
    both = zip(answers(models, everything), answers(models, None), strict=True)
    for answer, expected in both:
        assert answer.translation.text == expected.translation.text
        # Products of gathered and of all rows may round differently.
        assert answer.translation.score == pytest.approx(expected.translation.score, abs=1e-5)


def test_translations_use_only_the_shortlist_of_their_sentence() -> None:
    chosen = random_shortlist(4)
    for answer in answers([tiny_model(CODEC)], chosen):
        source = CODEC.encode_source(answer.request.source)
        permitted = {*chosen.frequent.tolist(), *chosen.candidates[source].flatten().tolist()}
        permitted |= set(CODEC.encode_target(answer.request.target_prefix))
        for one in answer.translation.n_best:
            assert set(CODEC.encode_target(one.text)) <= permitted
            assert one.text.startswith(answer.request.target_prefix)


def test_scores_are_those_of_the_model_among_the_candidates() -> None:
    chosen, model = random_shortlist(5), tiny_model(CODEC)
    for answer in answers([model], chosen)[:-1]:
        source = CODEC.encode_source(answer.request.source)
        permitted = sorted(
            {*chosen.frequent.tolist(), *chosen.candidates[source].flatten().tolist()}
        )
        for one in answer.translation.n_best:
            ids = CODEC.encode_target(one.text)
            cpu = torch.device("cpu")
            with torch.inference_mode():
                memory = model.encode(pack_sequences([source], cpu))
                hidden = model.decode(pack_sequences([[BOS_ID, *ids[:-1]]], cpu), memory)
                log_probs = model.logits(hidden)[:, permitted].double().log_softmax(-1)
            places = [permitted.index(token) for token in ids]
            expected = float(log_probs[range(len(ids)), places].sum())
            assert one.log_prob == pytest.approx(expected, abs=1e-4)


def test_a_shortlist_does_not_depend_on_the_batch() -> None:
    chosen, models = random_shortlist(4), [tiny_model(CODEC)]
    alone = TranslateRecipe(
        search=RECIPE.search, output=RECIPE.output, translation=TranslationConfig(batch_size=1)
    )
    for one, other in zip(answers(models, chosen), answers(models, chosen, alone), strict=True):
        assert [t.text for t in one.translation.n_best] == [
            t.text for t in other.translation.n_best
        ]
        for first, second in zip(one.translation.n_best, other.translation.n_best, strict=True):
            assert first.score == pytest.approx(second.score, abs=1e-5)
