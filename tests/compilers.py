"""Whether torch's compiler works here."""

import pytest

from nmtkit.decoding.code_cache import check_compiler
from nmtkit.errors import ResourceError


def _why_not() -> str:
    try:
        check_compiler()
    except ResourceError as error:
        return str(error)
    return ""


needs_compiler = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "it works")
