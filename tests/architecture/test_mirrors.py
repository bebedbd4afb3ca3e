"""The tests of a module are where its path says: nmtkit/a/b.py -> tests/unit/a/test_b.py."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tests.architecture.source_tree import sources

MIN_LINES = 40  # smaller modules may be tested through those that use them
ROOTS = {
    "nmtkit": "tests/unit",
    "nmtkit_cli": "tests/unit/cli",
    "benchmarks": "tests/unit/benchmarks",
    "examples": "tests/unit/examples",
}
TESTED_ELSEWHERE = {
    "nmtkit/config/attention.py": "settings without code; tests/unit/config/test_fields.py",
    "nmtkit/config/schema.py": "settings without code; tests/unit/config/test_fields.py",
    "nmtkit/decoding/workers.py": "processes; tests/integration/test_translate_workers.py",
    "nmtkit/evaluation/metric.py": "tests/unit/evaluation/test_metrics.py",
    "nmtkit/interop/marian_stored.py": "tests/unit/interop/test_marian_reading.py",
    "nmtkit/parsing/evalb/scorer.py": "tests/unit/parsing/evalb/test_metric.py",
    "nmtkit_cli/scoring.py": "tests/integration/test_score_command.py",
    "nmtkit_cli/tree_commands.py": "tests/integration/test_trees_command.py",
}
MIRRORS_NO_MODULE = {
    "tests/unit/parsing/test_translating.py": "translating by parsers: how its parts fit",
    "tests/unit/reporting/attention/test_assets.py": "the page's style and script",
}


def mirror_of(path: str) -> str:
    """Return the path of a module's tests, without its end."""
    module = PurePosixPath(path)
    root = ROOTS[module.parts[0]]
    return str(PurePosixPath(root, *module.parts[1:-1], f"test_{module.stem}"))


def are_of(test: str, module: str) -> bool:
    """Return whether a test file is a module's: test_b.py, or test_b_of_something.py."""
    own = mirror_of(module)
    return test == f"{own}.py" or test.startswith(f"{own}_")


def without_tests(modules: Iterable[str], tests: Iterable[str]) -> Iterator[str]:
    files = list(tests)
    return (module for module in modules if not any(are_of(test, module) for test in files))


def without_module(tests: Iterable[str], modules: Iterable[str]) -> Iterator[str]:
    files = list(modules)
    return (test for test in tests if not any(are_of(test, module) for module in files))


def modules(*packages: str) -> list[str]:
    return [one.path for one in sources(*packages) if not one.path.endswith("__init__.py")]


def unit_tests() -> list[str]:
    paths = (one.path for one in sources("tests/unit"))
    return [path for path in paths if PurePosixPath(path).name.startswith("test_")]


def large_modules() -> list[str]:
    """Return the modules that need tests of their own; commands are tested as processes."""
    return [
        one.path
        for one in sources("nmtkit", "nmtkit_cli")
        if one.text.count("\n") > MIN_LINES
        and not one.path.endswith("__init__.py")
        and not (one.path.startswith("nmtkit_cli/") and "\ndef command(" in one.text)
    ]


def test_every_module_has_tests_of_its_own() -> None:
    assert set(without_tests(large_modules(), unit_tests())) <= set(TESTED_ELSEWHERE)
    assert set(TESTED_ELSEWHERE) <= set(modules("nmtkit", "nmtkit_cli"))


def test_every_unit_test_is_of_a_module() -> None:
    assert set(without_module(unit_tests(), modules(*ROOTS))) <= set(MIRRORS_NO_MODULE)
    assert set(MIRRORS_NO_MODULE) <= set(unit_tests())


def test_a_file_out_of_place_is_found() -> None:
    module, test = "nmtkit/data/sampler.py", "tests/unit/data/test_sampler.py"
    assert not [*without_tests([module], [test]), *without_module([test], [module])]
    assert not [*without_module(["tests/unit/data/test_sampler_weights.py"], [module])]
    for other in ("tests/unit/test_sampler.py", "tests/unit/data/test_samplers.py"):
        assert [*without_tests([module], [other])] == [module]
        assert [*without_module([other], [module])] == [other]
