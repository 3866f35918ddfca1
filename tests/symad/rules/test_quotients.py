"""Slopes of quotients where the square of the divisor is too large or too small a number, by every route."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa

SCALES = [1e160, 1e-160, 1.0]
ROUTES: dict[str, Callable[[Any], Any]] = {
    "rev": lambda f: sa.jacobian(f, mode="rev"),
    "fwd": lambda f: sa.jacobian(f, mode="fwd"),
}

# Functions of u/v alone: f(s x) = f(x), so the gradient at s x is that at x over s.
FREE_OF_SCALE: dict[str, Callable[[Any], Any]] = {
    "one quotient": lambda x: x[0] / x[1],
    "in a function": lambda x: np.sin(x[0] / x[1]) * (x[2] / x[0]),
    "of a quotient": lambda x: x[0] / (x[1] + x[2] / (x[0] / x[1])),
    "elementwise": lambda x: np.sum(np.sin(x[:-1] / x[1:])),
    "by one number": lambda x: np.sum(np.cos(x / x[1])),
    "by a sum": lambda x: np.sum(np.arange(len(x)) * x / np.sum(x)),
    "numbers by numbers": lambda x: sum(x[k] / x[k + 1] for k in range(len(x) - 1)),
    "columns": lambda x: np.sum(np.sin(x[:, None] / x)),
    "twice by the same": lambda x: (x[0] - x[2]) / x[1] + np.exp(-x[2] / x[1]),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n", [3, 70])
@pytest.mark.parametrize("name", FREE_OF_SCALE)
def test_slopes_of_quotients_do_not_depend_on_the_size_of_the_numbers(name: str, n: int, scale: float) -> None:
    function = FREE_OF_SCALE[name]
    point = np.linspace(1.0, 2.0, n)
    expected = np.array([function(point + 1e-30j * unit).imag / 1e-30 for unit in np.eye(n)])
    for route in ROUTES.values():
        gradient = route(function)
        for derivative in (gradient, sa.compile(gradient, point)):
            np.testing.assert_allclose(derivative(scale * point) * scale, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e100, 1e-100, 1.0])
@pytest.mark.parametrize("mode", ["auto", "edge", "dyadic", "fwd-rev", "rev-fwd", "fwd-fwd", "rev-rev"])
def test_second_derivatives_of_a_quotient(mode: str, scale: float) -> None:
    u, v = 3 * scale, 2 * scale
    slope = -1 / v / v
    expected = np.array([[0.0, slope], [slope, -2 * slope * (u / v)]])

    def quotient(x: Any) -> Any:
        return x[0] / x[1]

    nested = {"fwd": lambda f: sa.jacobian(f, mode="fwd"), "rev": lambda f: sa.jacobian(f, mode="rev")}
    if "-" in mode:
        outer, inner = mode.split("-")
        hessian = nested[outer](nested[inner](quotient))
    else:
        hessian = sa.hessian(quotient, mode=mode)
    point = np.array([u, v])
    for derivative in (hessian, sa.compile(hessian, np.ones(2))):
        np.testing.assert_allclose(derivative(point) / expected[1, 1], expected / expected[1, 1], rtol=1e-14)


@pytest.mark.parametrize("shift", [0.0, -400.0, 350.0])
def test_a_softmax_of_small_or_large_exponentials(shift: float) -> None:
    weights, point = np.array([0.5, -1.0, 2.0, 0.1]), np.array([0.3, -0.2, 0.1, 0.9])
    gradient = sa.grad(lambda x: weights @ (np.exp(x) / np.sum(np.exp(x))))
    shares = np.exp(point) / np.sum(np.exp(point))
    expected = shares * (weights - weights @ shares)
    for derivative in (gradient, sa.compile(gradient, point)):
        np.testing.assert_allclose(derivative(point + shift), expected, rtol=1e-11)


def test_a_gradient_of_a_quotient_takes_one_division_and_three_products() -> None:
    kernel = sa.compile(sa.value_and_grad(lambda x, y: x / y, argnums=(0, 1)), 1.0, 2.0)
    assert sum(kernel.stats.machine_operations.values()) <= 4
