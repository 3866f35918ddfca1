"""Decide which kinds of numbers a kernel computes as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOAT, COMPLEX, INTEGER, OTHER = "float", "complex", "integer", "other"
_EXACT = 2**53  # integers up to here are doubles
_BY_TYPE = {float: FLOAT, np.float64: FLOAT, complex: COMPLEX, np.complex128: COMPLEX}
DOUBLE = np.dtype(float)
_BY_DTYPE = {DOUBLE: FLOAT, np.dtype(complex): COMPLEX}


def are_doubles(values: Any) -> bool:
    """Whether all are floats, arrays of float64, or integers that are doubles: at every call of a lambdified function.

    >>> are_doubles((1.0, 2, np.ones(2))), are_doubles((1.0, 2**60)), are_doubles((1.0, np.float32(1)))
    (True, False, False)
    """
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            if value.dtype is not DOUBLE:
                return False
        elif kind is not float and not (kind is int and -_EXACT <= value <= _EXACT):
            return False
    return True


def kinds_of(values: Any) -> set[str]:
    """Return the kinds of numbers; a small integer beside a float is what NumPy makes a float of.

    >>> sorted(kinds_of((1.0, [np.ones(2), 2])))
    ['float', 'integer']
    >>> kinds_of((2**53 + 1,)), kinds_of((np.float32(1),)), kinds_of((True,)), kinds_of((np.ma.array([1.0]),))
    ({'other'}, {'other'}, {'other'}, {'other'})
    """
    kinds: set[str] = set()
    for value in values:
        kind = type(value)
        if kind in _BY_TYPE:
            kinds.add(_BY_TYPE[kind])
        elif kind is np.ndarray:
            kinds.add(_BY_DTYPE.get(value.dtype, OTHER))
        elif kind is int:
            kinds.add(INTEGER if abs(value) <= _EXACT else OTHER)
        elif kind is list or kind is tuple:
            kinds |= kinds_of(value)
        elif kind is not str:  # texts are refused
            kinds.add(OTHER)
    return kinds
