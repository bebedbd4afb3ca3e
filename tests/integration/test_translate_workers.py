"""`nmtkit translate --devices 2`: processes answer as one does, and end when they should."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import OutputConfig
from nmtkit.decoding.answers import Answer, BatchResult, Request
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.workers import Workers, _serve
from nmtkit.errors import DataError, LostRankError, NmtkitError, ResourceError
from nmtkit.text.lines import numbered_chunks
from tests.launching import children, is_running, wait_for
from tests.messages import check_errors, refuses
from tests.processes import workers_as_forks
from tests.tiny import never_warn, write_tiny_model
from tests.translating import answers_to

LINES = ["a b c", "", "d", "h g f e d c b a", "f f"] * 5
SEARCH = SearchConfig(beam=4, max_length_offset=6)
DEADLINE_S = 60


@pytest.fixture(autouse=True, scope="module")
def _workers_are_forks() -> Iterator[None]:
    with workers_as_forks():
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("one") / "model")


@pytest.fixture(scope="module")
def workers(model: Path) -> Workers:
    recipe = TranslateRecipe(search=SEARCH, output=OutputConfig(n_best=2))
    return Workers([model], recipe, print, 2)


def answers(workers: Workers, requests: list[Request]) -> list[Answer]:
    """Return the answers to a chunk."""
    return [answer for result in workers.answer_all([(1, requests)]) for answer in result.answers]


def test_two_processes_answer_as_one_does_and_in_order(workers: Workers, model: Path) -> None:
    requests = [Request(line) for line in LINES]
    output = OutputConfig(n_best=2, output_format="json")
    recipe = TranslateRecipe(search=SEARCH, output=output)
    expected = answers_to(load_translator([model], recipe, never_warn), requests)
    for size in (100, 25, 9, 3, 1):
        results = list(workers.answer_all(numbered_chunks(requests, size)))
        found = [answer for result in results for answer in result.answers]
        assert sum(result.num_lines for result in results) == len(requests)
        num_tokens = sum(len(answer.translation.tokens) for answer in found)
        assert sum(result.num_tokens for result in results) == num_tokens
        assert [answer.request for answer in found] == requests
        for one, other in zip(found, expected, strict=True):
            for first, second in zip(one.translation.n_best, other.translation.n_best, strict=True):
                assert first.text == second.text
                assert first.score == pytest.approx(second.score, abs=1e-4)
    assert list(workers.answer_all([])) == []


def test_other_keys_of_a_line_are_not_sent_to_workers(workers: Workers) -> None:
    unsendable = {"id": threading.Lock()}  # as deeply nested JSON
    (answer,) = answers(workers, [Request("a", others=unsendable)])
    assert answer.request.others is unsendable


def serve_until_asked_no_more(connection: Connection) -> None:
    with suppress(EOFError):
        _serve(connection)


def test_after_an_error_of_one_worker_all_answer_the_next_requests(
    workers: Workers,
) -> None:
    refused = Request("", target_prefix="A")
    for number, asked in enumerate(([refused, Request("a")], [Request("a"), refused]), 1):
        with refuses(DataError, f"line {number} target_prefix"):
            answers(workers, asked)
    first, second = answers(workers, [Request("a"), Request("")])
    assert (first.request.source, second.request.source) == ("a", "")
    assert second.translation.text == ""


def test_an_error_comes_after_the_answers_before_it(workers: Workers) -> None:
    chunks = [(1, [Request("a")] * 8), (9, [Request("a")] * 7 + [Request("", target_prefix="A")])]
    results = workers.answer_all(chunks)
    num_answers = 0
    while num_answers < 8 + 4:  # the first worker's part of the second chunk is before the line
        num_answers += len(next(results).answers)
    with refuses(DataError, "line 16 target_prefix"):
        list(results)


def num_read_for(workers: Workers, size: int) -> list[tuple[int, int]]:
    """Return the numbers of chunks read and answered whenever answers come, of 5 chunks."""
    num_read = 0

    def chunks() -> Iterator[tuple[int, list[Request]]]:
        nonlocal num_read
        for num_read in range(1, 6):
            yield num_read * size, [Request("a b c")] * size

    found, num_answers = [], 0
    for result in workers.answer_all(chunks()):
        num_answers += len(result.answers)
        found.append((num_read, num_answers // size))
    assert num_answers == 5 * size
    return found


def test_a_chunk_of_a_pipe_is_answered_before_the_next_is_read(workers: Workers) -> None:
    for size in (1, 8):
        found = num_read_for(workers, size)
        assert all(num_read <= num_answered + 1 for num_read, num_answered in found)


def test_the_next_chunk_of_a_file_is_read_before_one_is_complete(model: Path) -> None:
    found = num_read_for(Workers([model], TranslateRecipe(), print, 2, reads_ahead=True), 8)
    assert found[0][0] == 2
    assert all(num_read <= num_answered + 2 for num_read, num_answered in found)


@pytest.mark.parametrize("reads_ahead", [False, True])
def test_an_error_of_the_input_comes_after_the_answers_before_it(
    model: Path, reads_ahead: bool
) -> None:
    def chunks() -> Iterator[tuple[int, list[Request]]]:
        yield 1, [Request("a")] * 8
        yield 9, [Request("a")] * 8
        raise DataError("line 17: x")

    results = Workers([model], TranslateRecipe(), print, 2, reads_ahead=reads_ahead).answer_all(
        chunks()
    )
    num_answers = 0
    while num_answers < 16:
        num_answers += len(next(results).answers)
    with pytest.raises(DataError, match="line 17: x"):
        list(results)


class Failing:
    """A translator that fails."""

    target_kind = "words"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def answer_chunk(self, requests: list[Request], first_number: int) -> list[BatchResult]:
        del requests, first_number
        raise self._error


def load_failing(error: Exception, *_: object) -> Failing:
    return Failing(error)


@pytest.mark.parametrize(
    ("error", "kind", "what"),
    [
        (MemoryError(), ResourceError, "a process of --devices is out of memory; give smaller"),
        (RuntimeError("can't allocate memory: x"), ResourceError, "a process of --devices is out"),
        (RuntimeError("odd"), NmtkitError, "a bug in nmtkit: RuntimeError: odd; without --devices"),
        (DataError("line 1: x"), DataError, "line 1: x"),
    ],
)
def test_a_worker_reports_an_error_and_continues(
    error: Exception, kind: type[NmtkitError], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    own, other = multiprocessing.Pipe()
    thread = threading.Thread(target=serve_until_asked_no_more, args=(other,))
    thread.start()
    own.send((0, partial(load_failing, error), [], TranslateRecipe()))
    assert own.recv() == ["words", []]
    for _ in range(2):
        own.send(([], 1))
        reported = own.recv()
        assert type(reported) is kind
        assert str(reported).startswith(what)
    own.close()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("delay_s", [0.0, 1.0, 2.0])
def test_an_interrupt_ends_all_processes_with_one_line(model: Path, delay_s: float) -> None:
    command = [sys.executable, "-m", "nmtkit_cli", "translate", str(model), "--devices", "2"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        wait_for(lambda: len(workers_of(process.pid)) == 2)
        started = workers_of(process.pid)
        time.sleep(delay_s)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, err) == (130, b"nmtkit: interrupted\n")
    assert not any(Path(f"/proc/{worker}").exists() for worker in started)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("delay_s", [0.0, 2.0])
def test_workers_end_silently_when_the_process_that_asks_is_gone(
    model: Path, delay_s: float, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "nmtkit_cli", "translate", str(model), "--devices", "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: len(workers_of(process.pid)) == 2)
        started = workers_of(process.pid)
        time.sleep(delay_s)
        process.send_signal(number)
        _, err = process.communicate(timeout=DEADLINE_S)  # ends when the last one does
    if number is signal.SIGTERM:
        check_errors(err.decode(), 143, "SIGTERM")
    assert err.count(b"\n") == (number is signal.SIGTERM)
    wait_for(lambda: not any(map(is_running, started)))


def test_a_worker_that_dies_is_reported(model: Path) -> None:
    dying = Workers([model], TranslateRecipe(), print, 2)
    dying._workers[1]._process.kill()
    with refuses(LostRankError, "process 1; --devices --max-tokens"):
        answers(dying, [Request("a"), Request("b")])


def workers_of(parent: int) -> list[int]:
    """Return the workers that a process has started."""
    return [
        child
        for child in children(parent)
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
