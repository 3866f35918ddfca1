"""Objective functions of the optimisation literature, written as their papers state them and traced unmodified."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.optimize import nnls

import symad
from tests.support import objectives
from tests.support.objectives.corpus import PROBLEMS, Problem

for module in pkgutil.iter_modules(objectives.__path__):
    importlib.import_module(f"tests.support.objectives.{module.name}")

every = pytest.mark.parametrize("name", PROBLEMS)
constrained = pytest.mark.parametrize(
    "name", [name for name, row in PROBLEMS.items() if row.equal is not None or row.at_least_zero is not None]
)
smooth = pytest.mark.parametrize("name", [name for name, row in PROBLEMS.items() if row.smooth])
Plain = Callable[[np.ndarray], float]


@cache
def optima(name: str) -> list[np.ndarray]:
    """Return the optimal points, the rounded ones completed by Newton's method."""
    row = PROBLEMS[name]
    return [completed(row.objective, point) if row.rounded else point for point in row.at]


def completed(f: Plain, x: np.ndarray) -> np.ndarray:
    """Return the stationary point next to x."""
    for _ in range(12):
        curvature = symad.hessian(f)(x).reshape(x.size, x.size)
        step = np.linalg.lstsq(curvature, symad.grad(f)(x).ravel(), rcond=1e-15)[0].reshape(x.shape)
        x = x - step
        if np.all(abs(step) <= 1e-10 * abs(x)):
            break
    return x


def points_of(name: str) -> list[np.ndarray]:
    """Return the start, and a random point near it."""
    start = PROBLEMS[name].start
    noise = np.random.default_rng(zlib.crc32(name.encode())).uniform(-0.04, 0.04, start.shape)
    return [start, start + noise * np.where(start == 0, 1, abs(start))]


def complex_step(f: Plain, x: np.ndarray) -> np.ndarray | None:
    """Return the gradient by complex steps, or None where f does not take complex numbers."""
    gradient = np.empty(x.shape)
    for k in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[k] += 1e-100j
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                gradient[k] = np.imag(f(moved)) / 1e-100
        except (TypeError, ValueError, Warning):
            return None
    return gradient


def differences(f: Plain, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the gradient by central differences, extrapolated to step 0 (Ridders), and the largest error estimate."""
    gradient, worst = np.empty(x.shape), 0.0
    for k in np.ndindex(x.shape):
        size = abs(x[k]) or 1.0
        row, best = [], (np.inf, np.nan)
        for step in 0.03 * size / 1.6 ** np.arange(12):
            ahead, behind = x.copy(), x.copy()
            ahead[k] += step
            behind[k] -= step
            new = [(f(ahead) - f(behind)) / (ahead[k] - behind[k])]
            for order, old in enumerate(row, 1):
                new.append(new[-1] + (new[-1] - old) / (1.6 ** (2 * order) - 1))
                best = min(best, (max(abs(new[-1] - new[-2]), abs(new[-1] - old)), new[-1]))
            row = new
        rounding = 1e-13 * abs(f(x)) / size
        gradient[k], worst = best[1], max(worst, best[0], rounding)
    return gradient, worst


def check_gradient(found: np.ndarray, f: Plain, x: np.ndarray) -> None:
    """Compare with complex steps, and where f is not analytic (absolute values, norms) with differences only."""
    near, error = differences(f, x)
    scale = max(1e-3, np.max(abs(near)))
    assert error < 1e-5 * scale
    np.testing.assert_allclose(found, near, rtol=0, atol=1e-9 * scale + 10 * error)
    exact = complex_step(f, x)
    if exact is not None and np.allclose(exact, near, rtol=0, atol=1e-5 * scale):
        np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-12 * scale)


def test_there_are_many() -> None:
    assert sum(row.source[0].isupper() for row in PROBLEMS.values()) >= 240


@every
@pytest.mark.thinned
def test_value_at_the_optimum(name: str) -> None:
    row = PROBLEMS[name]
    for point in optima(name):
        assert abs(row.objective(point) - row.minimum) <= row.tolerance * max(1, abs(row.minimum))


@pytest.mark.parametrize("name", [name for name, row in PROBLEMS.items() if row.first is not None])
def test_value_at_the_start(name: str) -> None:
    row = PROBLEMS[name]
    np.testing.assert_allclose(row.objective(row.start), row.first, rtol=1e-5, atol=1e-13)


@smooth
def test_the_optimum_is_stationary(name: str) -> None:
    """With constraints: the gradient is a combination of their gradients, those of inequalities taken >= 0."""
    row = PROBLEMS[name]
    scale = max(1, np.max(abs(symad.grad(row.objective)(row.start))))
    for point in optima(name):
        pulls = np.hstack([np.zeros((point.size, 1)), *constraint_gradients(row, point)])
        gradient = symad.grad(row.objective)(point).ravel()
        assert nnls(pulls, gradient)[1] < 2e-6 * scale


def constraint_gradients(row: Problem, x: np.ndarray) -> list[np.ndarray]:
    """Return the gradients, as columns, of equalities (both signs) and of what is active at x."""
    flat, unit = x.ravel(), np.eye(x.size)
    near = 1e-4 * np.maximum(1, abs(flat))
    gradients = [unit[:, flat < row.low + near], -unit[:, flat > row.high - near]]
    if row.equal is not None:
        columns = np.array(symad.jacobian(row.equal)(x)).T
        gradients += [columns, -columns]
    if row.at_least_zero is not None:
        values = np.array(row.at_least_zero(x))
        gradients.append(np.array(symad.jacobian(row.at_least_zero)(x)).T[:, values < 1e-3])
    return gradients


@constrained
def test_constraints(name: str) -> None:
    row = PROBLEMS[name]
    for function in (row.equal, row.at_least_zero):
        if function is None:
            continue
        found = np.array(symad.jacobian(function)(row.start))
        for k in range(len(found)):
            check_gradient(found[k], lambda x, k=k, function=function: function(x)[k], row.start)
    for point in row.at:
        size = row.tolerance * 100
        assert row.equal is None or np.all(np.abs(row.equal(point)) <= size)
        assert row.at_least_zero is None or np.all(np.array(row.at_least_zero(point)) >= -size)


@every
@pytest.mark.thinned
def test_derivatives(name: str) -> None:
    f = PROBLEMS[name].objective
    for x in points_of(name):
        before = x.copy()
        value, gradient = symad.value_and_grad(f)(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-13, atol=1e-14)
        check_gradient(gradient, f, x)
        curvature = symad.hessian(f)(x)
        other = symad.hessian(f, mode="fwd-fwd")(x)
        np.testing.assert_allclose(curvature, other, rtol=1e-10, atol=1e-12 * np.max(abs(other)))
        assert np.array_equal(x, before)


@every
@pytest.mark.thinned
def test_compiled(name: str) -> None:
    """At the start and near it, and the value far away too, where other branches are taken."""
    f = PROBLEMS[name].objective
    x, near = points_of(name)
    kernel, curvature = symad.compile(f, x), symad.compile(symad.hessian(f), x)
    for point in (x, near):
        np.testing.assert_allclose(kernel(point), f(point), rtol=1e-12, atol=1e-13)
        expected = symad.hessian(f)(point)
        np.testing.assert_allclose(curvature(point), expected, rtol=1e-10, atol=1e-12 * np.max(abs(expected)))
    for shift in np.random.default_rng(1).normal(size=(8, *x.shape)):
        far = x + 2 * shift * np.maximum(1, abs(x))
        expected = outcome(f, far)
        assert np.isnan(expected) or np.isclose(kernel(far), expected, rtol=1e-7, atol=1e-10)


def outcome(f: Plain, x: np.ndarray) -> float:
    """Return f(x), NaN outside of the domain of f."""
    with np.errstate(all="ignore"):
        try:
            return f(x)
        except (ValueError, ArithmeticError):
            return np.nan
