"""Text is UTF-8, whatever the locale says."""

import os
import subprocess
import sys
from pathlib import Path
from site import getsitepackages

import pytest


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_text_is_utf8_whatever_the_locale(locale: str, tmp_path: Path) -> None:
    name = "Stra\u00dfe"
    (tmp_path / name).write_bytes("Gr\u00fc\u00dfe aus der Stra\u00dfe\n".encode())
    # Without site: until 3.12 it reads the path of an editable install in the locale's encoding.
    command = (sys.executable, "-S", "-m", "nmtkit_cli")
    path = os.pathsep.join([str(Path.cwd()), *getsitepackages()])
    environment = {**os.environ, "LC_ALL": locale, "LANG": locale, "PYTHONPATH": path}

    def in_locale(line: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*command, *line.split()],
            input=stdin,
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env=environment,
        )

    printed = in_locale(f"preprocess -s en -t de --train {name} --valid v --print-config")
    assert f'train = ["{name}"]'.encode() in printed.stdout.splitlines()
    unequal = in_locale(f"score --reference {name}")
    assert f"standard input has 0 lines and {name} has 1".encode() in unequal.stderr
    equal = in_locale(f"score --reference {name}", (tmp_path / name).read_bytes())
    assert equal.stdout.startswith(b"BLEU = 100.00 ")
