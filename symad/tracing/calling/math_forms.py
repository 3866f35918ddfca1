"""The traced forms of `complex(x, y)` and of the functions of `math`, `statistics` and `cmath`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from codegen.errors import UnboundSymbolError
from symad.tracing.calling.handlers import is_caught
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.numpy.complex_arrays import ComplexArray, made, refuse
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.array import wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.known_numbers import is_symbolic, number_of
from symad.tracing.values.node_arrays import elementwise
from symad.tracing.values.node_builders import Build
from symad.tracing.values.node_operands import holds_traced, nodes_of, scope_of
from symad.tracing.values.python_numbers import as_pythons
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import TracedComplex

Function = Callable[..., Any]


def of_math(original: Function, form: Function) -> Function:
    """Return the traced form. If the arguments have values, it raises the errors of the original."""

    def apply(*args: Any, **keywords: Any) -> Any:
        if not any(isinstance(arg, Scalar) and is_symbolic(arg.scope, arg.node) for arg in args):
            with contextlib.suppress(UnboundSymbolError, TypeError), discarding_recorded_errors():  # TypeError: a list
                numbers = [number_of(arg.scope, arg.node) if isinstance(arg, Scalar) else arg for arg in args]
                original(*numbers, **keywords)
                return as_pythons(form(*args, **keywords), own=True)
        result = form(*args, **keywords)
        if isinstance(result, Scalar) and not keywords and is_caught():
            _raise_as(original.__name__, result, args)
        return as_pythons(result, own=True)

    return apply


def _raise_as(name: str, result: Scalar, args: tuple[Any, ...]) -> None:
    """Raise the math module's error for numbers, on a path of its own, because the user's code catches it."""
    numbers = [arg for arg in args if isinstance(arg, Scalar | int | float)]
    if np.isnan(result) & ~reduce(np.logical_or, map(np.isnan, numbers)):
        raise ValueError("math domain error")
    if np.isinf(result) & reduce(np.logical_and, map(np.isfinite, numbers)):
        at_a_pole = name in _WITH_POLES or (name == "pow" and numbers[0] == 0)
        raise ValueError("math domain error") if at_a_pole else OverflowError("math range error")


_WITH_POLES = frozenset({"log", "log2", "log10", "log1p", "atanh", "lgamma", "gamma"})


def _of_row(name: str) -> Function:
    """Return the function of a row of the ufunc table for which NumPy has no ufunc."""
    build: Build = UFUNCS[name]

    def apply(*args: Any) -> Any:
        scope = scope_of(*args)
        return wrap(elementwise(scope.graph, build, *[nodes_of(value, scope) for value in args]), scope)

    return apply


def _log(value: Any, base: Any = None) -> Any:
    return np.log(value) if base is None else np.log(value) / np.log(base)


def _distance(p: Any, q: Any) -> Any:
    return np.hypot.reduce(traced([a - b for a, b in zip(p, q, strict=True)]))


def _is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    near = np.abs(a - b) <= np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol)
    return np.equal(a, b) | (near & np.isfinite(a) & np.isfinite(b))


def _remainder(x: Any, y: Any) -> Any:
    """Return x less the nearest multiple of y, exactly: the quotient may have more digits than a float."""
    size = np.abs(y)
    rest = np.abs(np.fmod(x, size + size))
    less = rest - size
    return np.copysign(1.0, x) * np.where(rest + rest <= size, rest, np.where(less + less < size, less, less - size))


def _whole(function: Function) -> Function:
    """Return the form of a function that rounds to an int; of a traced array without axes as well."""
    return lambda value: function(value if isinstance(value, Scalar) else value[()])


def _exact_sum(values: Any) -> Any:
    """Return the sum as in twice the precision: rounding errors of the additions are added up too.

    Source: Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005).
    """
    total = errors = 0.0
    for value in values:
        before, total = total, total + value
        added = total - before
        errors = errors + ((before - (total - added)) + (value - added))
    return np.where(np.isfinite(errors), total + errors, total)


MATH: dict[str, Function] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": _whole(math.ceil), "copysign": np.copysign,
    "cos": np.cos, "cosh": np.cosh, "degrees": np.degrees, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "fabs": np.fabs, "floor": _whole(math.floor), "fmod": np.fmod, "isclose": _is_close, "isfinite": np.isfinite,
    "isinf": np.isinf, "isnan": np.isnan, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "frexp": np.frexp,
    "modf": np.modf, "pow": np.power, "radians": np.radians, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh, "trunc": _whole(math.trunc), "ldexp": np.ldexp, "fsum": _exact_sum,
    "dist": _distance, "log": _log,
    "hypot": lambda *values: np.hypot.reduce(traced(list(values))), "remainder": _remainder,
    "erf": _of_row("erf"), "erfc": _of_row("erfc"), "gamma": _of_row("gamma"), "lgamma": _of_row("gammaln"),
}  # fmt: skip

STATISTICS: dict[str, Function] = {
    "mean": np.mean, "fmean": np.average, "median": np.median, "pvariance": np.var, "pstdev": np.std,
    "variance": lambda values: np.var(values, ddof=1), "stdev": lambda values: np.std(values, ddof=1),
    "geometric_mean": lambda values: np.exp(np.mean(np.log(traced(values)))),
    "_normal_dist_inv_cdf": lambda p, mu, sigma: mu + sigma * _of_row("ndtri")(p),
    "covariance": lambda x, y: np.cov(traced(x), traced(y))[0, 1],
    "correlation": lambda x, y: np.corrcoef(traced(x), traced(y))[0, 1],
}  # fmt: skip


def holds_complex(values: Iterable[Any]) -> bool:
    """Whether some values include a traced or traced complex one."""
    listed = list(values)
    return holds_traced(listed) or any(isinstance(value, TracedComplex) for value in listed)


def as_complex(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """complex(real, imag), of which either may be complex itself."""
    check_real("complex()")
    if isinstance(imag, ComplexArray | complex):
        return real + 1j * imag
    if isinstance(real, ComplexArray | complex):
        return ComplexArray(real.real, real.imag + imag)
    return ComplexArray(real, imag)


def holds_complex_parts(values: Any) -> bool:
    """Whether nested lists hold a complex number with traced parts, or complex numbers beside traced values."""
    flat = list(_leaves(values))
    return any(isinstance(leaf, TracedComplex) for leaf in flat) or (
        any(isinstance(leaf, complex) for leaf in flat) and holds_traced(flat)
    )


def _leaves(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        else:
            yield value


def array_of_complex(maker: Callable[..., Any], value: Any, dtype: Any = None, **options: Any) -> Any:
    """np.array, or np.asarray, of a complex array, or of nested lists of numbers, some of which are complex."""
    copy = options.pop("copy", True if maker is np.array else None)
    if options or (dtype is not None and np.dtype(dtype) != np.complex128):
        refuse(f"np.{maker.__name__} with other options than dtype=complex and copy=")
    if isinstance(value, ComplexArray) and value.ndim:
        return made(value.real, value.imag) if copy else value
    if isinstance(value, TracedComplex):
        return value
    return made(*(traced(_part(value, name)) for name in ("real", "imag")))


def _part(value: Any, name: str) -> Any:
    return [_part(part, name) for part in value] if isinstance(value, list | tuple) else getattr(value, name)


COMPLEX_MAKERS = (np.array, np.asarray, np.asanyarray, np.ascontiguousarray)


def _of_complex(ufunc: np.ufunc) -> Function:
    return lambda z: ufunc(as_complex(z))


def _phase(z: Any) -> Any:
    return np.angle(as_complex(z))


def _is_close_complex(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    return abs(a - b) <= np.maximum(rel_tol * np.maximum(abs(a), abs(b)), abs_tol)


CMATH: dict[str, Function] = {
    **{
        name: _of_complex(getattr(np, name))
        for name in ("exp", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "isnan", "isinf", "isfinite")
    },
    "log": lambda z, *base: _log(*map(as_complex, (z, *base))), "phase": _phase, "isclose": _is_close_complex,
    "polar": lambda z: (abs(as_complex(z)), _phase(z)),
    "rect": lambda r, phi: ComplexArray(r * np.cos(phi), r * np.sin(phi)),
}  # fmt: skip
