"""Addresses of functions of the C library, its mathematical part included."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache

from codegen.errors import LoweringError
from codegen.functions.vector_libm import LIBRARY


@cache
def c_address(name: str) -> int:
    """Return the address of a function of the C library.

    >>> c_address("tanh") > 0
    True
    """
    for library in (None, ctypes.util.find_library("m"), *([LIBRARY] if name.startswith("_ZGV") else [])):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise LoweringError(f"C function {name}", why="the C library of this machine lacks it", do="rewrite the expression")
