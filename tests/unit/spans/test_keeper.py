"""Markup, placeholders and terms in translations of random models: nothing is lost or repeated."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import (
    PLACEHOLDERS,
    ConstraintsConfig,
    OutputConfig,
    SamplingConfig,
    TranslationConfig,
)
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.answers import Answer, PlacedSpan, Request, Translation
from nmtkit.decoding.translator import Translator
from nmtkit.errors import DataError
from nmtkit.spans import placeholders
from nmtkit.spans.keeper import SpanKeeper
from nmtkit.spans.markup import read_markup, structure
from nmtkit.text.codec import TextCodec
from tests.conversions import random_model, separate_codec, shared_codec
from tests.messages import refuses
from tests.tiny import tiny_codec, tiny_model, write_lines
from tests.translating import answers_to

pytestmark = pytest.mark.sampled(every=3)

ALL = ConstraintsConfig(placeholders=",".join(PLACEHOLDERS))
XML = ConstraintsConfig(markup="xml", placeholders=",".join(PLACEHOLDERS))
KEPT = (
    *("{name}", "{0}", "%s", "%1$d", "https://a.example/b?c=1", "joe@example.org", "12", "3.50"),
    *("{n, plural, one {# file} other {# files}}", "2024-01-31", "\u0967\u0968", "\uff11\uff12"),
)
WORDS = (
    *("the", "cat", "sat", "dogs", "ran,", "and."),
    *(
        "\u732b\u304c",
        "\u0e41\u0e21\u0e27",
        "\u0642\u0637\u0629",
        "\u092c\u093f\u0932\u094d\u0932\u0940",
    ),
)
LINE = st.lists(st.sampled_from(WORDS + KEPT), min_size=1, max_size=5).map(" ".join)


def translator(
    spans: ConstraintsConfig,
    codec: TextCodec | None = None,
    num_models: int = 1,
    shortlist: Shortlist | None = None,
    **sections: Any,
) -> Translator:
    codec = codec or shared_codec()
    search = SearchConfig(beam=3, max_length_ratio=0.5, max_length_offset=6)
    recipe = replace(TranslateRecipe(search=search, constraints=spans), **sections)
    models = [random_model(codec, {}).model for _ in range(num_models)]
    return Translator(models, codec, recipe, lambda _: None, shortlist)


TRANSLATOR = translator(ALL)
PLAIN = translator(ConstraintsConfig())


SHORTLIST = Shortlist(np.array([[3, 4]] * 290), np.arange(3), 290, shared_codec().fingerprint)


def texts(under_test: Translator, lines: Sequence[str]) -> list[str]:
    return [one.translation.text for one in answers_to(under_test, [*map(Request, lines)])]


def kept_in(text: str) -> Counter[str]:
    return Counter(
        text[slice(*span)] for span in placeholders.find_placeholders(text, PLACEHOLDERS, [])
    )


def assert_kept(line: str, answer: Answer) -> None:
    """Check that each translation of a line has its placeholders, each as often as the line."""
    for one in answer.translation.n_best:
        expected = kept_in(line)
        assert len(one.placed) == expected.total()
        for text, count in expected.items():
            inside = sum(
                other.count(text) * times for other, times in expected.items() if other != text
            )
            assert one.text.count(text) >= count + inside
        for place in one.placed:
            if place.target is not None:
                assert one.text[slice(*place.target)] == line[slice(*place.source)]


@settings(max_examples=6)
@given(st.lists(LINE, min_size=1, max_size=3))
def test_every_placeholder_is_in_the_translation_byte_for_byte(lines: list[str]) -> None:
    for line, answer in zip(lines, answers_to(TRANSLATOR, [*map(Request, lines)]), strict=True):
        assert_kept(line, answer)
        if not kept_in(line):
            assert answer.translation.text == texts(PLAIN, [line])[0]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("make_codec", [shared_codec, separate_codec])
def test_the_search_writes_placeholders_itself(make_codec: Any, beam: int) -> None:
    lines = [f"the cat {one} sat on {two}" for one, two in pairwise(KEPT)]
    under_test = translator(ALL, make_codec(), search=SearchConfig(beam=beam))
    for line, answer in zip(lines, answers_to(under_test, [*map(Request, lines)]), strict=True):
        assert_kept(line, answer)
        if "\uff11" not in line:  # a digit that is normalised
            assert all(one.target for one in answer.translation.placed)


@pytest.mark.parametrize("line", ["the cat 12 sat 12,5 mats", "12 dogs 12,5 3,12.1 and 12"])
def test_a_number_within_another_one_is_searched_for(line: str) -> None:
    (answer,) = answers_to(TRANSLATOR, [Request(line)])
    assert_kept(line, answer)
    assert all(one.target for one in answer.translation.placed)


def test_positions_count_the_placeholders_that_were_inserted() -> None:
    keeper = SpanKeeper(XML, shared_codec(), (), pytest.fail, is_sampled=False)
    line = "{a} the <b>&amp;</b> \uff11 12"
    links = ((1, 0), (2, 1), (3, 2), (4, 3))
    translation = Translation("the & 1 12", 0.0, 0.0, (), alignment=links)
    answer = Answer(keeper.read(Request(line), 1), translation)
    found = keeper.write(answer, [], keep_links=False)
    assert found.translation.text == line
    assert [one.target for one in found.translation.placed] == [None, (10, 11), (12, 14)]


def test_a_line_alone_is_translated_as_in_a_batch() -> None:
    lines = ["the cat {a}", "dogs ran", "12 dogs and %s", "{a} {a} {b}"]
    assert texts(TRANSLATOR, lines) == [texts(TRANSLATOR, [line])[0] for line in lines]


def test_positions_are_those_of_the_text_without_tags() -> None:
    line = "{a}<br/>{b}. <li>{c}</li><li>12</li>"
    (answer,) = answers_to(WITH_MARKS, [Request(line)])
    text = read_markup(answer.translation.text, "xml").text
    targets = [one.target for one in answer.translation.placed if one.target]
    assert [text[slice(*one)] for one in targets] == ["{a}", "{b}", "{c}", "12"]


@pytest.mark.parametrize(
    "sections",
    [
        {"output": OutputConfig(n_best=3, output_format="json", token_scores=True)},
        {"num_models": 2},
        {"constraints": replace(ALL, no_repeat_ngram=4, ban_unknown=True)},
        {"translation": TranslationConfig(batch_size=1)},
        {"translation": TranslationConfig(max_source_length=20)},
        {"shortlist": SHORTLIST},
    ],
    ids=lambda one: next(iter(one)),
)
def test_placeholders_are_kept_whatever_the_search(sections: dict[str, Any]) -> None:
    lines = ["the cat {a} sat %s on 12 mats", "{a} {a}", "dogs and {n, plural, one {cat}} cats"]
    under_test = translator(ALL, **sections)
    for line, answer in zip(lines, answers_to(under_test, [*map(Request, lines)]), strict=True):
        assert_kept(line, answer)


def test_a_forced_prefix_is_kept_as_well() -> None:
    (answer,) = answers_to(TRANSLATOR, [Request("the cat {a} sat", "a dog")])
    assert answer.translation.text.startswith("a dog")
    assert_kept("the cat {a} sat", answer)


def test_what_the_length_does_not_permit_is_inserted() -> None:
    under_test = translator(ALL, constraints=replace(ALL, max_output_length=3))
    (answer,) = answers_to(under_test, [Request("the cat https://a.example/b?c=1 sat")])
    assert "https://a.example/b?c=1" in answer.translation.text.split()
    assert answer.translation.placed == (PlacedSpan("placeholder", (8, 31), None),)


def test_what_a_closed_vocabulary_does_not_have_is_inserted() -> None:
    codec = tiny_codec()
    recipe = TranslateRecipe(constraints=ALL, search=SearchConfig(beam=2))
    under_test = Translator([tiny_model(codec)], codec, recipe, lambda _: None)
    (answer,) = answers_to(under_test, [Request("a b {name} c")])
    assert answer.translation.text.split().count("{name}") == 1
    assert [one.target for one in answer.translation.placed] == [None]


TAGS = ("b", "g", "ph")


@st.composite
def marked(draw: st.DrawFn, depth: int = 2) -> str:
    """Draw a well-formed line."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["words", "element", "mark", "kept"] if depth else ["words"]))
        tag = draw(st.sampled_from(TAGS))
        if kind == "words":
            parts.append(draw(LINE))
        elif kind == "mark":
            parts.append(f'<{tag} id="{draw(st.integers(0, 9))}"/>')
        else:
            attribute = ' translate="no"' if kind == "kept" else ' a="&lt;1>"'
            parts.append(f"<{tag}{attribute}>{draw(marked(depth - 1))}</{tag}>")
    return " ".join(parts)


def tags_of(line: str) -> Counter[tuple[str, tuple[tuple[str, str], ...]]]:
    return Counter((one.tag, tuple(one.attrib.items())) for one in ET.fromstring(line).iter())


MARKED = translator(XML)
UNMARKED = translator(ConstraintsConfig(markup="xml"))


@settings(max_examples=8)
@given(marked())
def test_markup_stays_well_formed_and_complete(line: str) -> None:
    (answer,) = answers_to(MARKED, [Request(line)])
    source, target = f"<r>{line}</r>", f"<r>{answer.translation.text}</r>"
    assert tags_of(target) == tags_of(source)
    assert answer.request == Request(line)
    assert answer.translation.alignment == ()


def test_the_text_is_translated_as_without_markup() -> None:
    line, plain = "the <b>cat</b> sat <x/> on &amp; the mat", "the cat sat on & the mat"
    (found,) = texts(UNMARKED, [line])
    (expected,) = texts(PLAIN, [plain])
    element = ET.fromstring(f"<r>{found}</r>")
    assert " ".join("".join(element.itertext()).split()) == " ".join(expected.split())


def test_the_content_of_kept_elements_is_not_translated() -> None:
    html = translator(ConstraintsConfig(markup="html"))
    line = 'press <kbd>ctrl</kbd>, <span translate="no">a  &lt; b</span> <code></code>'
    (answer,) = answers_to(html, [Request(line)])
    for one in ("<kbd>ctrl</kbd>", '<span translate="no">a  &lt; b</span>', "<code></code>"):
        assert answer.translation.text.count(one) == 1


@pytest.mark.parametrize(
    "line",
    [
        *("the cat <x/>&#160;", "the cat <x/>\u200b", "12  <?pi d?>&#8232;<?pi d?>"),
        '<b>a <g translate="no">c</g> d <g translate="no">f</g></b> <g translate="no">h</g>',
        '<p><g translate="no">c</g><g translate="no">c .</g><x/></p><g translate="no">. .</g>',
    ],
)
def test_marks_at_spaces_and_kept_elements_keep_their_parents(line: str) -> None:
    (found,) = texts(MARKED, [line])
    assert structure(found, "xml").nesting == structure(line, "xml").nesting


def test_a_placeholder_of_spaces_alone_is_no_crash() -> None:
    (answer,) = answers_to(PLAIN, [Request("the cat", others={"spans": [[3, 4]]})])
    assert [one.kind for one in answer.translation.placed] == ["placeholder"]


@pytest.mark.parametrize("key", ["spans", "terms"])
def test_samples_have_no_demands(key: str) -> None:
    sampled = translator(ConstraintsConfig(), sampling=SamplingConfig(sample=True))
    with refuses(DataError, "line 1 spans terms beam; leave"):
        answers_to(sampled, [Request("the cat", others={key: []})])


def test_many_placeholders_are_kept() -> None:
    line = " ".join(f"{{a{number}}}" for number in range(20))
    (answer,) = answers_to(TRANSLATOR, [Request(line)])
    assert_kept(line, answer)


def test_samples_keep_markup() -> None:
    sampled = translator(ConstraintsConfig(markup="xml"), sampling=SamplingConfig(sample=True))
    for seed in range(3):
        line = f'the <b>cat</b> sat <ph translate="no">x{seed}</ph> on'
        (found,) = texts(sampled, [line])
        assert tags_of(f"<r>{found}</r>") == tags_of(f"<r>{line}</r>")
        assert f'<ph translate="no">x{seed}</ph>' in found


def glossary(tmp_path: Path, *lines: str, **settings: Any) -> ConstraintsConfig:
    path = write_lines(tmp_path / "terms.tsv", lines)
    return ConstraintsConfig(glossary=str(path), **settings)


def test_terms_are_used_as_often_as_they_occur(tmp_path: Path) -> None:
    spans = glossary(tmp_path, "cat\tdog", "sat\tran|mats", "dogs\tthe mat")
    under_test = translator(spans)
    lines = ["the cat sat", "cat and cat", "dogs sat and dogs sat", "a mat"]
    for line, answer in zip(lines, answers_to(under_test, [*map(Request, lines)]), strict=True):
        words = answer.translation.text.split()
        assert words.count("dog") >= line.split().count("cat")
        assert words.count("ran") + words.count("mats") >= line.split().count("sat")
        assert answer.translation.text.count("the mat") >= line.split().count("dogs")
        assert all(one.target for one in answer.translation.placed)
    assert texts(under_test, lines[-1:]) == texts(PLAIN, lines[-1:])


def test_terms_do_not_apply_within_placeholders(tmp_path: Path) -> None:
    under_test = translator(replace(glossary(tmp_path, "cat\tdog"), placeholders="braces"))
    (answer,) = answers_to(under_test, [Request("the {cat} sat")])
    assert [one.kind for one in answer.translation.placed] == ["placeholder"]


def test_a_json_line_names_its_own_spans_and_terms() -> None:
    others = {"spans": [[4, 7]], "terms": {"sat": ["ran"]}, "id": 3}
    (answer,) = answers_to(PLAIN, [Request("the cat sat", others=others)])
    assert answer.request.others == others
    assert [(one.kind, one.source) for one in answer.translation.placed] == [
        ("placeholder", (4, 7)),
        ("term", (8, 11)),
    ]
    found = [
        answer.translation.text[slice(*one.target)]
        for one in answer.translation.placed
        if one.target
    ]
    assert found == ["cat", "ran"]


def test_spans_and_documents_are_refused_with_markup() -> None:
    with refuses(DataError, "line 1 spans; --markup translate"):
        answers_to(MARKED, [Request("the cat", others={"spans": [[0, 3]]})])
    with refuses(DataError, "line 1 document; segment"):
        answers_to(MARKED, [Request("<?xml version='1.0'?><a>the cat</a>")])


def test_translations_of_blank_lines_are_blank() -> None:
    assert texts(MARKED, ["", "  ", "<b></b>", "<x/> <y/>"])[:2] == ["", ""]
    assert texts(MARKED, ["<x/> <y/>"]) == ["<x/> <y/>"]
    assert isinstance(answers_to(MARKED, [Request("")])[0].translation, Translation)


ANY = ("tags", "placeholders", "terms")
SPANS = replace(XML, placeholders="braces,number")


def with_marks(
    spans: ConstraintsConfig = SPANS,
    learnt: Sequence[str] = ANY,
    warn: Any = pytest.fail,
    num_marks: int = 60,
    **sections: Any,
) -> Translator:
    """Return an untrained model that writes marks, only because the search demands them."""
    codec = sections.pop("codec", shared_codec()).with_marks(num_marks)
    search = SearchConfig(beam=3, max_length_ratio=0.5, max_length_offset=6)
    recipe = replace(TranslateRecipe(search=search, constraints=spans), **sections)
    return Translator(
        [random_model(codec, {}).model], codec, recipe, warn, sections.pop("short", None), learnt
    )


WITH_MARKS = with_marks()


@settings(max_examples=8)
@given(marked())
def test_with_marks_the_structure_is_that_of_the_line(line: str) -> None:
    (answer,) = answers_to(WITH_MARKS, [Request(line)])
    text = answer.translation.text
    assert structure(text, "xml").is_well_formed
    assert structure(text, "xml").nesting == structure(line, "xml").nesting
    assert answer.request == Request(line)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("make_codec", [shared_codec, separate_codec])
def test_placeholders_are_written_by_marks(make_codec: Any, beam: int) -> None:
    lines = ["the cat {a} sat on 12", "{a}", "{a} {a}", "<b>12</b> dogs <x/>"]
    under_test = with_marks(codec=make_codec(), search=SearchConfig(beam=beam))
    answers = answers_to(under_test, [*map(Request, lines)])
    for line, answer in zip(lines, answers, strict=True):
        text = answer.translation.text
        assert [text.count(one) for one in ("{a}", "12")] == [line.count(x) for x in ("{a}", "12")]
        if "<" not in line:
            for one in answer.translation.placed:
                assert one.target
                assert text[slice(*one.target)] == line[slice(*one.source)]
    alone = [answers_to(under_test, [Request(line)])[0] for line in lines]
    assert [one.translation.text for one in alone] == [one.translation.text for one in answers]


@pytest.mark.parametrize(
    "sections",
    [
        {"output": OutputConfig(n_best=3, output_format="json")},
        {"spans": replace(SPANS, no_repeat_ngram=2, ban_unknown=True)},
        {"spans": replace(SPANS, max_output_length=9)},
        {"translation": TranslationConfig(batch_size=1)},
        {"sampling": SamplingConfig(sample=True), "spans": ConstraintsConfig(markup="xml")},
    ],
)
def test_marks_are_kept_whatever_the_search(sections: dict[str, Any]) -> None:
    lines = ["the <b>cat</b> sat <x/>", "<g><b>dogs</b> and</g> cats", "dogs"]
    for line, answer in zip(
        lines, answers_to(with_marks(**sections), [*map(Request, lines)]), strict=True
    ):
        for one in answer.translation.n_best:
            assert structure(one.text, "xml").nesting == structure(line, "xml").nesting


def test_a_forced_prefix_is_followed_by_marks() -> None:
    (answer,) = answers_to(WITH_MARKS, [Request("the <b>cat</b> {a}", "a dog")])
    assert answer.translation.text.startswith("a dog")
    assert structure(answer.translation.text, "xml").nesting == (("", "<b>"),)


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("<b>the</b> cat", {"learnt": ["terms"]}),
        ("<b>the</b> {a}", {"learnt": ["placeholders"]}),
        ("<b>the</b> cat <i/>", {"num_marks": 1}),
        ("<b>the</b> cat " * 20, {"translation": TranslationConfig(max_source_length=20)}),
        ("<b>the</b> <i>cat</i> dogs", {"spans": replace(SPANS, max_output_length=3)}),
    ],
)
def test_without_marks_another_way_is_used_and_said_once(line: str, changes: Any) -> None:
    warnings: list[str] = []
    under_test = with_marks(warn=warnings.append, **changes)
    answers = answers_to(under_test, [Request(line), Request(line)])
    assert len([one for one in warnings if "word alignment" in one]) == 1
    for answer in answers:
        found = structure(answer.translation.text, "xml")
        assert found.nesting == structure(line, "xml").nesting


def test_plain_lines_are_translated_as_without_marks() -> None:
    lines = ["the cat sat", "dogs ran, and.", ""]
    assert texts(WITH_MARKS, lines) == texts(with_marks(ConstraintsConfig()), lines)


@pytest.mark.parametrize(
    ("mode", "learnt", "is_written"),
    [
        ("soft", ANY, False),
        ("hard", ANY, True),
        ("both", ANY, True),
        ("soft", (), True),  # what is not learnt is demanded
    ],
)
def test_terms_are_demanded_unless_they_are_soft(
    mode: str, learnt: Sequence[str], is_written: bool, tmp_path: Path
) -> None:
    terms = write_lines(tmp_path / "terms", ["cat\tzebra"])
    config = ConstraintsConfig(glossary=str(terms), glossary_mode=mode)
    under_test = with_marks(config, learnt, lambda _: None)
    (answer,) = answers_to(under_test, [Request("the cat sat")])
    assert ("zebra" in answer.translation.text) == is_written
    assert [one.target is not None for one in answer.translation.placed] == [is_written]
