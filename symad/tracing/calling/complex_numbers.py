"""Stand-ins for `complex(x, y)` and `cmath`: complex numbers with traced parts."""

from __future__ import annotations

import cmath
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from symad.tracing.numpy.complex_arrays import ComplexArray, made, refuse
from symad.tracing.numpy.reduce import traced
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import TracedComplex

Function = Callable[..., Any]


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


def _log(z: Any, base: Any = None) -> Any:
    return np.log(as_complex(z)) if base is None else np.log(as_complex(z)) / np.log(as_complex(base))


def _phase(z: Any) -> Any:
    return np.angle(as_complex(z))


def _is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    return abs(a - b) <= np.maximum(rel_tol * np.maximum(abs(a), abs(b)), abs_tol)


_FORMS: dict[str, Function] = {
    **{
        name: _of_complex(getattr(np, name))
        for name in ("exp", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "isnan", "isinf", "isfinite")
    },
    "log": _log, "phase": _phase, "polar": lambda z: (abs(as_complex(z)), _phase(z)), "isclose": _is_close,
    "rect": lambda r, phi: ComplexArray(r * np.cos(phi), r * np.sin(phi)),
}  # fmt: skip


def cmath_forms() -> list[tuple[Function, Function]]:
    """Return the functions of cmath that are traced, with what stands in for them."""
    return [(getattr(cmath, name), _standing_in(getattr(cmath, name), form)) for name, form in _FORMS.items()]


def _standing_in(original: Function, form: Function) -> Function:
    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        return (form if holds_complex((*args, *keywords.values())) else original)(*args, **keywords)

    return call
