"""The answer to a line: its parts joined, its n-best list, annotations; answers in order."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.schema import TranslateRecipe
from nmtkit.config.translation import OutputConfig, TranslationConfig
from nmtkit.decoding.answers import Answer, Request, Translation
from nmtkit.decoding.long_lines import SourcePart, answer_of, split_text
from nmtkit.decoding.search import Hypothesis
from nmtkit.decoding.translator import Translator
from nmtkit.model.transformer import Transformer
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model
from tests.translating import answers_to

CODEC = tiny_codec()


def part_of(index: int, source: str, *targets: str) -> SourcePart:
    """Return a part of a line with translations, aligned word by word; it begins at word 7."""
    source_ids = CODEC.encode_source(source)
    part = SourcePart(Request("line"), 1, index, source_ids, source, words_before=7)
    ids = [CODEC.encode_target(target) for target in targets]
    part.hypotheses = [Hypothesis(tuple(one), -1.0, -0.5) for one in ids]
    part.token_log_probs = [(-0.5,) * len(one) for one in ids]
    part.attention = [torch.eye(len(one), len(part.ids)) for one in ids]
    return part


def answers_of(*parts: SourcePart) -> list[str]:
    return [one.text for one in answer_of(CODEC, parts).translation.n_best]


def test_texts_are_joined_by_spaces_and_numbers_add_up() -> None:
    parts = [part_of(0, "a b", "A B"), part_of(1, "c", ""), part_of(2, "c", "C")]
    joined = answer_of(CODEC, parts).translation
    assert (joined.text, joined.log_prob, joined.score) == ("A B C", -3.0, -1.5)
    assert joined.tokens == ("A", "B", "</s>", "</s>", "C", "</s>")


def test_equal_translations_are_one_in_a_set_also_with_annotations() -> None:
    rows = [(array("f", [value]),) for value in (1, 1, 2)]
    assert len({Translation("a", -1.0, -1.0, ("a",), attention=row) for row in rows}) == 2


def test_a_shorter_n_best_list_repeats_its_last_translation() -> None:
    assert answers_of(part_of(0, "a", "A", "B"), part_of(1, "c", "C")) == ["A C", "B C"]


def test_the_first_warning_and_the_request_are_those_of_the_line() -> None:
    part = part_of(0, "a", "A")
    part.warning = "too long"
    answer = answer_of(CODEC, [part, part_of(1, "c", "C")])
    assert (answer.request, answer.warning) == (part.request, "too long")


class Shuffled(Translator):
    """Translates parts into capitals, three by three in random order; counts those of lines."""

    random = Random()
    num_translated: Counter[int]

    def _batches(self, parts: Sequence[SourcePart]) -> Iterator[list[SourcePart]]:
        order = self.random.sample(parts, len(parts))
        yield from (order[place : place + 3] for place in range(0, len(order), 3))

    def _translate(self, parts: Sequence[SourcePart]) -> None:
        for part in parts:
            ids = CODEC.encode_target(CODEC.source.decode(part.ids).upper())
            part.hypotheses = [Hypothesis(tuple(ids), 0.0, 0.0)]
            self.num_translated[part.line] += 1


@given(st.lists(st.integers(0, 3), max_size=12), st.randoms(use_true_random=False))
def test_answers_come_in_order_as_soon_as_all_lines_before_are_finished(
    num_parts: list[int], random: Random
) -> None:
    recipe = TranslateRecipe(translation=TranslationConfig(max_source_length=2))
    translator = Shuffled([tiny_model(CODEC)], CODEC, recipe, lambda _: None)
    translator.random, translator.num_translated = random, Counter()
    lines = [" ".join(random.choices("abcdefgh", k=count)) for count in num_parts]
    results = []
    for result in translator.answer_chunk([*map(Request, lines)], 0):
        results.append(result)
        missing = [n for n, count in enumerate(num_parts) if translator.num_translated[n] < count]
        num_ready = sum(len(one.answers) for one in results)
        assert num_ready == min(missing, default=len(lines))
        assert sum(one.num_lines for one in results) == len(lines) - len(missing)
    found = [answer.translation.text for result in results for answer in result.answers]
    assert found == [line.upper() for line in lines]
    assert sum(result.num_tokens for result in results) == 2 * sum(num_parts)


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
    return answers_to(Translator(models, tiny_codec(), recipe, lambda _: None), requests)


@pytest.mark.parametrize("num_models", [1, 2])
def test_annotations_agree_with_the_search(num_models: int) -> None:
    codec = tiny_codec()
    models = [tiny_model(codec, seed) for seed in range(1, num_models + 1)]
    requests = [Request(line) for line in LINES]
    for answer in annotated(models, requests):
        for one in answer.translation.n_best:
            assert one.tokens == (*one.text.split(), "</s>")
            assert sum(one.token_log_probs) == pytest.approx(one.log_prob, abs=1e-4)
            source = len(answer.request.source.split())
            assert len(one.attention) == len(one.tokens)
            for row in one.attention:
                assert len(row) == source + 1
                assert sum(row) == pytest.approx(1, abs=1e-5)
            best = [max(range(source), key=row.__getitem__) for row in one.attention[:-1]]
            assert one.alignment == tuple((s, t) for t, s in enumerate(best))


def test_annotations_of_a_split_line_are_those_of_its_parts() -> None:
    model = tiny_model(tiny_codec())
    (whole,) = annotated([model], [Request(LONG)], limit=7)
    texts = split_text(LONG, lambda text: len(text.split()) < 7)
    first, second = annotated([model], [Request(text) for text in texts])
    for joined, one, other in zip(
        whole.translation.n_best, first.translation.n_best, second.translation.n_best, strict=True
    ):
        assert joined.tokens == one.tokens + other.tokens
        assert joined.source_tokens == one.source_tokens + other.source_tokens
        log_probs = one.token_log_probs + other.token_log_probs
        assert joined.token_log_probs == pytest.approx(log_probs, abs=1e-5)
        words = len(texts[0].split()), len(one.text.split())
        shifted = tuple((s + words[0], t + words[1]) for s, t in other.alignment)
        assert joined.alignment == one.alignment + shifted
        assert len(joined.attention) == len(joined.tokens)
        assert all(len(row) == len(joined.source_tokens) for row in joined.attention)
        assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in joined.attention)
