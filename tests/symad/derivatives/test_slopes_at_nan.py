"""Slopes that choose between pieces are NaN at NaN, by every route; constant slopes stay what they are.

|x|, max, min and clip choose by their operand: at NaN there is nothing to choose by, the value is NaN, and so is the
slope. The slopes of x, 2*x and floor(x) are constants, which depend on no operand: 1, 2 and 0, also at NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import interpolate, special, stats

import symad as sa
from tests.support import mixes

NAN = math.nan
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CHOOSING: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "abs of Python": abs,
    "max with a number": lambda x: np.maximum(x, 0.0),
    "number with max": lambda x: np.maximum(0.0, x),
    "min with a number": lambda x: np.minimum(x, 2.0),
    "max with a function": lambda x: np.maximum(3 * x, x + 1),
    "min with a function": lambda x: np.minimum(3 * x, x * x),
    "max of a tie": lambda x: np.maximum(x, 1 * x),
    "max with a number that is NaN": lambda x: np.maximum(2 * x, NAN),
    "clip": lambda x: np.clip(x, -1.0, 1.0),
    "clip of a method": lambda x: np.stack([x, x]).clip(-1.0, 1.0)[0],
    "relu squared": lambda x: np.maximum(x, 0.0) ** 2,
    "pinball": lambda x: np.maximum(0.3 * x, -0.7 * x),
    "hinge": lambda x: np.maximum(0.0, 1 - 2 * x),
    "copysign": lambda x: np.copysign(x, -1.0),
    "max along an axis": lambda x: np.max(np.stack([2 * x, 3 * x, x])),
    "min of rows": lambda x: np.min(np.stack([2 * x, x + 1, x])[:, None], axis=0)[0],
    "norm of infinite order": lambda x: np.linalg.norm(np.stack([x, 2 * x]), np.inf),
    "norm of order 1": lambda x: np.linalg.norm(np.stack([x, 2 * x]), 1),
    "fmod in its divisor": lambda x: np.fmod(7.0, x),
    "mod in its divisor": lambda x: np.mod(7.0, x),
    "positive part": lambda x: (x + abs(x)) / 2,
    "huber": lambda x: np.where(abs(x) < 1, x * x / 2, abs(x) - 0.5),
    "ptp": lambda x: np.ptp(np.stack([x, 2 * x, 5 + 0 * x])),
    "prelu": lambda x: np.maximum(x, 0.0) + 0.1 * np.minimum(x, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOOSING)
def test_a_slope_that_chooses_is_nan_at_nan(name: str) -> None:
    function = CHOOSING[name]
    assert math.isnan(function(NAN))
    for route, value in mixes.every_value(function, NAN, 1, compiled=True).items():
        assert math.isnan(value), route


FORMS: dict[str, dict[str, Any]] = {"auto": {}, "straight": {"roll": "never"}, "loops": {"roll": "always"}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("transform", [sa.grad, lambda f: sa.jacfwd(lambda v: f(v)[None])])
@pytest.mark.parametrize("name", ["abs", "max with a number", "min with a function", "clip", "hinge", "huber"])
def test_only_the_element_that_is_nan_has_a_slope_of_nan(name: str, transform: Any, form: str) -> None:
    function = CHOOSING[name]
    point = np.linspace(-2.0, 2.0, 300)
    point[7] = NAN
    gradient = transform(lambda v: np.sum(function(v) * np.cos(v)))
    for found in (gradient(point), sa.compile(gradient, point, **FORMS[form])(point)):
        assert np.flatnonzero(np.isnan(np.ravel(found))).tolist() == [7]


@pytest.mark.parametrize("extremum", [np.max, np.min, np.maximum.reduce, np.fmax.reduce])
def test_the_largest_of_numbers_with_nan_has_slopes_of_nan(extremum: Any) -> None:
    for place in range(3):
        point = np.array([1.0, 2.0, 3.0])
        point[place] = NAN
        for transform in (sa.grad, sa.jacfwd):
            gradient = transform(extremum)
            kernel = sa.compile(gradient, np.ones(3))
            value = extremum(point)
            for found in (gradient(point), kernel(point)):
                if np.isnan(value):  # the one that is NaN, the best one before it, and all after it
                    assert np.isnan(found[place:]).all()
                    assert np.isnan(found).sum() == 3 - (place == 2)
                else:  # fmax leaves it out
                    assert np.isfinite(found).all()


def test_a_branch_that_is_not_taken_brings_no_nan() -> None:
    f = lambda x, y: np.where(x > 0, x, np.maximum(y, 0.0))  # noqa: E731
    gradient = sa.grad(f, argnums=(0, 1))
    for found in (gradient(2.0, NAN), sa.compile(gradient, 1.0, 1.0)(2.0, NAN)):
        assert [float(part) for part in found] == [1.0, 0.0]


def test_slopes_of_steps_are_the_constant_zero_and_of_a_line_its_factor() -> None:
    for function in (np.floor, np.ceil, np.rint, np.trunc, np.sign, lambda x: np.heaviside(x, 0.5)):
        for value in mixes.every_value(function, NAN, 1, compiled=True).values():
            assert value == 0.0
    assert sa.grad(lambda x: 2 * x)(NAN) == 2.0


def test_the_slope_of_a_step_in_its_value_at_zero_is_nan_at_nan() -> None:
    for gradient in (sa.grad(np.heaviside, argnums=1), sa.jacfwd(np.heaviside, argnums=1)):
        for found in (gradient(NAN, 0.5), sa.compile(gradient, 1.0, 1.0)(NAN, 0.5)):
            assert math.isnan(found)


# Where a function has no value: its slope is a formula that may have one there.
OUTSIDE: dict[str, tuple[Callable[[Any], Any], float]] = {
    "exp1": (special.exp1, -1.0),
    "ellipk": (special.ellipk, 2.0),
    "ellipe": (special.ellipe, 2.0),
    "gammainc of shape 1": (lambda x: special.gammainc(1.0, x), -1.0),
    "chdtr": (lambda x: special.chdtr(2.0, x), -1.0),
    "gdtrc": (lambda x: special.gdtrc(3.0, 1.0, x), -1.0),
    "betainc of shapes 1": (lambda x: special.betainc(1.0, 1.0, x), 1.5),
    "fdtr": (lambda x: special.fdtr(2.0, 3.0, x), -1.0),
    "boxcox, exponent 0": (lambda x: special.boxcox(x, 0.0), -1.0),
    "boxcox, exponent 2": (lambda x: special.boxcox(x, 2.0), -1.0),
    "boxcox1p": (lambda x: special.boxcox1p(x, -1.0), -2.0),
    "normal, deviation": (lambda x: stats.norm.logpdf(1.0, 0.0, x), -1.0),
    "exponential, scale": (lambda x: stats.expon.pdf(1.0, scale=x), -1.0),
    "uniform, scale": (lambda x: stats.uniform.cdf(0.5, scale=x), -1.0),
    "gamma, shape": (lambda x: stats.gamma.cdf(1.0, x), -1.0),
    "beta, shape": (lambda x: stats.beta.logpdf(0.5, x, 2.0), -1.0),
    "t, freedom": (lambda x: stats.t.sf(1.0, x), -2.0),
    "poisson, mean": (lambda x: stats.poisson.logpmf(2, x), -1.0),
    "binomial, probability": (lambda x: stats.binom.pmf(1, 3, x), 1.5),
    "negative binomial, probability": (lambda x: stats.nbinom.cdf(2, 3, x), -0.5),
    "quantile of a probability": (stats.norm.ppf, 1.5),
    "quantile, scale": (lambda x: stats.gamma.isf(0.3, 2.0, scale=x), -1.0),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_where_a_function_has_no_value_it_has_no_slope(name: str) -> None:
    function, place = OUTSIDE[name]
    assert math.isnan(function(place))
    gradient = sa.value_and_grad(function)
    for value, slope in (gradient(place), sa.compile(gradient, 0.6)(place)):
        assert math.isnan(value)
        assert math.isnan(slope)
    value, slope = gradient(0.6)
    assert value == pytest.approx(function(0.6), rel=1e-13)
    assert slope == pytest.approx((function(0.6 + 1e-5) - function(0.6 - 1e-5)) / 2e-5, rel=1e-6)


def test_a_likelihood_of_a_negative_deviation_has_no_gradient() -> None:
    data = np.linspace(0.1, 3.0, 7)
    gradient = sa.grad(lambda p: -np.sum(stats.norm.logpdf(data, p[0], p[1])))
    point = np.array([1.0, -2.0])
    for found in (gradient(point), sa.compile(gradient, np.ones(2))(point)):
        assert np.isnan(found).all()


KNOTS = np.linspace(0.0, 1.0, 6)
CUBIC = interpolate.CubicSpline(KNOTS, np.sin(KNOTS), extrapolate=False)
MONOTONE = interpolate.PchipInterpolator(KNOTS, np.sin(KNOTS), extrapolate=False)
LINEAR = interpolate.interp1d(KNOTS, np.sin(KNOTS), bounds_error=False)
GRID = interpolate.RegularGridInterpolator((KNOTS,), np.sin(KNOTS), bounds_error=False)


def nan_returned(x: Any) -> Any:
    return x * x if x > 0 else NAN


def nan_stored(x: Any) -> Any:
    values = np.stack([x, x])
    values[0] = x**3 if x > 0 else NAN
    return values[0]


# A constant NaN is chosen: where(x > 0, log(x), NaN), a spline outside of its range.
CHOSEN: dict[str, Callable[[Any], Any]] = {
    "where": lambda x: np.where(x > 0, np.log(x), NAN),
    "where, the other way round": lambda x: np.where(x <= 0, NAN, x * x),
    "select": lambda x: np.select([x > 1, x > 0], [x**2, x**3], default=NAN),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [lambda t: t * t, NAN]),
    "returned": nan_returned,
    "stored": nan_stored,
    "cubic spline": lambda x: CUBIC(x),
    "monotone spline": lambda x: MONOTONE(x),
    "linear interpolation": lambda x: LINEAR(x) ** 2,
    "grid": lambda x: GRID(np.stack([x]))[0] ** 2,
    "harmonic mean": lambda x: stats.hmean(np.stack([x, 1.0, 2.0])),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", CHOSEN)
def test_where_a_constant_nan_is_chosen_the_slopes_are_nan(name: str, order: int) -> None:
    function = CHOSEN[name]
    derivative = sa.derivative(function, order)
    kernel = sa.compile(derivative, 0.5)
    assert math.isnan(derivative(-1.0))
    assert math.isnan(kernel(-1.0))
    assert kernel(0.45) == pytest.approx(derivative(0.45), rel=1e-13)
    assert math.isfinite(kernel(0.45))


@pytest.mark.parametrize("n", [3, 2000])
def test_only_the_elements_that_are_nan_have_slopes_of_nan(n: int) -> None:
    points = np.linspace(-1.0, 2.0, n)
    gradient = sa.grad(lambda x: np.sum(np.where(x > 0, x * x, NAN)))
    expected = np.where(points > 0, 2 * points, NAN)
    np.testing.assert_array_equal(gradient(points), expected)
    np.testing.assert_array_equal(sa.compile(gradient, points)(points), expected)


def test_a_function_that_is_nan_everywhere_has_derivatives_of_nan() -> None:
    point = np.array([1.0, 2.0])
    for transform in (sa.grad, sa.jacobian, sa.hessian):
        derivative = transform(lambda x: NAN)
        assert np.isnan(derivative(point)).all()
        assert np.isnan(sa.compile(derivative, point)(point)).all()


@pytest.mark.parametrize("matrix", [np.ones((2, 2)), np.outer([1.0, 2, 3], [1.0, 2, 3]), np.diag([0.0, 1, 2])])
@pytest.mark.parametrize("function", [
    np.linalg.inv,
    lambda a: np.linalg.solve(a, np.arange(len(a)) + 1.0),
    lambda a: np.linalg.lstsq(a, np.arange(len(a)) + 1.0, rcond=None)[0],
    np.linalg.pinv,
    lambda a: np.linalg.matrix_power(a, -2),
])  # fmt: skip
def test_a_kernel_has_no_slopes_at_a_singular_matrix(function: Any, matrix: Any) -> None:
    def total(a: Any) -> Any:
        return np.sum(function(a))

    regular = np.eye(len(matrix)) + 0.1
    for transform in (sa.grad, sa.hessian):
        assert np.isnan(sa.compile(transform(total), regular)(matrix)).all()
