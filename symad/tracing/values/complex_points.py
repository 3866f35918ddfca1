"""Trace a function with real numbers for a kernel that gets complex ones.

Functions that return a real number unchanged (a conjugate, a real part, a squared distance) are then refused: at
complex points NumPy computes something else, which is not analytic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from codegen.bound import bound
from symad.errors import TraceError
from symad.tracing.calling.user_place import user_place

_complex: ContextVar[bool] = ContextVar("symad_complex_points", default=False)


@contextmanager
def complex_points(given: bool = True) -> Iterator[None]:
    """Refuse functions that tell complex numbers from real ones, in traces of this block.

    >>> import numpy as np, symad as sa
    >>> with complex_points():
    ...     sa.trace(lambda x: np.conj(x), 1.0)
    Traceback (most recent call last):
        ...
    symad.errors.TraceError: ...np.conjugate was called with a traced value: ...
    """
    with bound(_complex, given):
        yield


def check_real(name: str, do: str = 'leave it out, or compile for dtype="float64"') -> None:
    """Raise TraceError for complex points: the traced form of this function is for real numbers."""
    if _complex.get():
        raise TraceError(
            f"{name} was called with a traced value",
            where=user_place(),
            why='it takes conjugates or parts of complex numbers, and a kernel of dtype="complex128" is analytic',
            do=do,
        )
