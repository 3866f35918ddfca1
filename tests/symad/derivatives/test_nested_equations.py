"""Equations and minima inside each other: derivatives against differences, on numbers and in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa


def _nearest(y: Any, a: Any) -> Any:
    return sa.argmin(lambda z: (z - a * y) ** 2 + (z - 1) ** 2 + 0.1 * z**4, 0.0)


def _cubic(y: Any, a: Any) -> Any:
    return sa.root(lambda z: z**3 + z - a * y, 0.0)


NESTED: dict[str, Callable[[Any], Any]] = {
    "argmin in argmin": lambda a: sa.argmin(lambda y: (y - _nearest(y, a)) ** 2 + (y - a) ** 2, 0.0),
    "root in argmin": lambda a: sa.argmin(lambda y: (y - _cubic(y, a)) ** 2 + (y - a) ** 2, 0.0),
    "root in root": lambda a: sa.root(lambda y: y**3 + y - _cubic(y, a) - a, 0.0),
    "argmin in root": lambda a: sa.root(lambda y: y - _nearest(y, a) + a * y, 0.0),
    "fixed point in argmin": lambda a: sa.argmin(
        lambda y: (y - sa.fixed_point(lambda z: 0.5 * np.cos(z) * a * y, 0.0)) ** 2 + (y - a) ** 2, 0.0
    ),
    "passed as arguments": lambda a: sa.argmin(
        lambda y, a: (y - sa.argmin(lambda z, a, y: (z - a * y) ** 2 + (z - 1) ** 2, 0.0, a, y)) ** 2 + (y - a) ** 2,
        0.0,
        a,
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_first_and_second_derivatives(name: str) -> None:
    f, a = NESTED[name], 0.5
    first = (f(a + 1e-5) - f(a - 1e-5)) / 2e-5
    second = (f(a + 1e-3) - 2 * f(a) + f(a - 1e-3)) / 1e-6
    assert sa.derivative(f)(a) == pytest.approx(first, rel=1e-7)
    assert sa.derivative(f, 2)(a) == pytest.approx(second, rel=2e-4)


@pytest.mark.parametrize("name", ["root in argmin", "argmin in argmin"])
def test_kernels(name: str) -> None:
    f = NESTED[name]
    assert sa.compile(sa.derivative(f), 0.5)(0.5) == pytest.approx(float(sa.derivative(f)(0.5)), rel=1e-9)


def test_a_bilevel_problem_has_its_exact_derivative() -> None:
    """z = (a y + 1)/2, and (y - z)(1 - a/2) + (y - a) = 0."""

    def exact(a: float) -> float:
        k = 1 - a / 2
        return (k / 2 + a) / (k * k + 1)

    def f(a: Any) -> Any:
        return sa.argmin(
            lambda y: (y - sa.argmin(lambda z: (z - a * y) ** 2 + (z - 1) ** 2, 0.0)) ** 2 + (y - a) ** 2, 0.0
        )

    assert f(0.5) == pytest.approx(exact(0.5), rel=1e-12)
    assert sa.derivative(f)(0.5) == pytest.approx((exact(0.501) - exact(0.499)) / 0.002, rel=1e-6)
