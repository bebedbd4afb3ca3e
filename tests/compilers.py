"""Whether torch's compiler works here."""

import os
import shutil

import pytest
import torch

_HAS_SPACE = " " in torch.__file__  # there, it cannot link
_HAS_COMPILER = shutil.which(os.environ.get("CXX", "g++")) is not None

needs_compiler = pytest.mark.skipif(
    _HAS_SPACE or not _HAS_COMPILER,
    reason="torch's compiler needs g++, and a path of torch without a space",
)
