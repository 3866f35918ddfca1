"""Powers of roots are differentiated through what the root is taken of, whatever the spelling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import symad as sa

ZERO, ONES = np.zeros(3), np.ones(4)
POINTS = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
norm = np.linalg.norm
SQUARES: dict[str, tuple[Callable[..., Any], float]] = {  # a function, and how often the squared norm it is
    "norm**2": (lambda x: norm(x) ** 2, 1.0),
    "norm*norm": (lambda x: norm(x) * norm(x), 1.0),
    "-norm*norm": (lambda x: -norm(x) * norm(x), -1.0),
    ".5*norm*norm": (lambda x: 0.5 * norm(x) * norm(x), 0.5),
    "(norm/3)**2": (lambda x: (norm(x) / 3) ** 2, 1 / 9),
    "(2*norm)**2": (lambda x: (2 * norm(x)) ** 2, 4.0),
    "norm/3*norm/3": (lambda x: norm(x) / 3 * norm(x) / 3, 1 / 9),
    "norm*(norm/3)": (lambda x: norm(x) * (norm(x) / 3), 1 / 3),
    "exp(-norm*norm)": (lambda x: np.exp(-norm(x) * norm(x)), -1.0),
    "exp(-.5*(norm/.7)**2)": (lambda x: np.exp(-0.5 * (norm(x) / 0.7) ** 2), -0.5 / 0.49),
    "hypot**2": (lambda x: np.hypot(np.hypot(x[0], x[1]), x[2]) ** 2, 1.0),
    "math.hypot**2": (lambda x: math.hypot(x[0], x[1], x[2]) ** 2, 1.0),
    "math.sqrt**2": (lambda x: (3 * math.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2)) ** 2, 9.0),
    "abs(z)**2": (lambda x: np.abs(x[0] + 1j * x[1]) ** 2 + x[2] ** 2, 1.0),
    "fft": (lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2) / 3, 1.0),
    "std**2": (lambda x: 3 * np.std(x) ** 2 + 3 * np.mean(x) ** 2, 1.0),
    "frobenius": (lambda x: 2 * norm(x.reshape(3, 1), "fro") ** 2, 2.0),
    "nested hypots": (lambda x: np.hypot(x[0], np.hypot(x[1], x[2])) ** 2, 1.0),
    "hypot.reduce of many": (lambda x: np.hypot.reduce(np.concatenate([x, np.zeros(20), x])) ** 2, 2.0),
    "sqrt(sqrt)**4": (lambda x: np.sqrt(np.sqrt(x @ x)) ** 4, 1.0),
    "quarter power to the fourth": (lambda x: (np.sum(x**2) ** 0.25) ** 4, 1.0),
    "cbrt**3": (lambda x: np.cbrt(x @ x) ** 3, 1.0),
    "third power of a third": (lambda x: ((x @ x) ** (1 / 3)) ** 3, 1.0),
    "abs(norm)**2": (lambda x: abs(norm(x)) ** 2, 1.0),
    "sqrt(|u|)**4": (lambda x: np.sum(np.sqrt(np.abs(x)) ** 4), 1.0),
    "scaled abs": (lambda x: np.sum((2 * np.abs(x)) ** 2), 4.0),
}


@pytest.mark.parametrize("name", SQUARES)
def test_squares_of_norms_are_smooth_at_zero(name: str) -> None:
    """Gradient and Hessian at 0, on numbers and in kernels, against those of the squared norm."""
    f, factor = SQUARES[name]
    for gradient in (sa.grad(f)(ZERO), sa.compile(sa.grad(f), ZERO)(ZERO)):
        np.testing.assert_array_equal(gradient, ZERO)
    for mode in ("fwd-rev", "auto"):
        for matrix in (sa.hessian(f, mode=mode)(ZERO), sa.compile(sa.hessian(f, mode=mode), ZERO)(ZERO)):
            np.testing.assert_allclose(matrix, 2 * factor * np.eye(3), rtol=1e-12, atol=1e-12)


def test_elsewhere_they_are_what_differences_say() -> None:
    x, step = np.array([0.3, -1.2, 0.8]), 1e-6
    for name, (f, _) in SQUARES.items():
        differences = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(3)]
        np.testing.assert_allclose(sa.grad(f)(x), differences, rtol=1e-7, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("power", [3, 4, 5, 6])
def test_higher_powers(power: int) -> None:
    for f in (
        lambda x: norm(x) ** power,
        lambda x: (norm(x) / 2) ** power,
        lambda x: np.hypot(x[0], x[1]) ** power,
        lambda x: norm(x) ** 2 * norm(x) ** (power - 2),
        lambda x: norm(x) ** (power - 0.5),
        lambda x: norm(x, power) ** power,
        lambda x: np.sqrt(x @ x) * (x @ x) if power == 3 else (x @ x) ** 0.75 * (x @ x),
    ):
        np.testing.assert_array_equal(sa.grad(f)(ZERO), ZERO)
        np.testing.assert_array_equal(sa.compile(sa.grad(f), ZERO)(ZERO), ZERO)


def test_a_matrix_of_kernels() -> None:
    """The diagonal has distances of 0."""

    def rooted(x: Any) -> Any:
        return np.sum(np.exp(-0.5 * (cdist(x, x) / 0.7) ** 2))

    def plain(x: Any) -> Any:
        return np.sum(np.exp(-0.5 / 0.49 * cdist(x, x, "sqeuclidean")))

    wanted = sa.grad(plain)(POINTS)
    np.testing.assert_allclose(sa.grad(rooted)(POINTS), wanted, rtol=1e-12)
    np.testing.assert_allclose(sa.compile(sa.grad(rooted), POINTS)(POINTS), wanted, rtol=1e-12)


def test_the_power_spectrum_where_a_bin_is_zero() -> None:
    """Parseval: the sum is n times the sum of squares."""
    for x in (np.array([1.0, -1.0, 1.0, -1.0]), ONES, np.zeros(4), np.arange(1.0, 5.0)):
        f = lambda v: np.sum(np.abs(np.fft.fft(v)) ** 2)  # noqa: E731
        np.testing.assert_allclose(sa.grad(f)(x), 8 * x, atol=1e-12)
        np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), 8 * x, atol=1e-12)


def test_a_scale_that_is_traced_has_its_derivative() -> None:
    f = lambda x, c: (norm(x) * c) ** 2 + norm(x) * c * norm(x)  # noqa: E731
    x, c = np.array([0.6, -0.8, 0.0]), 1.7
    np.testing.assert_allclose(sa.grad(f, 1)(x, c), 2 * c + 1, rtol=1e-14)
    np.testing.assert_allclose(sa.grad(f)(x, c), 2 * x * (c * c + c), rtol=1e-14)
    np.testing.assert_allclose(sa.hessian(lambda z: f(z[:3], z[3]))(np.append(x, c))[3, 3], 2.0, rtol=1e-14)
