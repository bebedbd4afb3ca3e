"""The share of translated terms: brute force, scripts, settings, and real translations."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nmtkit
from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.evaluate import evaluate, score_lines
from nmtkit.evaluation.metric import Score
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.text.lines import read_lines
from tests.commands import nmtkit as run
from tests.messages import refused, refuses
from tests.shared_data import DATA, needs_data
from tests.tiny import write_lines

ENTRIES = (
    "prize\tPreis|Preisgeld",
    "price\tPreis",
    "prize money\tPreisgeld",
    "\u4e2d\u56fd\tChina",
)
TERMS = {
    "prize": ("Preis", "Preisgeld"),
    "price": ("Preis",),
    "\u4e2d\u56fd": ("China",),
}
HINDI = "\u0915\u093f\u0924\u093e\u092c"
THAI = "\u0e02\u0e49\u0e32\u0e27"
ARABIC = "\u0643\u062a\u0627\u0628"
SOURCE_LINE = st.lists(st.sampled_from([*TERMS, "the", "prizes"]), max_size=6)
TARGET_LINE = st.lists(
    st.sampled_from(["Preis", "preisgeld", "CHINA", "der", "Preise"]), max_size=6
)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> MetricsConfig:
    path = write_lines(tmp_path_factory.mktemp("glossary") / "terms.tsv", ENTRIES)
    return MetricsConfig(metric="terms", glossary=str(path))


def texts(source: list[str], *systems: list[str]) -> Texts:
    return Texts(
        [Text(f"system {number}", lines) for number, lines in enumerate(systems)],
        [Text("reference", [""] * len(source))],
        Text("source", source),
    )


def scores(
    config: MetricsConfig,
    given_texts: Texts,
    significance: SignificanceConfig | None = None,
) -> list[Score]:
    found = evaluate(
        given_texts,
        make_metrics(config),
        significance or SignificanceConfig(),
        BreakdownConfig(by_length=True),
    )
    return [*found.scores[0]]


def share(config: MetricsConfig, source: str, translation: str) -> str:
    """Return found and demanded terms of a line."""
    (score,) = scores(config, texts([source], [translation]))
    return f"{score.figures['found']}/{score.figures['terms']}"


@given(st.lists(st.tuples(SOURCE_LINE, TARGET_LINE), min_size=1, max_size=4))
def test_it_counts_each_occurrence_once(
    config: MetricsConfig, corpus: list[tuple[list[str], list[str]]]
) -> None:
    corpus = [*corpus, (["price"], ["Preis"])]
    found = total = 0
    for source, translation in corpus:
        words = Counter(word.lower() for word in translation)
        for term, number in Counter(word for word in source if word in TERMS).items():
            found += min(number, sum(words[target.lower()] for target in TERMS[term]))
            total += number
    lines = [" ".join(source) for source, _ in corpus], [" ".join(one) for _, one in corpus]
    (score,) = scores(config, texts(*lines))
    assert score.score == pytest.approx(100 * found / total)
    assert score.figures == {"found": found, "terms": total}
    assert score.details == f"(found = {found} terms = {total})"


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("The prize", "Das Preisgeld", "1/1"),
        ("prize prize PRIZE", "Preis, preisgeld", "2/3"),
        ("prize", "Preis Preis", "1/1"),
        ("prize money", "Preis", "0/1"),
        ("prize money", "Preisgeld", "1/1"),
        ("prize", "Preise und Ehrenpreis", "0/1"),
        ("\u6211\u7231\u4e2d\u56fd\u4eba", "Ich liebe China.", "1/1"),
    ],
)
def test_terms_are_whole_words_and_clipped(
    source: str, translation: str, expected: str, config: MetricsConfig
) -> None:
    assert share(config, source, translation) == expected


@pytest.mark.parametrize(
    ("entry", "source", "translation"),
    [
        ("China\t\u4e2d\u56fd", "in China", "\u5728\u4e2d\u56fd\u3002"),
        ("school\t\u5b66\u6821", "a school", "\u3053\u306e\u5b66\u6821\u306f"),
        (f"book\t{HINDI}", "a book", f"\u092f\u0939 {HINDI} \u0939\u0948\u0964"),
        (f"rice\t{THAI}", "rice", f"\u0e01\u0e34\u0e19{THAI}\u0e41\u0e25\u0e49\u0e27"),
        (f"book\t{ARABIC}", "a book", f"\u0647\u0630\u0627 {ARABIC}\u060c"),
    ],
)
def test_translations_may_be_of_any_script(
    entry: str, source: str, translation: str, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "terms.tsv", [entry])
    assert share(MetricsConfig(metric="terms", glossary=str(path)), source, translation) == "1/1"


def test_case_counts_on_request(config: MetricsConfig) -> None:
    with_case = replace(config, glossary_case=True)
    assert share(config, "Prize prize", "preis Preis") == "2/2"
    assert share(with_case, "Prize prize", "preis Preis") == "1/1"
    assert share(with_case, "prize prize", "preis Preis") == "1/2"


def test_the_signature_names_glossary_and_case(config: MetricsConfig, tmp_path: Path) -> None:
    given_texts = texts(["prize"], ["Preis"])
    (one,) = scores(config, given_texts)
    assert "|glossary:" in one.signature
    assert "|case:lc|" in one.signature
    (other,) = scores(replace(config, glossary_case=True), given_texts)
    assert "|case:mixed|" in other.signature
    path = write_lines(tmp_path / "terms.tsv", ["prize\tPreis"])
    (another,) = scores(replace(config, glossary=str(path)), given_texts)
    assert another.signature != one.signature


def test_each_line_has_a_score_and_is_right_without_terms(config: MetricsConfig) -> None:
    given_texts = texts(["prize prize", "none", "price"], ["Preis", "x", ""])
    assert [*score_lines(given_texts, make_metrics(config))] == [[50], [100], [0]]


def test_python_gives_the_source(config: MetricsConfig) -> None:
    (score,) = nmtkit.evaluate(["Preis"], [""], sources=["the prize"], metrics=config)
    assert score.score == 100
    with refuses(ConfigError, "source terms; --source"):
        nmtkit.evaluate(["Preis"], ["Preis"], metrics=config)
    with refuses(DataError, "hypotheses sources 1 2; source"):
        nmtkit.evaluate(["Preis"], ["Preis"], sources=["prize", ""], metrics=config)


def test_a_source_without_terms_is_refused(config: MetricsConfig) -> None:
    with refuses(DataError, "sources terms.tsv; --source"):
        nmtkit.evaluate(["Preis"], ["Preis"], sources=["Preis"], metrics=config)


def test_the_glossary_must_be_given() -> None:
    with refuses(ConfigError, "glossary; --glossary"):
        nmtkit.evaluate(["x"], ["x"], sources=["x"], metrics=MetricsConfig(metric="terms"))


def test_a_glossary_has_no_effect_on_other_metrics(config: MetricsConfig) -> None:
    with refuses(ConfigError, "glossary glossary_case bleu; leave"):
        metrics = replace(config, metric="bleu", glossary="terms.tsv", glossary_case=True)
        nmtkit.evaluate(["x"], ["x"], metrics=metrics)


def test_the_command_scores_terms_next_to_other_metrics(tmp_path: Path) -> None:
    names = ("terms.tsv", "source", "reference", "system")
    lines = (
        ENTRIES,
        ["The prize", "A price"],
        ["Der Preis", "Ein Preis"],
        ["Das Geld", "Ein Preis"],
    )
    glossary, source, reference, system = (
        write_lines(tmp_path / name, text) for name, text in zip(names, lines, strict=True)
    )
    options = ("--metric", "chrf,terms", "--glossary", glossary, "--reference", reference)
    done = run("score", *options, "--source", source, "--json", system)
    assert (done.stderr, done.returncode) == (b"", 0)
    found = json.loads(done.stdout)
    assert (found["Terms"]["score"], found["Terms"]["terms"]) == (50, 2)
    assert 0 < found["chrF2"]["score"] < 100
    refused(run("score", *options, system), 2, "source terms; --source")


def test_json_lines_have_the_source(config: MetricsConfig, tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "reference", ["x", "y"])
    pairs = [("a prize", "Ein Preis"), ("a price", "Teuer")]
    lines = [json.dumps({"source": one, "translation": other}) for one, other in pairs]
    system = write_lines(tmp_path / "system", lines)
    options = ("--metric", "terms", "--glossary", config.glossary, "--input-format", "json")
    done = run("score", *options, "--reference", reference, system)
    assert (done.stderr, done.returncode) == (b"", 0)
    assert done.stdout.startswith(b"Terms = 50.00 (found = 1 terms = 2)  nrefs:1|glossary:")


def test_the_source_has_no_effect_on_other_metrics(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "source", ["a"])
    options = ("--reference", source, "--source", source)
    refused(run("score", *options, source), 2, "--source --metric terms --html")


@needs_data
def test_real_references_have_their_terms(tmp_path: Path) -> None:
    """A regular expression, counted apart, also finds 446 of 455; eight of 9 are a second one."""
    source = [*read_lines(DATA / "terms" / "newstest2017.en.gz")]
    reference = [*read_lines(DATA / "score" / "wmt17-en-de" / "ref.de.gz")]
    found = total = 0
    for line in read_lines(DATA / "terms" / "iate.414.tsv"):
        _, number, *terms = line.split("\t")
        pairs = [pair for pair in zip(terms[::2], terms[1::2], strict=True) if all(pair)]
        path = write_lines(tmp_path / "terms.tsv", ["\t".join(pair) for pair in pairs])
        config = MetricsConfig(metric="terms", glossary=str(path))
        index = int(number) - 1
        (score,) = scores(config, texts([source[index]], [reference[index]]))
        found += score.figures["found"]
        total += score.figures["terms"]
    assert (found, total) == (446, 455)
