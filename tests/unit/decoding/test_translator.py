from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
import torch

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import (
    ConstraintsConfig,
    OutputConfig,
    SamplingConfig,
    TranslationConfig,
)
from nmtkit.decoding.answers import Answer, Request
from nmtkit.decoding.long_lines import split_text
from nmtkit.decoding.translator import Translator
from nmtkit.errors import DataError
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID
from nmtkit.text.closed_words import Words
from tests.doubles import watch_embedding
from tests.messages import refuses
from tests.tiny import WORDS, tiny_codec, tiny_model
from tests.translating import answers_to
from tests.translating import translate as translations

LINES = [" ".join(WORDS[i * j % 8] for j in range(i % 11)) for i in range(65)]
LINES += ["h h h", "  ", "\t", "g", "unknown words a b"]
SEARCH = SearchConfig(beam=2, max_length_offset=2)
LONG = "a b c d e f g h a c e g"  # 13 tokens with the end symbol


def recipe_of(config: TranslationConfig) -> TranslateRecipe:
    return TranslateRecipe(search=SEARCH, translation=config)


def translator(config: TranslationConfig, warnings: list[str] | None = None) -> Translator:
    """Make a tiny translator; warnings go to the list; without a list there must be none."""

    def warn(message: str) -> None:
        assert warnings is not None, message
        warnings.append(message)

    codec = tiny_codec()
    return Translator([tiny_model(codec)], codec, recipe_of(config), warn)


def translate(
    lines: list[str], config: TranslationConfig, batches: list[tuple[int, ...]] | None = None
) -> list[str]:
    """Translate, ignoring warnings; a list takes the lengths of each batch."""
    codec = tiny_codec()
    model = tiny_model(codec)
    if batches is not None:
        watch_embedding(model.source_embedding, batches)
    under_test = Translator([model], codec, recipe_of(config), lambda _: None)
    return list(translations(under_test, lines, config.chunk_lines))


def test_each_line_has_its_own_translation_in_its_place() -> None:
    under_test = translator(TranslationConfig())
    together = list(translations(under_test, LINES))
    for line, answer in list(zip(LINES, together, strict=True))[::5]:
        assert list(translations(under_test, [line])) == [answer]
    assert len(set(together)) > 40  # so that a wrong order would be seen


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "config",
    [
        TranslationConfig(batch_size=7),
        TranslationConfig(max_tokens=1),
        TranslationConfig(max_tokens=30),
        TranslationConfig(chunk_lines=9, batch_size=4),
    ],
)
def test_batches_and_chunks_change_no_translation(config: TranslationConfig) -> None:
    lines = LINES[::3]
    assert translate(lines, config) == translate(lines, TranslationConfig())


def test_blank_lines_are_answered_by_blank_lines() -> None:
    lines = ["", "a b", " ", "\t \t", "c", ""]
    assert [bool(line) for line in translate(lines, TranslationConfig())] == [
        False, True, False, False, True, False
    ]  # fmt: skip


def test_nothing_is_read_beyond_a_chunk() -> None:
    num_read = 0

    def endless() -> Iterator[str]:
        nonlocal num_read
        for num_read in count(1):
            yield WORDS[num_read % 8]

    answers = translations(translator(TranslationConfig()), endless(), chunk_lines=5)
    assert num_read == 0
    for num_answered in range(1, 13):
        next(answers)
        assert num_read == (num_answered + 4) // 5 * 5


def test_the_result_of_each_batch_has_its_lines_and_the_answers_that_are_final() -> None:
    requests = [Request(line) for line in ("a", "b c", "", "d e f", "g")]
    results = list(
        translator(TranslationConfig(batch_size=1)).answer_all(
            [(1, requests[:4]), (5, requests[4:])]
        )
    )
    assert [result.num_lines for result in results] == [1, 1, 1, 1, 0, 1]
    found = [[answer.request for answer in result.answers] for result in results]
    assert found == [[], [], [], requests[:4], [], requests[4:]]


def test_batches_hold_similar_lengths_longest_first_within_both_limits() -> None:
    batches: list[tuple[int, ...]] = []
    translate(LINES, TranslationConfig(batch_size=6, max_tokens=40), batches)
    lengths = [length for batch in batches for length in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert len(lengths) == sum(bool(line.strip()) for line in LINES)
    assert max(map(len, batches)) == 6
    assert max(len(batch) * max(batch) for batch in batches) <= 40
    batches.clear()
    translate([LONG, "a"], TranslationConfig(max_tokens=3), batches)
    assert batches == [(13,), (2,)]


def test_a_long_line_is_translated_in_parts_that_are_joined() -> None:
    config = TranslationConfig(max_source_length=6)
    parts = split_text(LONG, lambda text: len(text.split()) < 6)
    assert len(parts) > 2
    assert " ".join(parts) == LONG
    whole = translate(["a", LONG, "b"], config)
    assert whole[1] == " ".join(translate(parts, config))
    assert [whole[0], whole[2]] == translate(["a", "b"], config)


def test_each_run_warns_of_its_first_long_line_and_counts_the_others() -> None:
    warnings: list[str] = []
    config = TranslationConfig(max_source_length=5, on_too_long="truncate")
    under_test = translator(config, warnings)
    for _ in range(2):
        warnings.clear()
        list(translations(under_test, ["a", "b", LONG, LONG, "b", LONG], chunk_lines=2))
        assert warnings == [
            "line 3: 13 tokens, more than 5 [--max-source-length]; "
            "its end is not translated [--on-too-long truncate]",
            "and 2 more lines were too long and treated in the same way",
        ]


def test_a_truncated_line_is_translated_as_its_beginning() -> None:
    config = TranslationConfig(max_source_length=5, on_too_long="truncate")
    assert translate([LONG], config) == translate(["a b c d"], config)


def test_a_long_line_can_be_an_error() -> None:
    config = TranslationConfig(max_source_length=12, on_too_long="error")
    with refuses(DataError, "line 3 13 12 --max-source-length; --on-too-long"):
        translate(["a", "b", LONG], config)
    assert len(translate(["a", LONG.removesuffix(" g")], config)) == 2


def test_learned_positions_limit_source_and_translation() -> None:
    codec = tiny_codec()
    model = tiny_model(codec, positions="learned", max_positions=6)
    warnings: list[str] = []
    limited = Translator([model], codec, recipe_of(TranslationConfig()), warnings.append)
    (answer,) = translations(limited, [LONG])
    assert answer
    assert warnings[0].startswith("line 1: 13 tokens, more than 6")
    (answer,) = translations(limited, ["a b c d e"])
    assert len(answer.split()) <= 5


def test_a_translation_never_holds_what_a_reader_may_take_for_a_line_end() -> None:
    target = Words([f"{word}\u2028{word}\x85" for word in WORDS])
    codec = replace(tiny_codec(), source=Words(WORDS), target=target, is_shared=False)
    under_test = Translator([tiny_model(codec)], codec, recipe_of(TranslationConfig()), print)
    answers = list(translations(under_test, ["a b c", "h g f"]))
    assert all(answers)
    assert all(len(answer.splitlines()) == 1 for answer in answers)


def answers(recipe: TranslateRecipe, requests: list[Request]) -> list[Answer]:
    codec = tiny_codec()
    under_test = Translator([tiny_model(codec)], codec, recipe, print)
    return answers_to(under_test, requests)


@pytest.mark.parametrize("n_best", [1, 3])
def test_the_n_best_are_sorted_and_begin_with_the_best(n_best: int) -> None:
    recipe = TranslateRecipe(search=SearchConfig(beam=4), output=OutputConfig(n_best=n_best))
    requests = [Request(line) for line in LINES]
    for answer, text in zip(
        answers(recipe, requests),
        answers(TranslateRecipe(search=SearchConfig(beam=4)), requests),
        strict=True,
    ):
        found = answer.translation.n_best
        assert len(found) == (n_best if answer.request.source.strip() else 1)
        assert len({one.text for one in found}) == len(found)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert found[0] == text.translation


def test_a_translation_begins_with_the_prefix_of_its_request_and_has_room_for_it() -> None:
    prefix = "h g f e d c b a"
    recipe = TranslateRecipe(search=SearchConfig(max_length_offset=1))
    for answer in answers(recipe, [Request("a", prefix), Request("b c", "h"), Request("d")]):
        text = answer.translation.text
        assert (text + " ").startswith((answer.request.target_prefix + " ").lstrip())
    assert answers(recipe, [Request(" ", " ")])[0].translation.text == ""
    with refuses(DataError, "line 2 target_prefix"):
        answers(recipe, [Request("a", prefix), Request(" ", prefix)])


def test_a_prefix_obeys_the_longest_output() -> None:
    recipe = TranslateRecipe(constraints=ConstraintsConfig(max_output_length=3))
    (answer,) = answers(recipe, [Request("a", "h g f")])
    assert answer.translation.text == "h g f"
    with refuses(DataError, "line 2 target_prefix 4 3; --max-output-length"):
        answers(recipe, [Request("a"), Request("a", "h g f e")])


def test_a_prefix_that_no_translation_can_begin_with_is_refused() -> None:
    with refuses(DataError, "line 1 target_prefix 'strange'; word"):
        answers(TranslateRecipe(), [Request("a", "h strange g")])


def test_a_line_end_within_a_request_is_a_space() -> None:
    broken, whole = answers(TranslateRecipe(), [Request("a\nb", "h\ng"), Request("a b", "h g")])
    assert broken.translation.text == whole.translation.text


def test_only_the_first_part_of_a_long_line_begins_with_the_prefix() -> None:
    recipe = TranslateRecipe(
        search=SEARCH, translation=TranslationConfig(max_source_length=6, batch_size=2)
    )
    (plain,) = answers(recipe, [Request(LONG)])
    (forced,) = answers(recipe, [Request(LONG, "h h h")])
    parts = split_text(LONG, lambda text: len(text.split()) < 6)
    alone = [answer.translation for answer in answers(recipe, [Request(one) for one in parts])]
    (first,) = answers(recipe, [Request(parts[0], "h h h")])
    texts = [first.translation.text, *(one.text for one in alone[1:])]
    assert forced.translation.text == " ".join(texts)
    assert plain.translation.log_prob == pytest.approx(sum(one.log_prob for one in alone))
    assert len(plain.translation.tokens) == sum(len(one.tokens) for one in alone)


@pytest.mark.parametrize(
    ("search", "constraints", "most_words"),
    [
        (SearchConfig(max_length_ratio=0.0, max_length_offset=4), ConstraintsConfig(), 3),
        (SearchConfig(max_length_ratio=1.0, max_length_offset=1), ConstraintsConfig(), 13),
        (SearchConfig(), ConstraintsConfig(max_output_length=4), 4),
    ],
)
def test_the_end_symbols_count_in_the_longest_length_but_not_in_the_longest_output(
    search: SearchConfig, constraints: ConstraintsConfig, most_words: int
) -> None:
    lines = [LONG, LONG.replace("a", "b"), LONG.replace("c", "h"), LONG.replace("e", "d")]
    found = answers(TranslateRecipe(search=search, constraints=constraints), [*map(Request, lines)])
    assert max(len(one.translation.text.split()) for one in found) == most_words


def test_lengths_keep_to_their_limits() -> None:
    constraints = ConstraintsConfig(min_length_ratio=0.5, min_length_offset=3, max_output_length=7)
    recipe = TranslateRecipe(
        search=SearchConfig(max_length_ratio=2.0, max_length_offset=1), constraints=constraints
    )
    for answer in answers(recipe, [Request(line) for line in LINES if line.strip()]):
        source, target = (
            len(answer.request.source.split()),
            len(answer.translation.text.split()),
        )
        assert target <= min(2 * (source + 1), 7)
        assert target >= min(source // 2 + 3, 2 * (source + 1), 7)


def test_samples_do_not_depend_on_batches() -> None:
    def drawn(config: TranslationConfig, requests: list[Request]) -> list[list[str]]:
        recipe = TranslateRecipe(
            search=SearchConfig(max_length_offset=2),
            sampling=SamplingConfig(sample=True),
            output=OutputConfig(n_best=3, output_format="json"),
            translation=config,
        )
        found = answers(recipe, requests)
        return [[one.text for one in answer.translation.n_best] for answer in found]

    requests = [Request(line) for line in LINES]
    together = drawn(TranslationConfig(), requests)
    assert drawn(TranslationConfig(batch_size=3, chunk_lines=10), requests) == together
    assert drawn(TranslationConfig(), requests[:20]) == together[:20]
    assert len({tuple(one) for one in together}) > 40


def test_an_ensemble_averages_probabilities() -> None:
    codec = tiny_codec()
    models = [tiny_model(codec), tiny_model(codec, seed=2)]
    (found,) = answers_to(Translator(models, codec, TranslateRecipe(), print), [Request("a b c")])
    best = found.translation
    cpu = torch.device("cpu")
    source = pack_sequences([codec.encode_source("a b c")], cpu)
    ids = codec.encode_target(best.text)
    inputs = pack_sequences([[BOS_ID, *ids[:-1]]], cpu)
    with torch.inference_mode():
        probs = torch.stack(
            [m.logits(m.decode(inputs, m.encode(source))).double().softmax(-1) for m in models]
        ).mean(0)
    expected = float(probs[range(len(ids)), ids].log().sum())
    assert best.log_prob == pytest.approx(expected, abs=1e-4)


def test_a_line_whose_constraints_leave_no_translation_is_named() -> None:
    recipe = TranslateRecipe(
        constraints=ConstraintsConfig(min_length_offset=40, no_repeat_ngram=1, ban_unknown=True)
    )
    with refuses(DataError, "line 1 --min-length-offset --no-repeat-ngram"):
        answers(recipe, [Request("a b")])
