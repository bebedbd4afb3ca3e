import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmtkit.config.metrics import MetricsConfig, SignificanceConfig, metrics_of
from nmtkit.errors import ConfigError
from nmtkit.evaluation.metric import Interval, Score
from nmtkit.evaluation.metrics import count_corpus, make_metrics
from nmtkit.evaluation.significance import paired_bootstrap, score_systems
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.progress.counting import WorkReporter
from tests.doubles import report_everything
from tests.messages import refuses

REFERENCE = [f"this is sentence {n} of a text that is not very long" for n in range(40)]
GOOD = [line.replace("not", "never") if n % 3 else line for n, line in enumerate(REFERENCE)]
BAD = [line.replace("text that", "long story which") for line in GOOD]


def score(config: SignificanceConfig, *systems: Sequence[str], metric: str = "bleu") -> list[Score]:
    (made,) = make_metrics(MetricsConfig(metric=metric))
    texts = Texts([Text("x", lines) for lines in systems], [Text("ref", REFERENCE)])
    return score_systems(made, texts, config)


def test_by_default_there_are_no_intervals_or_tests() -> None:
    for one in score(SignificanceConfig(), GOOD, BAD):
        assert one.interval is None
        assert one.p_value is None
        assert "seed" not in one.signature


LONG_RESAMPLING = "nmtkit.evaluation.significance._LONG_RESAMPLING"


@pytest.mark.parametrize(
    ("config", "last"),
    [
        (SignificanceConfig(), []),
        (SignificanceConfig(paired_ar=True, trials=4), []),
        (SignificanceConfig(paired_bs=True, resamples=5), ["testing 2 systems by TER"]),
        (SignificanceConfig(paired_ar=True, trials=5), ["testing 2 systems by TER"]),
    ],
)
def test_progress_names_system_and_metric_and_tests_are_announced_after_it(
    config: SignificanceConfig, last: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report_everything(monkeypatch)
    monkeypatch.setattr(LONG_RESAMPLING, 5 * 2 * 40)
    messages: list[str] = []
    (metric,) = make_metrics(MetricsConfig(metric="ter"))
    texts = Texts([Text("good", GOOD), Text("bad", BAD)], [Text("ref", REFERENCE)])
    plain = score_systems(metric, texts, config)
    assert score_systems(metric, texts, config, WorkReporter(messages.append)) == plain
    counts = [line.partition(" lines")[0] for line in messages if "scored" in line]
    assert counts == [
        f"scored {name} by TER: {number}{' of 40' * (number < 40)}"
        for name in ("good", "bad")
        for number in range(1, 41)
    ]
    assert messages[80:] == last


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "moses-bleu"])
def test_the_two_halves_of_scoring_are_one_of_sacrebleu(metric: str) -> None:
    (ours,) = make_metrics(MetricsConfig(metric=metric, language_pair="de-en"))
    (whole,) = make_metrics(MetricsConfig(metric=metric, language_pair="de-en"))
    expected = whole.scorer.corpus_score(BAD, [REFERENCE, GOOD], n_bootstrap=50)
    actual = ours.score(ours.count(iter(BAD), [REFERENCE, GOOD]), resamples=50)
    assert actual.interval == Interval(expected._mean, expected._ci)
    assert actual.score == expected.score
    assert actual.signature == whole.with_marks(whole.scorer.get_signature())


def test_an_interval_contains_the_score_and_the_signature_names_the_bootstrap() -> None:
    config = SignificanceConfig(confidence=True, resamples=100)
    for one in score(config, GOOD, BAD):
        assert one.interval is not None
        assert abs(one.interval.mean - one.score) < one.interval.half_width < 20
        assert one.signature.startswith("nrefs:1|bs:100|seed:12345|")


def test_a_text_of_equal_sentences_has_no_uncertainty() -> None:
    (metric,) = make_metrics(MetricsConfig())
    texts = Texts([Text("x", ["a b c d x"] * 10)], [Text("ref", ["a b c d e"] * 10)])
    config = SignificanceConfig(confidence=True, resamples=20)
    (one,) = score_systems(metric, texts, config)
    assert one.interval is not None
    assert one.interval.mean == pytest.approx(one.score)
    assert one.interval.half_width == pytest.approx(0)


@pytest.mark.parametrize("test", ["paired_bs", "paired_ar"])
@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_system_differs_from_a_worse_one_but_not_from_itself(test: str, metric: str) -> None:
    config = SignificanceConfig(**{test: True}, resamples=50, trials=50)
    first, same, worse = score(config, GOOD, GOOD, BAD, metric=metric)
    assert first.p_value is None
    assert same.p_value == 1
    assert worse.p_value is not None
    assert worse.p_value < 0.1
    name = "bs" if test == "paired_bs" else "ar"
    assert worse.signature.startswith(f"nrefs:1|{name}:50|seed:12345|")


def test_approximate_randomization_gives_intervals_on_request() -> None:
    plain = SignificanceConfig(paired_ar=True, trials=20)
    assert all(one.interval is None for one in score(plain, GOOD, BAD))
    config = SignificanceConfig(paired_ar=True, trials=20, confidence=True, resamples=30)
    for one in score(config, GOOD, BAD):
        assert one.interval is not None
        assert "|bs:30|ar:20|seed:12345|" in one.signature


def test_the_same_seed_draws_the_same_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SignificanceConfig(confidence=True, resamples=30)
    once = score(config, GOOD)
    assert score(config, GOOD) == once
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    assert score(config, GOOD) != once


def test_one_system_cannot_be_tested() -> None:
    with refuses(ConfigError, "test systems"):
        score(SignificanceConfig(paired_bs=True), GOOD)


@pytest.mark.parametrize("seed", ["-1", "x", "", "0"])
def test_an_invalid_seed_is_an_error(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    with refuses(ConfigError, f"SACREBLEU_SEED {seed} 1"):
        score(SignificanceConfig(confidence=True), GOOD)
    score(SignificanceConfig(), GOOD)  # draws nothing


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_figures_equal_those_of_the_sacrebleu_command(tmp_path: Path, test: str) -> None:
    for name, lines in {"ref": REFERENCE, "good": GOOD, "bad": BAD}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
    command = ["sacrebleu", "ref", "-i", "good", "bad", "-m", "chrf", "--width", "4", "-f", "text"]
    command += [f"--paired-{test}", f"--paired-{test}-n", "60"]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, check=True
    )
    # Its table: the last row, from the system's name to the end of the frame.
    row = done.stdout.decode().partition(" bad ")[2].partition("\u2558")[0]
    expected = [float(figure) for figure in re.findall(r"[0-9]+\.[0-9]+", row)]
    config = SignificanceConfig(
        paired_bs=test == "bs", paired_ar=test == "ar", resamples=60, trials=60
    )
    _, worse = score(config, GOOD, BAD, metric="chrf")
    interval = [worse.interval.mean, worse.interval.half_width] if worse.interval else []
    assert [worse.score, *interval, worse.p_value] == pytest.approx(expected, abs=1e-4)
    assert len(expected) == (4 if test == "bs" else 2)


OTHER = [line.replace("very", "too") if n % 4 else line for n, line in enumerate(GOOD)]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("metric", [*metrics_of("text"), "brackets"])
@pytest.mark.parametrize("systems", [(GOOD, BAD), (GOOD, OTHER), (OTHER, BAD), (GOOD, GOOD)])
@pytest.mark.parametrize("seed", ["12345", "7"])
def test_the_paired_bootstrap_of_statistics_is_that_of_texts(
    metric: str,
    systems: tuple[list[str], list[str]],
    seed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    made, *_ = make_metrics(MetricsConfig(metric=metric, language_pair="en-en"))
    lines, reference = [[*one] for one in systems], REFERENCE
    if metric == "brackets":
        lines = [[tree_of(line) for line in one] for one in lines]
        reference = [tree_of(line) for line in REFERENCE]
    config = SignificanceConfig(paired_bs=True, resamples=50)
    texts = Texts(
        [Text(str(n), [made.prepare(line) for line in one]) for n, one in enumerate(lines)],
        [Text("ref", [made.prepare(line) for line in reference])],
    )
    *_, expected = score_systems(made, texts, config)
    first, second = (count_corpus(made, one, [reference]) for one in lines)
    assert paired_bootstrap(made, first, second, 50) == expected.p_value


def test_the_paired_bootstrap_draws_anew_where_there_is_no_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, *_ = make_metrics(MetricsConfig())
    systems = GOOD[:20] + OTHER[20:], OTHER[:18] + GOOD[18:]
    first, second = (count_corpus(made, one, [REFERENCE]) for one in systems)
    monkeypatch.setenv("SACREBLEU_SEED", "none")
    assert len({paired_bootstrap(made, first, second, 200) for _ in range(5)}) > 1
    monkeypatch.setenv("SACREBLEU_SEED", "0")
    with refuses(ConfigError, "SACREBLEU_SEED 0 1 none"):
        paired_bootstrap(made, first, second, 2)


def tree_of(line: str) -> str:
    """Return a tree over the words of a line, the same for lines of the same words."""
    return "(S " + " ".join(f"({word.upper()} (X w) (Y w))" for word in line.split()[:12]) + ")"
