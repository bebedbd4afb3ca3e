"""What `make dist` builds is complete, and works where there is no clone.

The new environment has nmtkit from the wheel alone; it finds what nmtkit needs in this Python's own
environment, so that nothing is fetched. The wheel is built from the source distribution.
"""

import email
import os
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
    """Return the files of the repository, those that are not committed yet included."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone, whose files git lists")
    listed = run("git", "ls-files", "-z", "-co", "--exclude-standard", folder=ROOT)
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def dist(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `make dist` in a copy of the repository that has been worked in."""
    clone = tmp_path_factory.mktemp("packages") / "clone"
    for name in files:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for name in JUNK:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).touch()
    # The environment of these tests is up to date, whatever the ages of files say.
    prefix = Path(sys.prefix)
    run("make", "-o", prefix / ".installed", f"VENV={prefix}", "dist", folder=clone)
    return clone / "dist"


@dataclass(frozen=True)
class Installed:
    """An environment with nmtkit from the wheel, and an empty folder to run it in."""

    bin: Path
    folder: Path

    def nmtkit(self, line: str, stdin: str = "") -> str:
        return run(self.bin / "nmtkit", *line.split(), folder=self.folder, stdin=stdin)


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    # A path in a .pth file is searched, but its own .pth files, one of which may lead to a clone,
    # are not read.
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=dist)
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(own.strip()) / "needed.pth").write_text("".join(f"{path}\n" for path in sorted(others)))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    (wheel,) = dist.glob("*.whl")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, folder=dist)
    return Installed(python.parent, tmp_path_factory.mktemp("elsewhere"))


def test_the_source_distribution_holds_the_repository_and_nothing_else(
    dist: Path, files: list[str]
) -> None:
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    inside = {name.removeprefix(f"{NAME}/") for name in names}
    assert {name for name in inside if not name.startswith(GENERATED)} == set(files)


def test_the_wheel_holds_the_packages_with_their_data_and_nothing_else(
    dist: Path, files: list[str]
) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == {name for name in files if name.startswith(("nmtkit/", "nmtkit_cli/"))}
    assert {Path(name).suffix for name in inside} >= {".py", ".typed", ".css", ".html", ".js"}


def test_the_metadata_says_what_the_project_says(dist: Path) -> None:
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


def test_the_wheel_takes_text_to_a_score_in_an_empty_folder(installed: Installed) -> None:
    folder = installed.folder
    where = "import nmtkit, nmtkit_cli; print(nmtkit.__file__, nmtkit_cli.__file__, sep='\\n')"
    for path in run(installed.bin / "python", "-c", where, folder=folder).split("\n")[:2]:
        assert Path(path).is_relative_to(installed.bin.parent), path
    assert __version__ in installed.nmtkit("--version")
    write(split(1, {"train": 400, "valid": 10, "test": 10}), folder)
    (folder / "recipe.toml").write_text(RECIPE)
    source = (folder / "test.en").read_text("utf-8")
    installed.nmtkit(
        "preprocess -s en -t de --train train --valid valid --vocab-size 500 --out data"
    )
    installed.nmtkit("train data --out run --config recipe.toml")
    installed.nmtkit("average-checkpoints run --last 2 --out model")
    translated = installed.nmtkit("translate model", source)
    assert translated.count("\n") == source.count("\n")
    assert "BLEU" in installed.nmtkit("score --reference test.de", translated)

    page = installed.nmtkit("attention model --translate", source.partition("\n")[0] + "\n")
    data = {path.suffix: path for path in (ROOT / "nmtkit/reporting/attention").glob("page.*")}
    for suffix in (".css", ".js"):
        assert data[suffix].read_text("utf-8").strip() in page, suffix
    installed.nmtkit("report run --html report.html")
    assert "<svg" in (folder / "report.html").read_text("utf-8")


def test_the_command_that_messages_name_for_an_extra_needs_no_index_for_nmtkit_itself(
    installed: Installed,
) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    wheels = (*pip, "--python", installed.bin / "python")
    for one in (pip, wheels):
        told = run(
            *one, "install", "--no-index", "--dry-run", "nmtkit[plot]", folder=installed.folder
        )
        assert "already satisfied: nmtkit[plot]" in told
        assert "already satisfied: resvg_py" in told
