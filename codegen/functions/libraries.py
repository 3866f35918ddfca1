"""Addresses of library functions: the C library, glibc's vector functions, SciPy's ufuncs.

Vector functions of the C library: libmvec of glibc, probed when it is first asked for. `_ZGVeN8v_exp` is exp of 8 lanes
on AVX-512, `d` of 4 on AVX2, `b` of 2 on SSE, `n` of 2 on AArch64. Machines without libmvec (macOS, Windows, musl, an
older glibc that lacks a function) call the scalar function for each lane.

BLAS and LAPACK are those of SciPy, which offers C pointers to both in `scipy.linalg.cython_blas` and `cython_lapack`.

Source: Anderson et al., LAPACK Users' Guide, 3rd edition (1999).
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from codegen.code_memory import python_function
from codegen.errors import LoweringError
from codegen.functions.routine_values import LETTERS
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


_SYMBOLS = """
exp exp2 expm1 log log2 log10 log1p llvm.sin.f64 llvm.cos.f64 tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
cbrt erf erfc hypot pow
"""
_BINARY, _QUICK = ("atan2", "hypot", "pow"), ("exp", "exp2", "log", "log2", "pow")  # of few calls one by one, quick too
# By the symbol of the scalar function. The bounds are those of `python -m benchmarks.accuracy`: over wide ranges, at
# the ends of the domain, near zeros and poles.
FUNCTIONS: dict[str, VectorFunction] = {
    symbol: VectorFunction(
        symbol.removeprefix("llvm.").removesuffix(".f64"), 1 + (symbol in _BINARY), fewest=2 + (symbol in _QUICK)
    )
    for symbol in _SYMBOLS.split()
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


OPERANDS = {
    "blas.{}gemm": 13, "blas.{}gemv": 11, "blas.{}trsm": 11, "lapack.{}potrf": 5, "lapack.{}getrf": 6,
    "lapack.{}getrs": 9, "lapack.{}geqrf": 8, "lapack.{}orgqr": 9, "lapack.{}syevd": 11, "lapack.{}gesdd": 14,
}  # fmt: skip
ROUTINES = {name.format(letter): count for name, count in OPERANDS.items() for letter in LETTERS.values()}


@cache
def routine_address(name: str) -> int:
    """Return the address of a routine; LoweringError names the extra when SciPy is missing.

    >>> not has_library() or routine_address("lapack.dpotrf") > 0
    True
    """
    library, routine = name.split(".")
    try:
        capsule = pointers(f"scipy.linalg.cython_{library}").__pyx_capi__[routine]
    except ImportError as error:
        raise LoweringError(f"{name} of linear algebra", why="SciPy is not installed", do=EXTRA) from error
    signature = python_function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)(capsule)
    if signature is None or b"int *" not in signature or b"64" in signature:
        raise LoweringError(f"{name} of SciPy", why=f"its whole numbers are not C's int: {signature!r}", do="report it")
    pointer_of = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return pointer_of(capsule, signature) or 0


@cache
def pointers(name: str) -> ModuleType:
    """Return a module of C pointers, without the rest of `scipy.linalg`, which takes 0.15 s to import.

    Whoever imports it later gets it by the ordinary way, from the same file.
    """
    if name in sys.modules:
        return sys.modules[name]
    folders = [f"{folder}/linalg" for folder in import_module("scipy").__path__]
    spec = PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None:
        return import_module(name)
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(name, None)  # Cython enters it, and its package would not have it as an attribute
    return module


@cache
def has_library() -> bool:
    """Whether SciPy is there, with pointers to BLAS and LAPACK.

    >>> has_library() in (True, False)
    True
    """
    try:
        return all(map(routine_address, ROUTINES))
    except LoweringError:
        return False
