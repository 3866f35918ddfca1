"""What of NumPy can be traced: a table of calls, of which `python -m tests.support.numpy_table` makes `docs/numpy.md`.

The calls are in `numpy_calls.txt` (see `call_table`). Small letters (`ARGUMENTS`) are traced, capitals (`PLAIN`) are
ordinary data. `test_numpy_table.py` runs every row.
"""

from __future__ import annotations

import cmath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.call_table import Names, Row, arguments, listed, shown, topics

CALLS = Path(__file__).parent / "numpy_calls.txt"
DOCUMENT = Path(__file__).parents[2] / "docs" / "numpy.md"

GENERATOR = np.random.default_rng(20)

ARGUMENTS: dict[str, Any] = {
    **arguments(GENERATOR),
    "n": GENERATOR.uniform(-1.0, 1.0, (2, 3, 3)) + 2.0 * np.eye(3),
    "t": GENERATOR.uniform(-1.0, 1.0, (2, 3, 4)),
}
PLAIN: dict[str, Any] = {
    "np": np,
    "cmath": cmath,
    "C": np.array([0.5, -1.25, 2.0, 0.75, 1.5]),
    "W": np.array([1.0, 2.0, 0.5, 3.0]),
    "GRID": np.array([-2.0, -0.5, 0.25, 1.0, 2.5]),
    "MASK": np.array([True, False, True, True, False]),
    "MASKS": np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]]),
    "NAN": np.nan,
}

# The ufuncs: each is called on every argument that NumPy accepts, and in every way that it allows.
_DOMAINS = {
    name: argument
    for argument, names in {
        "u": ("arcsin", "arccos", "arctanh", "asin", "acos", "atanh", "log1p"),
        "v": ("arccosh", "acosh", "log", "log2", "log10", "sqrt"),
        "x > 0": ("invert", "bitwise_not", "bitwise_invert"),
        "v, y": ("power", "pow", "float_power"),
        "x, [1, 2, 0, -1, 3]": ("ldexp",),
        "x > 0, y > 0": ("bitwise_and", "bitwise_or", "bitwise_xor"),
    }.items()
    for name in names
}
_UNARY_CALLS = (
    "{f}({x})",
    "z = np.zeros_like({x}); {f}({x}, out=z); z",
    "z = np.copy({x}); {f}(z, z); z",
    "z = np.ones_like({x}); {f}({x}, out=(z,), where=MASK); z",
    "z = np.copy({x}); {f}.at(z, [0, 2]); z",
)
_BINARY_CALLS = (
    "{f}({x})",
    "{f}(1 + a[0], 2 + m)",
    "{f}(3, v)",
    "{f}(v, 2)",
    "z = np.zeros_like(x); {f}({x}, out=z); z",
    "z = np.copy(v); {f}(z, 2, out=z, where=MASK); z",
    "{f}.reduce(v)",
    "{f}.reduce(1 + a**2, axis=-1, keepdims=True)",
    "{f}.reduce(1 + t**2, axis=(0, 2))",
    "{f}.reduce(1 + a**2, axis=None)",
    "{f}.reduce(v, initial=1.5)",
    "{f}.reduce(1 + a**2, axis=0, where=MASKS, initial=1.5)",
    "{f}.reduce(v, where=MASK)",
    "z = np.zeros_like(a[0]); {f}.reduce(1 + a**2, out=z); z",
    "{f}.accumulate(1 + a**2, axis=1)",
    "{f}.reduceat(v, [0, 2, 1, 3])",
    "{f}.outer(v, 1 + a**2)",
    "z = np.copy(v); {f}.at(z, [0, 0, 2], x[:3]); z",
)
# NumPy's vector loops for these read what they have just written: np.power.reduce([2, 1.5, 1.3]) is 2.46 and not 3.86
# in NumPy 2.4 on processors with AVX-512.
_WRONG_IN_NUMPY = ("np.power.reduce", "np.arctan2.reduce")

# Public functions of NumPy that have no row, and why.
WITHOUT_ROWS = {
    "make arrays of ordinary numbers": """
        arange bartlett blackman broadcast_shapes empty eye fft.fftfreq fft.rfftfreq from_dlpack frombuffer
        fromfile fromfunction fromiter fromregex fromstring full genfromtxt hamming hanning identity indices kaiser
        load loadtxt mask_indices ones ravel_multi_index tri tril_indices unpackbits
    """,
    "convert to an array, which a traced value answers itself": """
        asanyarray asarray_chkfinite ascontiguousarray asfortranarray asmatrix bmat require
    """,
    "give texts": """
        array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific typename
    """,
    "answer questions about types": """
        can_cast common_type iscomplexobj isdtype isfortran isrealobj isscalar issubdtype iterable min_scalar_type
        mintypecode promote_types result_type
    """,
    "work on dates": "busday_count busday_offset datetime_as_string datetime_data is_busday",
    "settings, documentation, iterators": """
        fft.test get_include get_printoptions getbufsize geterr geterrcall info linalg.test nested_iters printoptions
        set_printoptions setbufsize seterr seterrcall show_config show_runtime test
    """,
    "deprecated names of functions that have rows": "in1d row_stack trapz",
}


def _name_of(row: Row) -> str:
    """Return the function of a row: np.linalg.solve, ndarray.sum, or indexing."""
    statements = row.text.split("; ")
    about = statements[1 if len(statements) > 2 else -1]
    called = re.search(r"np\.(?:linalg\.|fft\.|lib\.stride_tricks\.)?\w+(?=[\[(.])", about)
    if called or row.topic in ("indexing", "writing in place"):
        return called[0] if called else row.topic
    if row.topic == "complex numbers between real ones":
        return (re.search(r"cmath\.\w+", row.text) or ["complex"])[0]
    method = re.search(r"\.(\w+)\(", about)
    return f"ndarray.{method[1]}" if method else "@" if "@" in about else "ndarray"


NAMES = Names(ARGUMENTS, PLAIN, _name_of, "numpy_table")


def _ufunc_rows(refused: set[str]) -> Iterator[Row]:
    """Yield the rows of the ufuncs but `refused`; what NumPy itself refuses is an error of ours too."""
    for name in sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)):
        ufunc = getattr(np, name)
        if ufunc.signature or f"np.{name}" in refused:
            continue
        calls = _UNARY_CALLS if ufunc.nin == 1 else _BINARY_CALLS
        arguments = _DOMAINS.get(name, "x" if ufunc.nin == 1 else "x, y")
        for call in calls if ufunc.__name__ == name else calls[:1]:
            text = call.format(f=f"np.{name}", x=arguments)
            row = Row("symbols", "ufuncs", text, NAMES)
            if not text.startswith(_WRONG_IN_NUMPY):
                yield row if _accepted(row) else Row("error", "ufuncs", text, NAMES)


def _accepted(row: Row) -> bool:
    try:
        with np.errstate(all="ignore"):
            row.function(*row.values)
    except (TypeError, ValueError):
        return False
    return True


def rows() -> list[Row]:
    """Return all rows."""
    found = listed(CALLS, NAMES)
    refused = {row.name for row in found if row.expected == "refused"} - {"np.add"}  # which is refused in one form
    working = [row for row in found if row.expected == "symbols"]
    return [*working, *_ufunc_rows(refused), *found[len(working) :]]


def public_functions() -> dict[str, Any]:
    """Return NumPy's public functions by the name that a user writes: np.sum, np.linalg.solve."""
    modules = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
    found = {f"{path}.{name}": getattr(module, name) for path, module in modules.items() for name in dir(module)}
    hidden = {name for name, value in found.items() if name.split(".")[-1].startswith("_") or isinstance(value, type)}
    return {name: value for name, value in found.items() if callable(value) and name not in hidden}


def _ways(texts: list[str]) -> str:
    """Say in which ways a ufunc is called."""
    marks = {"out=": "out=", "where=": "where=", "initial=": "initial="} | {
        f".{method}(": f".{method}" for method in ("reduce", "accumulate", "reduceat", "outer", "at")
    }
    return ", ".join(["call", *(way for mark, way in marks.items() if any(mark in text for text in texts))])


def _note(name: str, found: list[Row]) -> str:
    if found[0].topic == "ufuncs":
        same = getattr(np, name.removeprefix("np.")).__name__
        return f"the same as `np.{same}`" if name != f"np.{same}" else _ways([row.text for row in found])
    return shown(found)


def document() -> str:
    """Return the documentation: a table for each topic."""
    found = [row for row in rows() if row.expected != "error"]
    kinds = ("symbols", "inside", "refused")
    lines_of = {kind: len({row.name for row in found if row.expected == kind}) for kind in kinds}
    lines = _INTRODUCTION.format(calls=len(found), functions=len({row.name for row in found}), **lines_of).splitlines()
    lines += topics(found, _note)
    lines += ["", "## Without a row", "", "These have no traced argument to work on, or need none of the above:", ""]
    lines += [f"- {why}: {', '.join(f'`{name}`' for name in names.split())}" for why, names in WITHOUT_ROWS.items()]
    return "\n".join(lines) + "\n"


_INTRODUCTION = """\
# NumPy in traced functions

Generated by `python -m tests.support.numpy_table`; do not edit. {calls} calls of {functions} functions and methods,
each run by `tests/symad/tracing/numpy/test_numpy_table.py`: value, derivative in both modes, kernel, or the refusal.
Of functions and methods {symbols} work on symbols, {inside} inside, none on numbers only, and {refused} are refused;
some in one form only. (On 2026-11-23: 348, none, 20, and 53.)

- **on symbols**: traced without a value, so it can be compiled, and differentiated at any order.
- **on symbols, inside**: so it is, and its length depends on the values: it can be computed with, summed up, sorted,
  measured; a function that returns it is not compiled, since results of kernels have one shape.
- **refused**: a `TraceError` names the function and the reason.

Small letters in the calls are traced: `r` is a number, `x`, `y`, `u`, `v` are vectors, `a`, `b`, `p` matrices, `m` and
`s` square ones, `n` and `t` stacks. Capitals are ordinary data. Results are float64 whatever `dtype=` of a float says.
Sums of 16 numbers or more, over one axis or all, have NumPy's bits on numbers; shorter ones and straight lines are
chains from left to right, and loops have several sums side by side. Small matrices are factorized in scalar
operations, larger ones by LAPACK; `qr`, `lstsq` and `pinv` take matrices of full rank: others are refused where the
values are known; in kernels `lstsq` and `pinv` of them, and derivatives of their `qr`, are NaN. `eigh`, `svd` and what
rests on them are LAPACK's at any size, on numbers and in kernels that are made of loops; where scalar operations are
asked for (`sa.trace`, sparse matrices, SymPy expressions, exported C), they are refused. Vectors of equal eigenvalues
or singular values have no derivative: it is refused on numbers, and NaN in kernels (see [large
arrays](loops.md#large-arrays)). `np.piecewise` calls every function with the whole array."""


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
