"""Whether torch's compiler works here."""

import os
import shutil

import pytest
import torch

_HAS_COMPILER = shutil.which(os.environ.get("CXX", "g++")) is not None
_CAN_LINK = " " not in torch.__file__

needs_compiler = pytest.mark.skipif(
    not (_HAS_COMPILER and _CAN_LINK), reason="needs g++, and a path of torch without spaces"
)
