"""`make` in examples/wmt14: from archives on a server to a score; its other roads: tests/system."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.downloads import Behaviour, serve
from tests.recipes import PREPARED, check_result, make, settings, write_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, behaviour: Behaviour) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    write_server(folder, "de")
    with serve(folder, behaviour) as address:
        yield address


@pytest.fixture(scope="module")
def behaviour() -> Behaviour:
    return Behaviour()


@pytest.mark.thorough
def test_from_the_download_to_a_score(tmp_path: Path, server: str, behaviour: Behaviour) -> None:
    behaviour.cuts = [500]
    behaviour.asked.clear()
    arguments = (
        *("en-de-base", f"WORK={tmp_path}", f"MIRROR={server}/de"),
        *settings(PREPARED, "--max-updates 5"),
    )
    done = make(*arguments)
    check_result(done, tmp_path / "en-de-v9" / "base", "de", "paper-BLEU")
    assert "ended after 500 of" in done.stderr
    asked = [path for path, _ in behaviour.asked]
    assert len(asked) == 6
    assert len(set(asked)) == 5  # one was cut off

    again = make(*arguments)
    check_result(again, tmp_path / "en-de-v9" / "base", "de", "paper-BLEU")
    assert " train " not in again.stdout
    assert len(behaviour.asked) == 6


def test_make_stops_at_an_archive_that_is_not_to_be_had(tmp_path: Path, server: str) -> None:
    done = make("en-de-big", f"WORK={tmp_path}", f"MIRROR={server}/nowhere")
    assert done.returncode == 2
    assert "fetch: error: http" in done.stderr
    assert "404" in done.stderr
    assert not list((tmp_path / "en-de-v9" / "text").iterdir())
