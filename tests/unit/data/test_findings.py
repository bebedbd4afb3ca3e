import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.findings import CHECKS, MIN_LINES, Evidence, Finding, find_all
from nmtkit.data.text_sample import TextSample
from nmtkit.storage.json_data import decode, encode
from nmtkit.text.corpus import Corpus, Pair
from tests.made_up import made_up_line, made_up_pairs, meanings

Damage = Callable[[int, Pair], Pair]

NUM_PAIRS = 2000
CLEAN = made_up_pairs(NUM_PAIRS)
VALID = made_up_pairs(300, seed=2)
NO_FILTERS = FilterConfig()

OTHER_LINES = [made_up_line("three", meaning) for meaning in meanings(NUM_PAIRS, seed=3)]
GREEK = {ord("a") + i: 0x3B1 + i for i in range(26)}


LEXICONS = {
    name: {*" ".join(made_up_line(name, [one]) for one in range(400)).split()}
    for name in ("one", "two", "three")
}


def rank(line: str) -> list[tuple[str, float]]:
    """Identify made-up languages by their words."""
    words = line.split()
    return [
        (name, -9.0 * sum(word not in known for word in words)) for name, known in LEXICONS.items()
    ]


def evidence_of(
    pairs: Sequence[Pair],
    valid: Sequence[Pair] | None = VALID,
    filters: FilterConfig = NO_FILTERS,
    name: str = "train",
) -> Evidence:
    others = evidence_of(valid, None, name="valid") if valid else None
    sample = TextSample(others.sample.pairs if others else ())
    corpus = Corpus(
        *(name, ("en", "de"), Path(f"{name}.en"), Path(f"{name}.de")),
        num_pairs=len([*sample.watch(pairs)]),
        states={},
    )
    return Evidence(corpus, sample, filters, others, rank=rank)


def found_in(
    pairs: Sequence[Pair],
    valid: Sequence[Pair] | None = VALID,
    filters: FilterConfig = NO_FILTERS,
) -> list[Finding]:
    return find_all(evidence_of(pairs, valid, filters))


def damaged(damage: Damage, lines: Sequence[int]) -> list[Pair]:
    """Return the clean pairs with some, by number from 1, damaged."""
    chosen = {*lines}
    return [damage(i, pair) if i in chosen else pair for i, pair in enumerate(CLEAN, 1)]


def some_lines(share: float) -> list[int]:
    return sorted(random.Random(1).sample(range(1, NUM_PAIRS + 1), round(share * NUM_PAIRS)))


DAMAGES: dict[str, tuple[Damage, FilterConfig, str]] = {
    "swapped": (lambda _, pair: (pair[1], pair[0]), NO_FILTERS, ""),
    "language": (lambda i, pair: (pair[0], OTHER_LINES[i - 1]), NO_FILTERS, ""),
    "script": (
        lambda _, pair: (pair[0].translate(GREEK), pair[1]),
        FilterConfig(source_script="latin"),
        "--source-script latin",
    ),
    "copies": (lambda _, pair: (pair[0], pair[0]), FilterConfig(drop_copies=True), "--drop-copies"),
    "duplicates": (lambda _, _pair: CLEAN[0], FilterConfig(drop_duplicates=True), "--drop-dupl"),
    "validation": (
        lambda i, pair: VALID[i // 10] if i % 10 == 0 else pair,
        FilterConfig(held_out=("valid",)),
        "--held-out valid",
    ),
    "entities": (lambda _, pair: (pair[0], pair[1] + " &quot;"), NO_FILTERS, "--unescape"),
    "encoding": (lambda _, pair: (pair[0] + " \u00c3\u00a9", pair[1]), NO_FILTERS, ""),
    "segmented": (
        lambda _, pair: (pair[0], pair[1][:3] + "@@ " + pair[1][3:]),
        NO_FILTERS,
        "--segmentation words",
    ),
}


def test_a_clean_text_has_no_finding() -> None:
    assert found_in(CLEAN) == []
    assert found_in(CLEAN, None) == []
    assert found_in([]) == []


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("share", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("check", DAMAGES)
def test_damage_is_found_with_its_share_and_lines(check: str, share: float) -> None:
    damage, _, option = DAMAGES[check]
    lines = some_lines(share)
    findings = {one.check: one for one in found_in(damaged(damage, lines))}
    if share < 1:
        assert [*findings] == [check]
    finding = findings[check]
    if check != "validation":  # whose share is of the validation text
        assert finding.share == pytest.approx(share, rel=0.1, abs=0.001)
    assert {*finding.lines} <= {*lines}
    assert f"line {finding.lines[0]}" in str(finding) or f"lines {finding.lines[0]}" in str(finding)
    assert option in finding.message
    assert decode(Finding, json.loads(json.dumps(encode(finding)))) == finding


@pytest.mark.parametrize("check", [name for name, one in DAMAGES.items() if one[1] != NO_FILTERS])
def test_what_a_filter_drops_is_no_finding(check: str) -> None:
    damage, filters, _ = DAMAGES[check]
    assert found_in(damaged(damage, some_lines(0.01)), filters=filters) == []


def test_a_shifted_text_is_found() -> None:
    sources, targets = zip(*CLEAN, strict=True)
    targets = (*targets[:1000], *targets[1001:], targets[1000])
    [finding] = found_in(list(zip(sources, targets, strict=True)))
    assert (finding.check, finding.text) == ("misaligned", "train")
    # In whole blocks; the one of the border, lines 961 to 1024, mostly corresponds.
    assert list(finding.lines) == [1025, 1984]
    assert "; target line N belongs to source line N+1; " in finding.message
    assert "between lines 961 and 1088" in finding.message


@pytest.mark.parametrize(
    ("check", "num_pairs", "least"),
    [("copies", 1000, MIN_LINES), ("copies", 2000, 6), ("duplicates", 2000, 10)],
)
def test_few_lines_and_small_shares_are_chance(check: str, num_pairs: int, least: int) -> None:
    """0.3 % of lines are too many, and 0.5 % of duplicates."""
    for number in (least - 1, least):
        pairs = damaged(DAMAGES[check][0], range(2, 2 + number))[:num_pairs]
        assert bool(found_in(pairs)) == (number == least)


def test_the_validation_text_is_checked_alone() -> None:
    pairs = damaged(DAMAGES["encoding"][0], some_lines(0.1))
    pairs = [(source, source if i % 5 == 0 else target) for i, (source, target) in enumerate(pairs)]
    findings = found_in(pairs, None)
    assert [one.check for one in findings] == ["copies", "encoding", "encoding"]
    assert "remove them" in findings[0].message


def test_copies_are_no_finding_where_the_validation_text_has_them_too() -> None:
    copied = [
        (source, source if i % 5 == 0 else target) for i, (source, target) in enumerate(CLEAN)
    ]
    valid = [(source, source if i % 6 == 0 else target) for i, (source, target) in enumerate(VALID)]
    assert [one.check for one in found_in(copied)] == ["copies"]
    assert found_in(copied, valid) == []
    (finding,) = found_in(valid, None)
    assert finding.message.endswith("remove them, unless the task has copies")


@pytest.mark.parametrize("check", ["swapped", "language", "script"])
def test_a_text_with_another_tag_may_be_of_other_languages(check: str) -> None:
    pairs = damaged(DAMAGES[check][0], range(1, NUM_PAIRS + 1))
    evidence = evidence_of(pairs)
    assert check in {one.check for one in find_all(evidence)}
    assert check not in {one.check for one in find_all(replace(evidence, has_other_tag=True))}


def test_paths_with_braces_are_shown() -> None:
    evidence = evidence_of(damaged(DAMAGES["swapped"][0], some_lines(0.1)))
    assert evidence.valid
    valid = replace(evidence.valid, corpus=replace(evidence.valid.corpus, prefix="{x}"))
    [finding] = find_all(replace(evidence, valid=valid))
    assert "compared with {x} (such as lines " in finding.message


def test_repeated_lines_are_duplicates() -> None:
    pairs = random.Random(1).choices(CLEAN, k=NUM_PAIRS)
    assert [one.check for one in found_in(pairs)] == ["duplicates"]


ESCAPED = damaged(DAMAGES["entities"][0], some_lines(0.1))
ESCAPED_TWICE = [(source, target.replace("&", "&amp;")) for source, target in ESCAPED]


@pytest.mark.parametrize(
    ("pairs", "are_unescaped", "can_be", "remedy"),
    [
        (ESCAPED, (False, False), True, "--unescape turns them into characters"),
        (ESCAPED, (False, False), False, "replace them in the file"),
        (ESCAPED, (True, False), False, "replace them in the file"),
        (ESCAPED, (False, True), True, None),
        (ESCAPED_TWICE, (True, True), True, "unescape the file once"),
    ],
)
def test_the_remedy_for_entities_depends_on_the_vocabulary(
    pairs: Sequence[Pair], are_unescaped: tuple[bool, bool], can_be: bool, remedy: str | None
) -> None:
    evidence = replace(evidence_of(pairs), are_unescaped=are_unescaped, can_be_unescaped=can_be)
    assert [one.message.rpartition("; ")[2] for one in find_all(evidence)] == [remedy] * bool(
        remedy
    )


def test_without_an_identifier_languages_are_not_measured() -> None:
    evidence = evidence_of(damaged(DAMAGES["language"][0], some_lines(0.1)))
    [finding] = find_all(evidence)
    assert finding.check == "language"
    assert "mostly three" in finding.message
    assert find_all(replace(evidence, rank=None)) == []


def test_a_side_in_another_language_than_its_direction_says_is_a_finding() -> None:
    evidence = evidence_of(CLEAN, None)
    assert find_all(replace(evidence, languages=("one", "two"))) == []
    [finding] = find_all(replace(evidence, languages=("one", "three")))
    assert (finding.check, finding.text) == ("language", "train.de")
    assert "mostly in two" in finding.message


def test_lost_characters_and_wrong_encodings_are_distinguished() -> None:
    lost = [(source + " \ufffd", target) for source, target in CLEAN]
    [finding] = found_in(lost)
    assert (finding.check, finding.share) == ("encoding", 1.0)
    assert "lost" in finding.message
    [finding] = found_in(damaged(DAMAGES["encoding"][0], some_lines(0.1)))
    assert "read as another encoding" in finding.message
    [finding] = found_in([(source + "\x02", target) for source, target in CLEAN])
    assert "control" in finding.message


@pytest.mark.parametrize(("share", "is_found"), [(0.05, False), (0.2, True), (1, True)])
def test_tokenized_text_is_found(share: float, is_found: bool) -> None:
    lines = {*some_lines(share)}
    pairs = [
        (source + ", a.", target + (" , a ." if i in lines else ", a."))
        for i, (source, target) in enumerate(CLEAN, 1)
    ]
    found = found_in(pairs)
    assert [(one.check, one.text) for one in found] == [("segmented", "train.de")] * is_found
    evidence = replace(evidence_of(pairs), are_segmented=(False, True))
    assert find_all(evidence) == []
    segmented = [(source, target.replace(" ", "@@ ", 1)) for source, target in pairs]
    assert [one.check for one in found_in(segmented)] == ["segmented"]


def test_validation_text_that_is_the_training_text_is_not_to_be_held_out() -> None:
    [finding] = found_in(CLEAN[:300], CLEAN[:300])
    assert finding.message.endswith("give --valid another text")
    [finding] = found_in(CLEAN, CLEAN[:300])
    assert finding.message.endswith("--held-out valid drops them")


def test_every_check_is_tested() -> None:
    assert {*DAMAGES, "misaligned"} == {*CHECKS}


def test_both_sides_of_one_language_are_not_swapped() -> None:
    generator = random.Random(1)
    pairs = [
        (line, " ".join(generator.sample(words := line.split(), len(words)))) for line, _ in CLEAN
    ]
    evidence = evidence_of(pairs, pairs[:300])
    assert not evidence.are_swapped.any()
    assert np.count_nonzero(evidence.nats_of_swap) == 0


def test_untranslated_targets_are_not_swapped() -> None:
    sources = [source for source, _ in CLEAN]
    untranslated = list(pairwise(sources))
    assert not evidence_of([*CLEAN, *untranslated[:500]]).are_swapped.any()
