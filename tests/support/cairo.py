"""The system's library behind .png and .pdf files, which pip does not install."""

from __future__ import annotations

from ctypes.util import find_library

import pytest

NEEDS_CAIRO = pytest.mark.skipif(
    find_library("cairo") is None, reason="the library cairo is not installed (Debian: apt-get install libcairo2)"
)
