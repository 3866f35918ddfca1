"""Addresses of functions of the C library, its mathematical part included."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from functools import cache

from codegen.errors import LoweringError
from codegen.functions.vector_libm import LIBRARY


@cache
def c_address(name: str) -> int:
    """Return the address of a function of the C library.

    >>> c_address("tanh") > 0
    True
    """
    for library in _libraries(name):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise LoweringError(f"C function {name}", why="the C library of this machine lacks it", do="rewrite the expression")


def _libraries(name: str) -> Iterator[str | None]:
    yield None  # what this process has loaded
    yield ctypes.util.find_library("m")  # starts processes, and so comes late
    if name.startswith("_ZGV"):
        yield LIBRARY
