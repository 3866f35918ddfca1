"""SciPy's special functions, found when they are first needed: SciPy is an optional extra."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from codegen.errors import LoweringError

EXTRA = "pip install symad[special]"


@cache
def scipy_ufunc(name: str) -> Any:
    """Return a ufunc of scipy.special, public or not; LoweringError names the extra when SciPy is missing."""
    try:
        import scipy.special  # noqa: PLC0415  (optional extra)
    except ImportError as error:
        raise LoweringError(f"special function {name}", why="SciPy is not installed", do=EXTRA) from error
    found = getattr(scipy.special, name, None)
    return getattr(scipy.special._ufuncs, name) if found is None else found


def scipy_number(name: str, output: int | None = None) -> Callable[..., float]:
    """Return a ufunc (one of its outputs) as a function of floats; a complex value is nan."""

    def evaluate(*arguments: float) -> float:
        value = scipy_ufunc(name)(*arguments)
        value = value if output is None else value[output]
        return (float(value.real) if value.imag == 0 else math.nan) if isinstance(value, complex) else float(value)

    return evaluate
