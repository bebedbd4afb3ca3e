"""`nmtkit translate` as its users call it: formats, ensembles, devices, errors."""

import io
import json
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import nmtkit
from nmtkit.data.binary import Dataset
from nmtkit.progress import counting
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from nmtkit_cli import command_line
from tests.integers import needs_integers
from tests.messages import check_errors
from tests.processes import workers_as_forks
from tests.tiny import WORDS, tiny_dataset, write_tiny_model

LINES = ["a b c", "", "d", "h g f e d c b a", "f f"] * 5
LENGTH_OFFSET = 6


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("one") / "model")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("two") / "model", seed=2)


class Command:
    """Runs `nmtkit translate` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capfd = capfd

    def __call__(self, *arguments: object, lines: list[str] = LINES) -> list[str]:
        code, out, err = self.end(*arguments, lines=lines)
        assert (code, err) == (0, "")
        return out.splitlines()

    def end(self, *arguments: object, lines: list[str] = LINES) -> tuple[int, str, str]:
        data = "".join(f"{line}\n" for line in lines).encode()
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        # However slow the machine is, short work is not reported.
        self.monkeypatch.setattr(counting, "FIRST_REPORT_S", math.inf)
        # Models that have learnt nothing translate up to the limit.
        line = ["translate", "--max-length-offset", LENGTH_OFFSET, *arguments]
        code = command_line.run([*map(str, line)])
        captured = self.capfd.readouterr()
        return code, captured.out, captured.err


@pytest.fixture
def translate(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capfd)


def test_every_format_says_the_same(translate: Command, model: Path) -> None:
    text = translate(model)
    scored = [line.split("\t") for line in translate(model, "--scores")]
    objects = [json.loads(line) for line in translate(model, "--output-format", "json")]
    moses = [line.split(" ||| ") for line in translate(model, "--output-format", "moses")]
    assert len(text) == len(LINES)
    assert [line for line, _ in scored] == text
    assert [one["translation"] for one in objects] == text
    assert [one["source"] for one in objects] == LINES
    assert [columns[1] for columns in moses] == text
    assert [int(columns[0]) for columns in moses] == list(range(len(LINES)))
    scores = [one["score"] for one in objects]
    assert [float(score) for _, score in scored] == pytest.approx(scores, abs=1e-6)
    assert [float(columns[3]) for columns in moses] == pytest.approx(scores, abs=1e-6)


def test_objects_come_back_with_their_keys_and_forced_prefixes(
    translate: Command, model: Path
) -> None:
    lines = [
        json.dumps({"id": 5, "source": "a b c", "target_prefix": "h g"}),
        json.dumps({"source": "a b c"}),
    ]
    arguments = ("--input-format", "json", "--output-format", "json")
    forced, free = map(json.loads, translate(model, *arguments, lines=lines))
    assert (forced["id"], forced["target_prefix"]) == (5, "h g")
    assert forced["translation"].startswith("h g")
    assert [free["translation"]] == translate(model, lines=["a b c"])
    code, _, err = translate.end(model, *arguments, lines=[*lines, "[]"])
    assert code == 3
    check_errors(err, 3, "input:3 source")


def test_several_models_are_an_ensemble(translate: Command, model: Path, other: Path) -> None:
    alone = translate(model), translate(other)
    together = translate(model, other)
    assert together not in alone
    assert together == translate(other, model)
    assert translate(model, model) == alone[0]


def test_models_with_different_vocabularies_cannot_be_an_ensemble(
    translate: Command, model: Path, tmp_path: Path
) -> None:
    words = Words(list(WORDS))
    codec = TextCodec("en", "de", words, words, is_shared=True)
    strange = write_tiny_model(tmp_path / "strange", codec)
    code, out, err = translate.end(model, strange)
    assert (code, out) == (2, "")
    check_errors(err, 2, f"{strange} {model}")


def test_samples_follow_from_the_seed(translate: Command, model: Path) -> None:
    first = translate(model, "--sample", "--seed", 3)
    assert first == translate(model, "--sample", "--seed", 3, "--batch-size", 2)
    assert first != translate(model, "--sample", "--seed", 4)
    assert translate(model, "--sample", "--top-k", 1) == translate(model, "--beam", 1)


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["--n-best", "2"], "n_best 2 --output-format moses json; out"),
        (["--n-best", "5", "--output-format", "json"], "n_best 5 beam 4"),
        (["--sample", "--beam", "2"], "beam 2 --sample; out"),
        (["--top-k", "2"], "top_k 2 --sample; out"),
        (["--epsilon-cutoff", "0.02"], "epsilon_cutoff 0.02 --sample; out"),
        (["--scores", "--output-format", "json"], "scores True --output-format json; out"),
        (["--length-penalty", "300"], "length_penalty 300.0 0 10"),
        (["--max-length-ratio", "1e308"], "max_length_ratio 1e+308 0"),
        (["--min-length-ratio", "1e308"], "min_length_ratio 1e+308 0"),
        (["--attention"], "attention True --output-format json; out"),
        (
            ["--token-scores", "--shortlist", "s", "--output-format", "json"],
            "token_scores True shortlist",
        ),
        (["--stream", "--devices", "2"], "devices 2 --stream; out"),
        (
            ["--length-penalty-form", "none", "--length-penalty", "1"],
            "length_penalty 1.0 --length-penalty-form none",
        ),
        (["--beam", "1", "--stop-when", "proved"], "stop_when proved --beam 1"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    arguments: list[str], keys: str, translate: Command, model: Path
) -> None:
    code, out, err = translate.end(model, *arguments)
    assert (code, out) == (2, "")
    check_errors(err, 2, keys)


def test_a_model_is_needed(translate: Command) -> None:
    code, out, err = translate.end()
    assert (code, out) == (2, "")
    check_errors(err, 2, "'MODEL...'", recorded=False)


def test_python_translates_as_the_command(translate: Command, model: Path, other: Path) -> None:
    def objects(*arguments: object) -> list[dict[str, object]]:
        return [json.loads(line) for line in translate(*arguments, "--output-format", "json")]

    search = nmtkit.SearchConfig(max_length_offset=LENGTH_OFFSET)
    found = nmtkit.load(model, search=search).translate(LINES)
    assert [one.text for one in found] == translate(model)
    translator = nmtkit.load(
        str(model),
        other,
        search=replace(search, beam=3),
        output=nmtkit.OutputConfig(n_best=3, token_scores=True),
    )
    found = translator.translate(LINES)
    flags = ("--beam", 3, "--n-best", 3, "--token-scores")
    for one, expected in zip(found, objects(model, other, *flags), strict=True):
        n_best = expected["n_best"]
        assert isinstance(n_best, list)
        assert [values["translation"] for values in n_best] == [each.text for each in one.n_best]
        for key in ("score", "log_prob"):
            assert expected[key] == pytest.approx(getattr(one, key), abs=1e-6)
        assert expected["tokens"] == [*one.tokens]
        assert expected["token_log_probs"] == pytest.approx([*one.token_log_probs], abs=1e-6)
    sampling = nmtkit.SamplingConfig(sample=True, seed=3)
    samples = nmtkit.load(model, search=search, sampling=sampling).translate(LINES)
    assert [one.text for one in samples] == translate(model, "--sample", "--seed", 3)


@dataclass(frozen=True)
class Learnt:
    """What a shortlist of one entry was learnt from, and the model of the same dataset."""

    data: Path
    shortlist: Path
    model: Path


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    folder = tmp_path_factory.mktemp("learnt")
    data, short = tiny_dataset(folder), folder / "short"
    few = ["--candidates", "1", "--frequent", "1"]
    assert command_line.run(["shortlist", str(data), "--out", str(short), *few]) == 0
    return Learnt(data, short, write_tiny_model(folder / "model", Dataset.open(data).codec))


def test_a_short_shortlist_changes_translations(translate: Command, learnt: Learnt) -> None:
    with workers_as_forks():
        narrow = translate(learnt.model, "--shortlist", learnt.shortlist, "--devices", 2)
    assert narrow != translate(learnt.model)


def test_a_shortlist_of_all_words_changes_nothing(
    translate: Command, learnt: Learnt, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wide = tmp_path / "wide"
    assert (
        command_line.run(["shortlist", str(learnt.data), "--out", str(wide), "--frequent", "100"])
        == 0
    )
    assert capfd.readouterr().err == f"learnt from 10 pairs: {wide}\n"
    assert translate(learnt.model, "--shortlist", wide) == translate(learnt.model)


def test_a_shortlist_is_not_overwritten(learnt: Learnt, capfd: pytest.CaptureFixture[str]) -> None:
    assert command_line.run(["shortlist", str(learnt.data), "--out", str(learnt.shortlist)]) == 2
    check_errors(capfd.readouterr().err, 2, f"{learnt.shortlist}; --overwrite")


def test_a_shortlist_of_another_vocabulary_is_refused(
    translate: Command, model: Path, learnt: Learnt
) -> None:
    code, _, err = translate.end(model, "--shortlist", learnt.shortlist)
    assert code == 2
    check_errors(err, 2, f"{learnt.shortlist} {model}; nmtkit shortlist")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("settings", [(), ("--devices", 2), ("--stream",), ("--n-best", 2)])
@pytest.mark.parametrize("precision", ["bfloat16", pytest.param("int8", marks=needs_integers)])
def test_low_precision_translates_nearly_as_well(
    precision: str, settings: tuple[str | int, ...], translate: Command, model: Path
) -> None:
    command = (model, model, "--output-format", "json", *settings)
    exact = [json.loads(line)["score"] for line in translate(*command)]
    translated = translate(*command, "--precision", precision)
    coarse = [json.loads(line)["score"] for line in translated]
    assert coarse == pytest.approx(exact, abs={"bfloat16": 0.2, "int8": 1}[precision])
    assert coarse != exact


def test_an_error_of_a_worker_names_the_line_of_the_whole_input(
    translate: Command, model: Path, tmp_path: Path
) -> None:
    lines = [*"aaaaaa", " ".join("a" * 2000), "a"]
    arguments = ("--devices", 2, "--on-too-long", "error")
    with workers_as_forks():
        code, _, message = translate.end(model, *arguments, lines=lines)
    assert code == 3
    check_errors(message, 3, "line 7 2001 1024")
    assert message.count("\n") == 1
    code, _, message = translate.end(tmp_path / "missing", "--devices", 2)
    assert code == 4
    assert message.count("\n") == 1
