"""Ints of Python and NumPy have no -0: what int(x), round(x) and astype(int) make is never -0.0, nor what it makes.

`arctan2(z, -1)` tells 0.0 (pi) from -0.0 (-pi). Floats keep their sign: floor(x) of -0.0, `x // 1`, `-1.0 * int(x)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa

SCALARS: dict[str, Callable[[Any], Any]] = {
    "round": lambda u: round(u),
    "int": lambda u: int(u),
    "math.floor": lambda u: math.floor(u),
    "math.ceil": lambda u: math.ceil(u),
    "math.trunc": lambda u: math.trunc(u),
    "np.int64": lambda u: np.int64(u),
    "minus round": lambda u: -round(u),
    "product": lambda u: round(u) * -3,
    "remainder": lambda u: round(u) % -3,
    "quotient": lambda u: round(u) // -3,
    "divmod": lambda u: divmod(int(u), -3)[1],
    "power": lambda u: (-int(u)) ** 3,
    "float of one": lambda u: float(-int(u)),
    "shift": lambda u: -(int(u) >> 1),
    "choice": lambda u: -np.where(u > 5, 1, 0),
    "a float factor keeps the sign": lambda u: -1.0 * int(u),
    "floor of NumPy is a float": lambda u: -np.floor(u),
    "u // 1 is a float": lambda u: -(u // 1),
    "round to digits is a float": lambda u: round(u, 0),
    "quotient of floats": lambda u: u // -3.0,
    "divmod of floats": lambda u: divmod(u, -0.5)[0],
    "fraction": lambda u: math.modf(u)[0],
    "fraction of NumPy": lambda u: np.modf(u)[0],
    "remainder to the nearest": lambda u: math.remainder(u, 2),
}
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "astype": lambda x: x.astype(int),
    "of rint": lambda x: np.rint(x).astype(int),
    "of floor": lambda x: -np.floor(x).astype(int),
    "of ceil, in 32 bits": lambda x: -np.ceil(x).astype(np.int32),
    "asarray": lambda x: -np.asarray(x, dtype=int),
    "minus": lambda x: -x.astype(int),
    "product": lambda x: x.astype(int) * -1,
    "product with an array": lambda x: x.astype(int) * np.array([-1, -2, -3]),
    "product of two": lambda x: x.astype(int) * x[::-1].astype(int),
    "quotient": lambda x: x.astype(int) // -3,
    "remainder": lambda x: np.rint(x).astype(int) % -2,
    "power": lambda x: -(x.astype(int) ** 3),
    "square": lambda x: -np.square(x.astype(int)),
    "sign": lambda x: -np.sign(x.astype(int)),
    "absolute value": lambda x: -np.abs(x.astype(int)),
    "maximum": lambda x: -np.maximum(x.astype(int), 0),
    "as float": lambda x: (-x.astype(int)).astype(float),
    "running sum": lambda x: -np.cumsum(x.astype(int)),
    "sum": lambda x: -np.sum(x.astype(int)) + 0 * x.astype(int),
    "product along an axis": lambda x: np.prod(np.stack([x.astype(int), -np.ones(3, dtype=int)]), axis=0),
    "product of matrices": lambda x: -(np.eye(3, dtype=int) @ x.astype(int)),
    "choice": lambda x: -np.where(x > 5, 1, 0),
    "choice of arrays": lambda x: -np.where(x > 5, x.astype(int), 0),
    "truth values": lambda x: (x > 5) * -1,
    "stacked": lambda x: -np.stack([x.astype(int)[k] for k in range(3)]),
    "joined": lambda x: -np.concatenate([x.astype(int)[:1], x.astype(int)[1:]]),
    "searchsorted": lambda x: -np.searchsorted(np.array([1.0, 2.0, 3.0]), x),
    "digitize": lambda x: -np.digitize(x, [1.0, 2.0]),
    "argsort": lambda x: -np.argsort(x),
    "argmax": lambda x: -np.argmax(x - x) + 0 * x.astype(int),
    "count": lambda x: -np.count_nonzero(x > 5) + 0 * x.astype(int),
    "a float factor keeps the sign": lambda x: x.astype(int) * -1.0,
    "an array of floats keeps it": lambda x: x.astype(int) * np.array([-1.0, -2.0, -3.0]),
    "floor is a float": lambda x: -np.floor(x),
    "x // 1 is a float": lambda x: -(x // 1),
    "ceil is a float": lambda x: np.ceil(x),
}  # fmt: skip
FORMS = [*((name, form, 0) for name, form in SCALARS.items()), *((name, form, 1) for name, form in ARRAYS.items())]


def side(z: Any) -> Any:
    return np.sum(np.arctan2(z, -1.0) * np.array([1.0, 2.0, 4.0]))


@pytest.mark.parametrize(("name", "form", "axes"), FORMS, ids=[f"{name}, {axes} axes" for name, _, axes in FORMS])
def test_an_int_is_never_negative_zero(name: str, form: Callable[[Any], Any], axes: int) -> None:
    points = [-0.2, 0.3, -0.0, -1.7] if not axes else [np.array([-0.2, 0.3, -0.0]), np.array([-1.7, 0.4, -0.4])]

    def told(x: Any) -> Any:
        return side(form(x))

    kernel, compiled = sa.compile(told, 0.7 + 0 * points[0]), sa.jit(told)
    for point in points:
        want = told(point)
        tangent = np.ones(3) if axes else 1.0
        for value in (sa.jvp(told, (point,), (tangent,))[0], kernel(point), compiled(point)):
            assert value == pytest.approx(want, abs=1e-12)


def test_long_arrays_of_ints_are_never_negative_zero() -> None:
    point = np.linspace(-2.0, 2.0, 400)

    def told(x: Any) -> Any:
        return np.sum(np.arctan2(-x.astype(int), -1.0)) + np.sum(np.arctan2(np.cumsum(x.astype(int) * -1), -1.0))

    for value in (sa.jvp(told, (point,), (point,))[0], sa.compile(told, point)(point)):
        assert value == pytest.approx(told(point), rel=1e-13)
