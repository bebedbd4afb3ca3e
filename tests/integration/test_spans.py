"""Markup, placeholders and terms as users of `nmtkit translate` have them."""

import json
from pathlib import Path

import pytest

import nmtkit
from nmtkit.config.translation import ConstraintsConfig
from tests.commands import nmtkit_in_text as run
from tests.conversions import shared_codec, write_random_model
from tests.messages import refused
from tests.tiny import write_lines, write_tiny_model
from tests.trees import parser_codec

LINES = [
    *(
        "the <b>cat</b> {a} sat &amp; ran",
        "",
        "12 dogs",
        "<x id='1'/>",
        "a mat",
        "dogs {b} <i>ran</i>",
    ),
    '<b>the {n, plural, one {cat} other {cats}}</b> sat on <g translate="no">the mat</g>',
]
OPTIONS = ("--markup", "xml", "--placeholders", "braces,number", "--beam", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, text and a glossary."""
    folder = tmp_path_factory.mktemp("spans")
    write_random_model(folder / "model", shared_codec(), {})
    write_lines(folder / "in", LINES)
    write_lines(folder / "terms.tsv", ["dogs\tcats|mats"])
    return folder


def translate(folder: Path, *options: object) -> list[str]:
    text = (folder / "in").read_text("utf-8")
    return run("translate", folder / "model", *OPTIONS, *options, stdin=text).stdout.splitlines()


def test_streams_files_and_processes_give_the_same(folder: Path, tmp_path: Path) -> None:
    terms = ("--glossary", folder / "terms.tsv")
    found = translate(folder, *terms)
    assert [line.count("{") for line in found] == [line.count("{") for line in LINES]
    assert [line.count("<") for line in found] == [line.count("<") for line in LINES]
    assert found[5].count("cats") + found[5].count("mats") >= 1
    assert translate(folder, *terms, "--stream") == found
    assert translate(folder, *terms, "--devices", 2, "--chunk-lines", 2) == found
    files = ("--input", folder / "in", "--output", tmp_path / "out")
    run("translate", folder / "model", *OPTIONS, *terms, *files)
    assert (tmp_path / "out").read_text("utf-8").splitlines() == found


def test_another_glossary_is_other_work(folder: Path, tmp_path: Path) -> None:
    terms = write_lines(tmp_path / "terms.tsv", ["dogs\tcats"])
    files = ("--input", folder / "in", "--output", tmp_path / "out", "--glossary", terms)
    command = ("translate", folder / "model", "--on-too-long", "error", "--max-source-length", 12)
    refused(run(*command, *files), 3, "line 1 12; shorten")
    assert (tmp_path / "out.partial").exists()
    write_lines(terms, ["dogs\tmats"])
    refused(run(*command, *files), 2, "out.partial --glossary; out.partial")


def test_json_and_python_say_where_parts_are(folder: Path) -> None:
    line = {"source": "the {a} cat sat", "terms": {"cat": ["dog"]}}
    options = ("--placeholders", "braces", "--beam", "2")
    formats = ("--input-format", "json", "--output-format", "json")
    text = json.dumps(line)
    found = json.loads(run("translate", folder / "model", *options, *formats, stdin=text).stdout)
    for one, word in zip(found["placed"], ("{a}", "dog"), strict=True):
        assert found["translation"][slice(*one["translation"])] == word
    again = json.loads(
        run("translate", folder / "model", *options, *formats, stdin=json.dumps(found)).stdout
    )
    assert again == found
    translator = nmtkit.load(
        folder / "model",
        constraints=ConstraintsConfig(placeholders="braces"),
        search=nmtkit.SearchConfig(beam=2),
    )
    (plain,) = translator.translate(["the {a} cat sat"])
    ((kind, target),) = [(one.kind, one.target) for one in plain.placed]
    assert kind == "placeholder"
    assert target is not None
    assert plain.text[slice(*target)] == "{a}"


def test_processes_get_the_terms_of_json_and_warn_once(folder: Path) -> None:
    text = '{"source": "the cat sat", "terms": {"cat": ["dog"]}}\n' * 4
    command = ("translate", folder / "model", "--input-format", "json", "--glossary-mode", "soft")
    one, two = (run(*command, "--devices", number, stdin=text) for number in (1, 2))
    assert "dog" in one.stdout
    assert one.stdout == two.stdout
    for done in (one, two):
        assert done.stderr.count("no marks of terms are used") == 1


def test_what_the_search_cannot_write_is_counted(folder: Path) -> None:
    options = ("--max-output-length", 2, "--glossary", folder / "terms.tsv")
    text = "the cat {a} sat\ndogs ran\n"
    done = run("translate", folder / "model", *OPTIONS, *options, stdin=text)
    assert "1 of 1 placeholders were inserted" in done.stderr
    assert "{a}" in done.stdout


def test_usage_is_checked(folder: Path, tmp_path: Path) -> None:
    for options, keys in (
        (["--placeholders", "brackets"], "placeholders brackets; braces"),
        (["--glossary-case"], "glossary_case --glossary; out"),
        (["--sample", "--placeholders", "url"], "placeholders beam; --placeholders"),
        (["--sample", "--placeholder-pattern", "a"], "placeholder_pattern; --placeholder-pattern"),
        (["--placeholder-pattern", "("], "--placeholder-pattern (; backslash"),
        (["--glossary", tmp_path / "none.tsv"], "none.tsv; file"),
    ):
        refused(run("translate", folder / "model", *options), 2, keys)


def test_parsers_take_none_of_the_options(tmp_path: Path) -> None:
    parser = write_tiny_model(tmp_path / "parser", parser_codec())
    refused(run("translate", parser, "--markup", "xml", stdin="a b\n"), 2, "markup xml parser; out")
