"""The packages of `make dist` are complete and work without a clone.

The new environment has only nmtkit, from the wheel; it finds the dependencies in the environment of
this Python, so nothing is downloaded. The wheel is built from the source distribution.
"""

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.demo.corpus import split, write
from nmtkit import __version__
from tests.recipes import ROOT

NAME = f"nmtkit-{__version__}"
GENERATED = ("PKG-INFO", "setup.cfg", "nmtkit.egg-info/")
JUNK = ("build/lib/nmtkit/old.py", "nmtkit/__pycache__/a.cpython-311.pyc", "demo/model/config.toml")
CLASSIFIER = "Programming Language :: Python :: 3.11"
RECIPE = """\
[model]
encoder_layers = 1
decoder_layers = 1
model_size = 16
feed_forward_size = 32
heads = 2

[training]
update_tokens = 400
max_tokens = 400
max_updates = 4

[checkpoints]
save_every = 2

[validation]
validate_every = 4

[runtime]
device = "cpu"
"""


def run(*command: object, folder: Path, stdin: str = "") -> str:
    """Run a command without this clone on its path, and return its standard output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def files() -> list[str]:
    """Return the files of the repository, including uncommitted ones."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone, whose files git lists")
    listed = run("git", "ls-files", "-z", "-co", "--exclude-standard", folder=ROOT)
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def dist(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `make dist` in a used copy of the repository."""
    clone = tmp_path_factory.mktemp("packages") / "clone"
    for name in files:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for name in JUNK:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).touch()
    # The environment of these tests is up to date, whatever the file times. Its path may have
    # spaces, which make cannot read.
    (clone / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    run("make", "-o", ".venv/.installed", "dist", folder=clone)
    return clone / "dist"


@dataclass(frozen=True)
class Installed:
    """An environment with nmtkit from the wheel, and an empty folder to run it in."""

    bin: Path
    folder: Path

    def nmtkit(self, line: str, stdin: str = "") -> str:
        return run(self.bin / "nmtkit", *line.split(), folder=self.folder, stdin=stdin)


def install(environment: Path, *what: object) -> Path:
    """Install a package in a new environment; return the environment's Python."""
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    # A path in a .pth file is searched, but its own .pth files, one of which may lead to a clone,
    # are not read.
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = run(python, "-c", code, folder=environment)
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(own.strip()) / "needed.pth").write_text("".join(f"{path}\n" for path in sorted(others)))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", *what, folder=environment)
    return python


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    (wheel,) = dist.glob("*.whl")
    python = install(tmp_path_factory.mktemp("environment"), wheel)
    return Installed(python.parent, tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="module")
def editable(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    what = ("--no-build-isolation", "--editable", dist.parent)
    python = install(tmp_path_factory.mktemp("editable"), *what)
    return Installed(python.parent, tmp_path_factory.mktemp("elsewhere"))


def test_the_source_distribution_has_exactly_the_repository(dist: Path, files: list[str]) -> None:
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    inside = {name.removeprefix(f"{NAME}/") for name in names}
    assert {name for name in inside if not name.startswith(GENERATED)} == set(files)


def test_the_wheel_has_exactly_the_packages_with_their_data(dist: Path, files: list[str]) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == {name for name in files if name.startswith(("nmtkit/", "nmtkit_cli/"))}
    assert {Path(name).suffix for name in inside} >= {".py", ".typed", ".css", ".html", ".js"}


def test_the_metadata_agree_with_the_project(dist: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(path))
        licenses = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert len(licenses) == 1
    assert metadata["Version"] == __version__
    assert metadata["Summary"] == project["description"]
    assert metadata["License-Expression"] == project["license"]
    assert metadata["Requires-Python"] == project["requires-python"]
    assert metadata.get_all("Provides-Extra") == [*project["optional-dependencies"]]
    assert CLASSIFIER in metadata.get_all("Classifier", [])
    assert metadata.get_payload(decode=True) == (ROOT / "README.md").read_bytes()


@pytest.fixture(scope="module")
def trained(installed: Installed) -> Installed:
    """Train a model in the empty folder: the run is in `run`, its average in `model`."""
    folder = installed.folder
    write(split(1, {"train": 400, "valid": 10, "test": 10}), folder / "text")
    (folder / "recipe.toml").write_text(RECIPE)
    installed.nmtkit(
        "preprocess -s en -t de --train text/train --valid text/valid --vocab-size 500 --out data"
    )
    installed.nmtkit("train data --out run --config recipe.toml")
    installed.nmtkit("average-checkpoints run --last 2 --out model")
    return installed


def test_the_wheel_is_what_runs(installed: Installed) -> None:
    where = "import nmtkit, nmtkit_cli; print(nmtkit.__file__, nmtkit_cli.__file__, sep='\\n')"
    found = run(installed.bin / "python", "-c", where, folder=installed.folder)
    for path in found.split("\n")[:2]:
        assert Path(path).is_relative_to(installed.bin.parent), path
    assert __version__ in installed.nmtkit("--version")


WRONG = ("nmtkit.SearchConfig(beem=8)", 'nmtkit.SearchConfig(beam="8")')


@pytest.mark.parametrize("kind", ["installed", "editable"])
def test_scripts_outside_the_clone_are_typed(kind: str, request: pytest.FixtureRequest) -> None:
    environment: Installed = request.getfixturevalue(kind)
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    script = environment.folder / "script.py"
    script.write_text("\n".join([*blocks, *WRONG, ""]), "utf-8")
    python = environment.bin / "python"
    options = ("--strict", "--cache-dir=cache", "--python-executable", python)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, script.name],
        cwd=environment.folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    found = re.findall(r"error: (.*)", done.stdout)
    assert found == [
        'Unexpected keyword argument "beem" for "SearchConfig"  [call-arg]',
        'Argument "beam" to "SearchConfig" has incompatible type "str"; expected "int"  [arg-type]',
    ], done.stdout + done.stderr


def test_the_wheel_runs_from_text_to_score_in_an_empty_folder(trained: Installed) -> None:
    source = (trained.folder / "text/test.en").read_text("utf-8")
    translated = trained.nmtkit("translate model", source)
    assert translated.count("\n") == source.count("\n")
    assert "BLEU" in trained.nmtkit("score --reference text/test.de", translated)


def test_the_wheel_draws_attention_with_the_page_s_style_and_script(trained: Installed) -> None:
    page = trained.nmtkit("attention model --translate", "Hello.\n")
    data = {path.suffix: path for path in (ROOT / "nmtkit/reporting/attention").glob("page.*")}
    for suffix in (".css", ".js"):
        assert data[suffix].read_text("utf-8").strip() in page, suffix


def test_the_wheel_reports_a_run_with_its_plots(trained: Installed) -> None:
    trained.nmtkit("report run --html report.html")
    assert "<svg" in (trained.folder / "report.html").read_text("utf-8")


def test_the_install_command_for_an_extra_does_not_download_nmtkit(
    installed: Installed,
) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    wheels = (*pip, "--python", installed.bin / "python")
    for one in (pip, wheels):
        output = run(
            *one, "install", "--no-index", "--dry-run", "nmtkit[audit]", folder=installed.folder
        )
        assert "already satisfied: nmtkit[audit]" in output
        assert "already satisfied: py3langid" in output
