"""The Python API: results, settings, checks of arguments, threads."""

import ast
import copy
import inspect
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmtkit
from nmtkit import (
    MetricsConfig,
    OutputConfig,
    SamplingConfig,
    SearchConfig,
    SignificanceConfig,
    TranslationConfig,
)
from nmtkit.config.schema import RECIPES, sections_of
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, VALID_LINES, tiny_codec, write_tiny_model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [write_tiny_model(folder / str(seed), seed=seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def translator(models: list[Path]) -> nmtkit.Translator:
    return nmtkit.load(models[0], search=SearchConfig(max_length_ratio=0.0, max_length_offset=6))


def texts(translations: list[nmtkit.Translation]) -> list[str]:
    return [one.text for one in translations]


def test_each_line_has_its_best_translation_and_its_n_best(models: list[Path]) -> None:
    one = nmtkit.load(models[0]).translate(["a b", "", "c"])
    several = nmtkit.load(models[0], output=OutputConfig(n_best=3)).translate(["a b", "", "c"])
    assert texts(one) == texts(several)
    assert [len(each.n_best) for each in one] == [1, 1, 1]
    assert [len(each.n_best) for each in several] == [3, 1, 3]
    for each in several:
        assert each.n_best[0] == each
        scores = [other.score for other in each.n_best]
        assert scores == sorted(scores, reverse=True)


def test_annotations_are_there_as_requested(models: list[Path]) -> None:
    (plain,) = nmtkit.load(models[0]).translate(["a b c"])
    assert plain.tokens == (*plain.text.split(), "</s>")
    assert not (plain.alignment)
    assert not (plain.token_log_probs)
    assert not (plain.source_tokens)
    assert not (plain.attention)
    output = OutputConfig(alignments=True, token_scores=True)
    (full,) = nmtkit.load(models[0], output=output).translate(["a b c"])
    assert [target for _, target in full.alignment] == [*range(len(full.tokens) - 1)]
    assert sum(full.token_log_probs) == pytest.approx(full.log_prob, abs=1e-4)
    assert full.source_tokens == ("a", "b", "c", "</s>")
    assert [len(row) for row in full.attention] == [4] * len(full.tokens)


@pytest.mark.parametrize(
    ("requested", "filled"),
    [
        ("token_scores", {"token_log_probs", "source_tokens"}),
        ("alignments", {"source_tokens", "alignment", "attention"}),
        ("attention", {"source_tokens", "alignment", "attention"}),
    ],
)
def test_a_request_fills_the_documented_attributes(
    models: list[Path], requested: str, filled: set[str]
) -> None:
    settings: Any = {requested: True}
    (found,) = nmtkit.load(models[0], output=OutputConfig(**settings)).translate(["a b c"])
    names = ("token_log_probs", "source_tokens", "alignment", "attention")
    assert {name for name in names if getattr(found, name)} == filled


def test_a_split_line_has_an_end_symbol_per_part(models: list[Path]) -> None:
    translator = nmtkit.load(
        models[0],
        search=SearchConfig(max_length_offset=2),
        translation=TranslationConfig(max_source_length=3),
        output=OutputConfig(token_scores=True),
    )
    with pytest.warns(UserWarning, match="translated in parts"):
        (found,) = translator.translate(["a b c d"])
    assert (found.tokens[-1], found.tokens.count("</s>")) == ("</s>", 2)
    assert found.source_tokens == ("a", "b", "</s>", "c", "d", "</s>")
    assert sum(found.token_log_probs) == pytest.approx(found.log_prob, abs=1e-4)


@pytest.mark.parametrize("count", [1, 2])
def test_the_score_of_a_translation_is_that_of_its_search(models: list[Path], count: int) -> None:
    translator = nmtkit.load(*models[:count], translation=TranslationConfig(max_tokens=40))
    found = translator.translate(TRAIN_LINES)
    scored = translator.score(TRAIN_LINES, texts(found))
    for one, line in zip(found, scored, strict=True):
        assert line.tokens == one.tokens
        assert line.log_prob == pytest.approx(one.log_prob, abs=1e-4)


def test_prefixes_begin_translations(translator: nmtkit.Translator) -> None:
    found = translator.translate(["a b", "c"], target_prefixes=["H G", ""])
    assert found[0].text.startswith("H G")
    assert found[1].text == translator.translate(["c"])[0].text


def test_a_line_break_is_a_space(translator: nmtkit.Translator) -> None:
    assert translator.translate(["a\nb"]) == translator.translate(["a b"])
    assert translator.score(["a\nb"], ["A\nB"]) == translator.score(["a b"], ["A B"])


def test_any_iterable_is_read_and_no_lines_are_no_results(translator: nmtkit.Translator) -> None:
    expected = translator.translate([*VALID_LINES])
    assert translator.translate(iter(VALID_LINES)) == expected
    assert translator.translate(line for line in VALID_LINES) == expected
    assert not (translator.translate([]))
    assert not (translator.score([], []))


Call = Callable[[nmtkit.Translator], object]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.translate("a b"), "lines must be a list of lines, not str; give"),
        (lambda t: t.translate(b"a"), "lines must be a list of lines, not bytes"),
        (lambda t: t.translate(None), "lines must be a list of lines, not NoneType"),
        (lambda t: t.translate(["a", 3]), "lines, line 2: must be a str, not int"),
        (lambda t: t.translate([["a"]]), "lines, line 1: must be a str, not list"),
        (lambda t: t.score("a", ["A"]), "sources must be a list of lines, not str"),
    ],
)
def test_arguments_of_other_types_are_refused_at_the_call(
    translator: nmtkit.Translator, call: Call, message: str
) -> None:
    with pytest.raises(TypeError, match=rf"^{message}"):
        call(translator)


@pytest.mark.parametrize(
    ("call", "kind", "keys"),
    [
        (lambda t: t.translate(["a", "b\ud83d"]), nmtkit.DataError, r"lines line 2 \ud83d"),
        (lambda t: t.translate(["a" * (2**20 + 1)]), nmtkit.DataError, "lines line 1 1,048,576"),
        (
            lambda t: t.translate(["a"], target_prefixes=["A", "B"]),
            nmtkit.DataError,
            "lines 1 target_prefixes 2",
        ),
        (
            lambda t: t.translate(["a"], target_lang="de"),
            nmtkit.DataError,
            "line 1 target_lang de en",
        ),
        (lambda t: t.score(["a"], []), nmtkit.DataError, "sources 1 targets 0"),
        (
            lambda t: t.score(["a b c"], ["A"], max_length=3),
            nmtkit.DataError,
            "line 1 4 3; --max-length",
        ),
        (lambda t: t.score(["a"], ["A"], max_length=1), nmtkit.ConfigError, "max_length 1 2"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    translator: nmtkit.Translator, call: Call, kind: type[nmtkit.NmtkitError], keys: str
) -> None:
    with refuses(kind, keys):
        call(translator)


@pytest.mark.parametrize("model", [None, b"model", 5, ["model"]])
def test_a_model_that_is_no_path_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match=rf"^model must be a path, not {type(model).__name__}$"):
        nmtkit.load(model)


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"search": SearchConfig(beam="8")}, "beam 8 1 10000 [search.beam]"),  # type: ignore[arg-type]
        ({"output": OutputConfig(n_best=8)}, "n_best 8 beam 4; --beam [output.n_best]"),
        ({"sampling": SamplingConfig(top_k=2)}, "top_k 2 [sampling.top_k]"),
        ({"output": OutputConfig(output_format="moses")}, "output_format moses Python"),
        ({"translation": TranslationConfig(devices=2)}, "devices 2 Python"),
    ],
)
def test_wrong_settings_are_named(models: list[Path], settings: Any, keys: str) -> None:
    with refuses(nmtkit.ConfigError, keys):
        nmtkit.load(models[0], **settings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nmtkit.load(), "load needs the path of a model"),
        (
            lambda: nmtkit.load("x", search={"beam": 8}),  # type: ignore[arg-type]
            "search must be a nmtkit.SearchConfig, not dict",
        ),
        (
            lambda: nmtkit.evaluate([], [], metrics="bleu"),  # type: ignore[arg-type]
            "metrics must be a nmtkit.MetricsConfig, not str",
        ),
    ],
)
def test_sections_have_their_types(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=rf"^{message}$"):
        call()


@pytest.mark.parametrize(
    ("function", "command"),
    [("load", "translate"), ("load_aligner", "align"), ("evaluate", "score")],
)
def test_arguments_are_sections_of_the_command_and_public(function: str, command: str) -> None:
    sections = sections_of(RECIPES[command])
    arguments = inspect.signature(vars(nmtkit.api)[function]).parameters.values()
    keywords = [one for one in arguments if one.kind == one.KEYWORD_ONLY]
    named = {one.name: type(one.default) for one in keywords if one.name != "sources"}  # text
    assert named.items() <= sections.items()
    assert all(getattr(nmtkit, kind.__name__) is kind for kind in named.values())
    if function != "evaluate":
        assert named == sections


def test_values_of_numpy_and_paths_are_those_of_python(models: list[Path]) -> None:
    search: Any = {"beam": np.int64(3), "length_penalty": np.float64(1)}
    translator = nmtkit.load(models[0], search=SearchConfig(**search))
    assert "beam=3, length_penalty=1.0" in repr(translator)
    missing: Any = Path("missing")
    with refuses(nmtkit.DamagedError, "missing"):
        nmtkit.load(models[0], translation=TranslationConfig(shortlist=missing))


def test_errors_are_errors_of_python_too(models: list[Path], tmp_path: Path) -> None:
    with refuses(nmtkit.ConfigError, "beam 0 1 10000"):
        nmtkit.load(models[0], search=SearchConfig(beam=0))
    with refuses(nmtkit.DamagedError, "missing"):
        nmtkit.load(tmp_path / "missing")
    strict = TranslationConfig(max_source_length=3, on_too_long="error")
    translator = nmtkit.load(models[0], translation=strict)
    with refuses(nmtkit.DataError, "line 2 4 3 --max-source-length; --on-too-long"):
        translator.translate(["a", "a b c"])


def test_long_lines_are_warnings_of_the_caller(models: list[Path]) -> None:
    translator = nmtkit.load(models[0], translation=TranslationConfig(max_source_length=3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        translator.translate(["a b c d", "a", "a b c"])
    assert [str(one.message) for one in caught] == [
        "line 1: 5 tokens, more than 3 [--max-source-length]; it is translated in parts "
        "[--on-too-long split]",
        "and 1 more line was too long and treated in the same way",
    ]
    assert {one.filename for one in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator.translate(["a"])


def test_threads_get_the_results_of_single_calls(models: list[Path]) -> None:
    search = SearchConfig(max_length_offset=6)
    translator = nmtkit.load(models[0], search=search, output=OutputConfig(alignments=True))
    requests = [[line] * (number % 3 + 1) for number, line in enumerate(TRAIN_LINES * 2)]
    expected = [translator.translate(lines) for lines in requests]
    scores = [translator.score(lines, lines) for lines in requests]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            translated = pool.map(translator.translate, requests)
            scored = pool.map(translator.score, requests, requests)
            assert [*translated] == expected
            assert [*scored] == scores
    finally:
        sys.setswitchinterval(before)


def test_results_are_pickled_and_translators_are_not(translator: nmtkit.Translator) -> None:
    found = translator.translate(["a b"])
    assert pickle.loads(pickle.dumps(found)) == found
    for use in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match=r"cannot be pickled or copied; call nmtkit.load in"):
            use(translator)


def test_pairs_are_aligned(models: list[Path], tmp_path: Path) -> None:
    reverse_codec = replace(tiny_codec(), source_lang="de", target_lang="en")
    reverse = write_tiny_model(tmp_path / "reverse", reverse_codec)
    settings = nmtkit.LinksConfig(symmetrize="union")
    aligner = nmtkit.load_aligner(models[0], reverse, links=settings)
    one, blank = aligner.align(["a b", ""], ["A", "B"])
    assert {target for _, target in one.links} == {0}
    assert len(one.probabilities) == len(one.links)
    assert (blank.links, blank.request.target) == ((), "B")
    with refuses(nmtkit.DataError, "sources 1 targets 0"):
        aligner.align(["a"], [])
    with refuses(nmtkit.ConfigError, "symmetrize reverse [links.symmetrize]"):
        nmtkit.load_aligner(models[0], links=settings)
    strict = nmtkit.AligningConfig(max_length=2)
    with pytest.warns(UserWarning, match="line 1: 3 tokens on one side, more than 2"):
        nmtkit.load_aligner(models[0], aligning=strict).align(["a b"], ["A"])
    with pytest.raises(TypeError, match="model must be a path, not NoneType"):
        nmtkit.load_aligner(None)  # type: ignore[arg-type]


HYPOTHESES = ["The cat sat on the mat .", "It rained all of the day ."]
REFERENCES = ["The cat sat on a mat .", "It was raining all day long ."]
OTHERS = ["A cat sat on the mat .", "It rained the whole day ."]


def test_evaluate_computes_the_scores_of_the_command() -> None:
    metrics = MetricsConfig(metric="bleu,chrf,ter", lowercase=True)
    expected = score_corpus(make_metrics(metrics), HYPOTHESES, [REFERENCES, OTHERS])
    found = nmtkit.evaluate(HYPOTHESES, iter(REFERENCES), OTHERS, metrics=metrics)
    assert found == expected
    assert [one.name for one in found] == ["BLEU", "chrF2", "TER"]
    assert "Score(name='BLEU', score=" in repr(found[0])


def test_evaluate_gives_intervals_and_scores_trees() -> None:
    (bleu,) = nmtkit.evaluate(
        HYPOTHESES, REFERENCES, significance=SignificanceConfig(confidence=True, resamples=20)
    )
    assert bleu.interval is not None
    trees = ["(S (NP (NN a)) (VP (VB b)))"]
    scores = nmtkit.evaluate(trees, trees, metrics=MetricsConfig(metric="brackets"))
    assert [one.score for one in scores] == [100, 100]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], "a"), "references must be a list of lines, not str"),
        ((["a"], [["a"]]), "references, line 1: must be a str, not list"),
        ((["a"], ["a"], [3]), "references 2, line 1: must be a str"),
    ],
)
def test_evaluate_refuses_arguments_of_other_types(arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"^{message}"):
        nmtkit.evaluate(*arguments)


@pytest.mark.parametrize(
    ("arguments", "metric", "kind", "keys"),
    [
        (([], []), "bleu", nmtkit.DataError, "hypotheses"),
        ((["a"], ["a", "b"]), "bleu", nmtkit.DataError, "hypotheses 1 references 2"),
        ((["a"], ["a"]), "blue", nmtkit.ConfigError, "blue; bleu"),
        ((["a"], ["a"]), "paper-bleu", nmtkit.ConfigError, "paper-bleu; --language-pair en-de"),
    ],
)
def test_evaluate_refuses_wrong_arguments(
    arguments: Any, metric: Any, kind: type[nmtkit.NmtkitError], keys: str
) -> None:
    with refuses(kind, keys):
        nmtkit.evaluate(*arguments, metrics=MetricsConfig(metric=metric))


@pytest.mark.parametrize("bad", ["(S (NP a)", "(S (NP a)))", "no tree"])
def test_evaluate_warns_of_malformed_gold_trees(bad: str) -> None:
    good = "(S (NP (NN a)) (VP (VB b)))"
    with pytest.warns(UserWarning, match=r"^references:2: 1 line has a malformed gold tree"):
        nmtkit.evaluate([good, good], [good, bad], metrics=MetricsConfig(metric="brackets"))


def test_evaluate_warns_of_suspicious_texts() -> None:
    with pytest.warns(UserWarning, match=r"^hypotheses:1: 1 line has '@@'") as caught:
        nmtkit.evaluate(["a@@ b"], ["ab"])
    assert caught[0].filename == __file__


def test_public_names_are_imported_at_their_first_use() -> None:
    code = """
import sys, nmtkit
assert "nmtkit.api" not in sys.modules
assert dir(nmtkit) == sorted(nmtkit.__all__)
nmtkit.load, nmtkit.evaluate, nmtkit.Translator, nmtkit.Translation, nmtkit.SearchConfig
assert not {"torch", "sacrebleu", "click"} & sys.modules.keys()
from nmtkit import *
assert all(name in globals() for name in nmtkit.__all__)
assert not {"click", "nmtkit_cli"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert nmtkit.load is vars(nmtkit)["load"]
    with pytest.raises(AttributeError, match=r"^module 'nmtkit' has no attribute 'lod'$"):
        nmtkit.lod  # type: ignore[attr-defined]  # noqa: B018


def test_typed_imports_and_all_agree() -> None:
    tree = ast.parse(Path(str(nmtkit.__file__)).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if str(node.module).startswith("nmtkit.")]
    assert {*nmtkit.__all__} == {alias.name for node in own for alias in node.names}
