"""Annotations agree with the search, also across the parts of a long line."""

import pytest

from nmtkit.config.schema import TranslateRecipe
from nmtkit.config.translation import OutputConfig, TranslationConfig
from nmtkit.decoding.answers import Answer
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.long_lines import split_text
from nmtkit.decoding.translator import Translator
from nmtkit.model.transformer import Transformer
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model

LINES = (*TRAIN_LINES, "g", "h h h")
LONG = "a b c d e f g h a c e g"


def annotated(
    models: list[Transformer], requests: list[Request], limit: int = 1000
) -> list[Answer]:
    recipe = TranslateRecipe(
        output=OutputConfig(
            n_best=2, output_format="json", token_scores=True, alignments=True, attention=True
        ),
        translation=TranslationConfig(max_source_length=limit),
    )
    return Translator(models, tiny_codec(), recipe, lambda _: None).answer(requests, 1)


@pytest.mark.parametrize("num_models", [1, 2])
def test_annotations_agree_with_the_search(num_models: int) -> None:
    codec = tiny_codec()
    models = [tiny_model(codec, seed) for seed in range(1, num_models + 1)]
    requests = [Request(line) for line in LINES]
    for answer in annotated(models, requests):
        for one in answer.translations:
            annotations = one.annotations
            assert one.tokens == (*one.text.split(), "</s>")
            assert sum(annotations.token_log_probs) == pytest.approx(one.log_prob, abs=1e-4)
            source = len(answer.request.source.split())
            assert len(annotations.attention) == len(one.tokens)
            for row in annotations.attention:
                assert len(row) == source + 1
                assert sum(row) == pytest.approx(1, abs=1e-5)
            best = [max(range(source), key=row.__getitem__) for row in annotations.attention[:-1]]
            assert annotations.alignment == tuple((s, t) for t, s in enumerate(best))


def test_annotations_of_a_split_line_are_those_of_its_parts() -> None:
    model = tiny_model(tiny_codec())
    (whole,) = annotated([model], [Request(LONG)], limit=7)
    texts = split_text(LONG, lambda text: len(text.split()) < 7)
    first, second = annotated([model], [Request(text) for text in texts])
    for joined, one, other in zip(
        whole.translations, first.translations, second.translations, strict=True
    ):
        a, b, c = joined.annotations, one.annotations, other.annotations
        assert joined.tokens == one.tokens + other.tokens
        assert a.source_tokens == b.source_tokens + c.source_tokens
        assert a.token_log_probs == pytest.approx(b.token_log_probs + c.token_log_probs, abs=1e-5)
        words = len(texts[0].split()), len(one.text.split())
        shifted = tuple((s + words[0], t + words[1]) for s, t in c.alignment)
        assert a.alignment == b.alignment + shifted
        assert len(a.attention) == len(joined.tokens)
        assert all(len(row) == len(a.source_tokens) for row in a.attention)
        assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in a.attention)
