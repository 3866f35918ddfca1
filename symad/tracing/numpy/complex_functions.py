"""NumPy's elementary functions of complex numbers, in real functions of the parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

import codegen.special_heads as s
from symad.tracing.numpy.complex_arrays import COMPLEX_FUNCTIONS, COMPLEX_UFUNCS, ComplexArray, Parts, multiplied, parts
from symad.tracing.numpy.select import applied
from symad.tracing.values.node_builders import function

_MOST_FACTORS = 64  # of a power that is a product


def _exp(z: Parts) -> ComplexArray:
    size = np.exp(z[0])
    return ComplexArray(size * np.cos(z[1]), size * np.sin(z[1]))


def _log(z: Parts) -> ComplexArray:
    return ComplexArray(np.log(np.hypot(z[0], z[1])), np.arctan2(z[1], z[0]))


def _sqrt(z: Parts) -> ComplexArray:
    """The root with a real part that is not negative, and the sign of the imaginary part."""
    a, b = z
    size = np.hypot(a, b)
    is_zero = size == 0
    large = np.sqrt((np.where(is_zero, 1.0, size) + np.abs(a)) / 2)
    small = np.abs(b) / (2 * large)
    real, imaginary = np.where(a >= 0, large, small), np.where(a >= 0, small, large)
    return ComplexArray(np.where(is_zero, 0.0, real), np.copysign(np.where(is_zero, 0.0, imaginary), b))


def _power(z: Parts, exponent: Parts) -> ComplexArray:
    """A product for a small whole exponent, else exp(c log(z)), and 0 at 0."""
    base = (z[0], np.zeros(np.shape(z[0])) if z[1] is None else z[1])
    count = exponent[0]
    if exponent[1] is None and isinstance(count, int | float) and count == int(count) and abs(count) <= _MOST_FACTORS:
        return _product(base, int(count))
    is_zero = np.hypot(*base) == 0
    logarithm = _log((np.where(is_zero, 1.0, base[0]), base[1]))
    power = _exp(parts(multiplied(exponent, (logarithm.real, logarithm.imag))))
    return ComplexArray(np.where(is_zero, 0.0, power.real), np.where(is_zero, 0.0, power.imag))


def _product(z: Parts, count: int) -> ComplexArray:
    product, factor, left = None, ComplexArray(*z), abs(count)
    while left:
        if left % 2:
            product = factor if product is None else multiplied(parts(product), parts(factor))
        left //= 2
        factor = multiplied(parts(factor), parts(factor)) if left else factor
    if product is None:
        return ComplexArray(np.ones(np.shape(z[0])), np.zeros(np.shape(z[0])))
    return COMPLEX_UFUNCS["divide"]((1.0, None), parts(product)) if count < 0 else product


def _tanh(z: Parts) -> ComplexArray:
    """(t + i u)/(1 + i t u) for t = tanh(a), u = tan(b)."""
    t, u = np.tanh(z[0]), np.tan(z[1])
    bottom = 1 + (t * u) ** 2
    return ComplexArray(t * (1 + u * u) / bottom, u * (1 - t * t) / bottom)


def _tan(z: Parts) -> ComplexArray:
    """-i tanh(iz)."""
    turned = _tanh((-z[1], z[0]))
    return ComplexArray(turned.imag, -turned.real)


def _scaled_log(factor: float) -> Callable[[Parts], ComplexArray]:
    def handler(z: Parts) -> ComplexArray:
        logarithm = _log(z)
        return ComplexArray(logarithm.real * factor, logarithm.imag * factor)

    return handler


def _of_parts(question: Callable[..., Any], joined: Callable[[Any, Any], Any]) -> Callable[[Parts], Any]:
    return lambda z: joined(question(z[0]), question(z[1]))


def _equal(z: Parts, w: Parts) -> Any:
    return (z[0] == w[0]) & ((0.0 if z[1] is None else z[1]) == (0.0 if w[1] is None else w[1]))


def _faddeeva(z: Parts) -> ComplexArray:
    """scipy.special.wofz."""
    heads = (s.faddeeva_real, s.faddeeva_imag)
    return ComplexArray(*(applied(function(head), 0, z[0], 0.0 if z[1] is None else z[1]) for head in heads))


COMPLEX_UFUNCS |= {
    "sin": lambda z: ComplexArray(np.sin(z[0]) * np.cosh(z[1]), np.cos(z[0]) * np.sinh(z[1])),
    "cos": lambda z: ComplexArray(np.cos(z[0]) * np.cosh(z[1]), -np.sin(z[0]) * np.sinh(z[1])),
    "sinh": lambda z: ComplexArray(np.sinh(z[0]) * np.cos(z[1]), np.cosh(z[0]) * np.sin(z[1])),
    "cosh": lambda z: ComplexArray(np.cosh(z[0]) * np.cos(z[1]), np.sinh(z[0]) * np.sin(z[1])),
    "exp": _exp, "log": _log, "log10": _scaled_log(1 / math.log(10)), "log2": _scaled_log(1 / math.log(2)),
    "sqrt": _sqrt, "power": _power, "tan": _tan, "tanh": _tanh,
    "matmul": lambda z, w: multiplied(z, w, np.matmul),
    "reciprocal": lambda z: COMPLEX_UFUNCS["divide"]((1.0, None), z),
    "isnan": _of_parts(np.isnan, np.logical_or), "isinf": _of_parts(np.isinf, np.logical_or),
    "isfinite": _of_parts(np.isfinite, np.logical_and), "equal": _equal,
    "not_equal": lambda z, w: ~_equal(z, w), "wofz": _faddeeva,
}  # fmt: skip


def _chosen(condition: Any, x: Any = None, y: Any = None) -> ComplexArray:
    (a, b), (c, d) = parts(x), parts(y)
    return ComplexArray(
        np.where(condition, a, c), np.where(condition, 0.0 if b is None else b, 0.0 if d is None else d)
    )


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return np.linalg.norm(np.abs(x), ord if np.ndim(x) == 1 else "fro" if ord is None else ord, axis, keepdims)


def _product_along(a: Any, axis: Any = None) -> Any:
    values = np.ravel(a) if axis is None else np.moveaxis(a, axis, 0)
    return reduce(operator.mul, (values[k] for k in range(len(values))), 1.0)


COMPLEX_FUNCTIONS |= {
    np.where: _chosen,
    np.dot: lambda a, b: np.matmul(a, b) if np.ndim(a) and np.ndim(b) else np.multiply(a, b),
    np.outer: lambda a, b: np.multiply(np.ravel(a)[:, None], np.ravel(b)),
    np.vdot: lambda a, b: np.sum(np.conj(np.ravel(a)) * np.ravel(b)),
    np.isreal: lambda x: x.imag == 0,
    np.linalg.norm: _norm,
    np.prod: _product_along,
    np.polyval: lambda p, x: reduce(lambda value, coefficient: value * x + coefficient, p, 0.0),
    np.copy: lambda a, order="K", subok=False: ComplexArray(np.copy(a.real), np.copy(a.imag)),
}
