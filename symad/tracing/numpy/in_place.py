"""In-place operators on ordinary arrays: `a -= t` makes the variable a traced one, where nothing else has the array.

NumPy's operator would write into the memory of `a`, which holds plain numbers. Where one local variable has the array,
and no list, view or other variable, nobody can see that memory but through this variable, which gets the result.
"""

from __future__ import annotations

import dis
import sys
from contextvars import ContextVar
from types import FrameType
from typing import Any

import numpy as np
import sympy as sp

from symad.tracing.calling.instructions import is_in_place
from symad.tracing.calling.scope import open_scope
from symad.tracing.calling.user_place import is_numpy, is_ours
from symad.tracing.values.array import Array

_NOTHING = dis.opmap["CACHE"]
_STORES = frozenset(dis.opmap[name] for name in ("STORE_FAST", "STORE_FAST_LOAD_FAST") if name in dis.opmap)

_counts: ContextVar[list[int] | None] = ContextVar("symad_references_counted", default=None)


def may_be_rebound(target: Any, shape: tuple[int, ...]) -> bool:
    """Whether an array of numbers is the target of an in-place operator, and only the variable there has it.

    Called for the array that a ufunc of a traced value was given as `out=`, and for the result's shape.
    """
    held = sys.getrefcount(target) if hasattr(sys, "getrefcount") else -1
    counts = _counts.get()
    if counts is not None:
        counts.append(held)
        return True
    if type(target) is not np.ndarray or target.dtype != np.float64 or not target.ndim or target.shape != shape:
        return False
    return target.base is None and _stores_in_place() and held == _held_by_one_variable()


def _stores_in_place() -> bool:
    """Whether Python carries out an in-place operator whose result a local variable gets."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (is_ours(frame.f_code.co_filename) or is_numpy(frame.f_code.co_filename)):
        frame = frame.f_back
    if frame is None or not is_in_place(frame):
        return False
    code, at = frame.f_code.co_code, frame.f_lasti + 2
    while code[at] == _NOTHING:
        at += 2
    return code[at] in _STORES


def _held_by_one_variable() -> int:
    """Return how many references `may_be_rebound` counts where a variable alone has the array.

    It is tried, each time: a debugger that reads variables adds a reference to either.
    """
    counts: list[int] = []
    token = _counts.set(counts)
    try:
        with open_scope(apart=True) as scope:
            traced = Array(np.array([scope.graph.leaf(sp.Symbol("x"))]), scope)
            made = np.zeros(1)
            made -= traced
    finally:
        _counts.reset(token)
    return counts[0]
