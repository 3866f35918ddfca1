"""Addresses of library functions: the C library, glibc's vector functions, SciPy's ufuncs.

Vector functions of the C library: libmvec of glibc, probed when it is first asked for. `_ZGVeN8v_exp` is exp of 8 lanes
on AVX-512, `d` of 4 on AVX2, `b` of 2 on SSE, `n` of 2 on AArch64. Machines without libmvec (macOS, Windows, musl, an
older glibc that lacks a function) call the scalar function for each lane.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from codegen.errors import LoweringError
from codegen.later import Deferred
from codegen.processor import features, vector_bits

if TYPE_CHECKING:
    import ctypes.util as ctypes_util
else:  # for what this process has not loaded
    ctypes_util = Deferred("ctypes.util")

LIBRARY, VECTOR_LIBM = "libmvec.so.1", "_ZGV"  # and what its functions' names begin with


class VectorFunction(NamedTuple):
    """A function of libmvec: name, operands, error bound in ULP, and the least number of calls for a group."""

    name: str
    operands: int = 1
    ulp: float = 4.0
    fewest: int = 2


# By the symbol of the scalar function. The bounds are those of `python -m benchmarks.accuracy`: over wide ranges, at
# the ends of the domain, near zeros and poles.
FUNCTIONS: dict[str, VectorFunction] = {
    "exp": VectorFunction("exp", fewest=3),
    "exp2": VectorFunction("exp2", fewest=3),
    "expm1": VectorFunction("expm1"),
    "log": VectorFunction("log", fewest=3),
    "log2": VectorFunction("log2", fewest=3),
    "log10": VectorFunction("log10"),
    "log1p": VectorFunction("log1p"),
    "llvm.sin.f64": VectorFunction("sin"),
    "llvm.cos.f64": VectorFunction("cos"),
    "tan": VectorFunction("tan"),
    "asin": VectorFunction("asin"),
    "acos": VectorFunction("acos"),
    "atan": VectorFunction("atan"),
    "atan2": VectorFunction("atan2", 2),
    "sinh": VectorFunction("sinh"),
    "cosh": VectorFunction("cosh"),
    "tanh": VectorFunction("tanh"),
    "asinh": VectorFunction("asinh"),
    "acosh": VectorFunction("acosh"),
    "atanh": VectorFunction("atanh"),
    "cbrt": VectorFunction("cbrt"),
    "erf": VectorFunction("erf"),
    "erfc": VectorFunction("erfc"),
    "hypot": VectorFunction("hypot", 2),
    "pow": VectorFunction("pow", 2, fewest=3),
}


@cache
def vector_symbol(symbol: str, lanes: int) -> str | None:
    """Return the symbol of a function of `lanes` lanes, None if this machine has none.

    >>> vector_symbol("lgamma", 4) is None
    True
    """
    function = FUNCTIONS.get(symbol)
    letter = _letter(lanes)
    if function is None or letter is None:
        return None
    name = f"{VECTOR_LIBM}{letter}N{lanes}{'v' * function.operands}_{function.name}"
    return name if _has(name) else None


def no_vector_symbol(symbol: str, lanes: int) -> None:
    """The replacement of `vector_symbol` if results must equal those of the scalar functions."""


def widths() -> tuple[int, ...]:
    """Numbers of lanes of groups: up to 256 bits, for the first use of longer registers slows short kernels down.

    >>> all(width in (2, 4) for width in widths())
    True
    """
    return (2, 4) if vector_bits() >= 256 else (2,)


def _letter(lanes: int) -> str | None:
    """The vector function ABI's letter for doubles in these lanes, None if registers are too short."""
    if "sse2" in features():
        letter = {8: "e", 4: "d", 2: "b"}.get(lanes)
        return None if 64 * lanes > vector_bits() else letter
    return "n" if lanes == 2 and "neon" in features() else None


@cache
def _has(name: str) -> bool:
    try:
        getattr(ctypes.CDLL(LIBRARY), name)
    except (OSError, AttributeError):
        return False
    return True


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
    yield ctypes_util.find_library("m")  # starts processes, and so comes late
    if name.startswith(VECTOR_LIBM):
        yield LIBRARY


EXTRA = "pip install symad[special]"


@cache
def scipy_ufunc(name: str) -> Any:
    """Return a ufunc of scipy.special, public or not; LoweringError names the extra when SciPy is missing."""
    try:
        import scipy.special  # noqa: PLC0415  (optional extra)
    except ImportError as error:
        raise LoweringError(f"special function {name}", why="SciPy is not installed", do=EXTRA) from error
    function = getattr(scipy.special, name, None)
    return getattr(scipy.special._ufuncs, name) if function is None else function


def scipy_number(name: str, output: int | None = None) -> Callable[..., float]:
    """Return a ufunc (one of its outputs) as a function of floats; a complex value is nan."""

    def evaluate(*arguments: float) -> float:
        value = scipy_ufunc(name)(*arguments)
        value = value if output is None else value[output]
        return (float(value.real) if value.imag == 0 else math.nan) if isinstance(value, complex) else float(value)

    return evaluate
