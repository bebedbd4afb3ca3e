"""The tests of a module are where its path says: nmtkit/a/b.py -> tests/unit/a/test_b.py."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath

from tests.architecture.source_tree import ROOT, sources

MIN_LINES = 40  # smaller modules may be tested through those that use them
ROOTS = {
    "nmtkit": "tests/unit",
    "nmtkit_cli": "tests/unit/cli",
    "examples": "tests/unit/examples",
}
TESTED_ELSEWHERE = {
    "nmtkit/config/attention.py": "settings without code; tests/unit/config/test_schema.py",
    "nmtkit/config/translation.py": "settings without code; tests/unit/config/test_schema.py",
    "nmtkit/decoding/workers.py": "processes; tests/integration/test_translate_workers.py",
    "nmtkit/evaluation/metric.py": "tests/unit/evaluation/test_metrics.py",
}
MIRRORS_NO_MODULE = {
    "tests/unit/parsing/test_translating.py": "translating by parsers: how its parts fit",
    "tests/unit/reporting/test_assets.py": "the page's style and script",
}


@cache
def mirror_of(path: str) -> str:
    """Return the path of a module's tests, without its end."""
    module = PurePosixPath(path)
    root = ROOTS[module.parts[0]]
    return str(PurePosixPath(root, *module.parts[1:-1], f"test_{module.stem}"))


def module_of(test: str, modules: Iterable[str]) -> str | None:
    """Return the module that a test file is of: b for test_b.py, or test_b_of_something.py.

    Of two modules, b and b_of, it is the one with the longer name.
    """
    found = (
        module
        for module in modules
        if test == f"{mirror_of(module)}.py" or test.startswith(f"{mirror_of(module)}_")
    )
    return max(found, key=len, default=None)


def without_tests(modules: Iterable[str], tests: Iterable[str]) -> list[str]:
    files = list(modules)
    tested = {module_of(test, files) for test in tests}
    return [module for module in files if module not in tested]


def without_module(tests: Iterable[str], modules: Iterable[str]) -> list[str]:
    files = list(modules)
    return [test for test in tests if module_of(test, files) is None]


def modules(*packages: str) -> list[str]:
    return [one.path for one in sources(*packages) if not one.path.endswith("__init__.py")]


def unit_tests() -> list[str]:
    paths = (one.path for one in sources("tests/unit"))
    return [path for path in paths if PurePosixPath(path).name.startswith("test_")]


def needs_tests(path: str, text: str) -> bool:
    """Return whether a module needs tests of its own; commands are tested as processes."""
    is_command = path.startswith("nmtkit_cli/") and "\ndef command(" in text
    return text.count("\n") > MIN_LINES and not is_command


def test_every_module_has_tests_of_its_own() -> None:
    texts = {one.path: one.text for one in sources("nmtkit", "nmtkit_cli")}
    untested = without_tests(modules("nmtkit", "nmtkit_cli"), unit_tests())
    assert {path for path in untested if needs_tests(path, texts[path])} == set(TESTED_ELSEWHERE)


def test_the_tests_elsewhere_exist() -> None:
    named = [re.search(r"tests/\S+\.py", reason) for reason in TESTED_ELSEWHERE.values()]
    assert all(match and (ROOT / match[0]).is_file() for match in named)


def test_every_unit_test_is_of_a_module() -> None:
    assert set(without_module(unit_tests(), modules(*ROOTS))) == set(MIRRORS_NO_MODULE)


def test_a_file_out_of_place_is_found() -> None:
    module, test = "nmtkit/data/sampler.py", "tests/unit/data/test_sampler.py"
    assert not [*without_tests([module], [test]), *without_module([test], [module])]
    assert not without_module(["tests/unit/data/test_sampler_weights.py"], [module])
    for other in ("tests/unit/test_sampler.py", "tests/unit/data/test_samplers.py"):
        assert without_tests([module], [other]) == [module]
        assert without_module([other], [module]) == [other]


def test_the_tests_of_a_longer_name_are_not_those_of_a_shorter() -> None:
    both = ["nmtkit/data/filter.py", "nmtkit/data/filter_report.py"]
    assert without_tests(both, ["tests/unit/data/test_filter_report.py"]) == both[:1]
