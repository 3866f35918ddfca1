"""KNOWN_ANSWERS D: branches not taken, kinks and tails give the convention, not NaN, at orders 0 to 4 in every mode.

The conventions (also in symad.rules.overrides): a branch that is not taken contributes nothing; |u|' = sign(u) with
sign(0) = 0; at a tie max and min give each operand one half; 0**0 = 1; sqrt(u)**2 and |u|**2 are u and u**2 to a
derivative, so norms squared are smooth at 0; log(1 + exp(u)), 1/(1 + exp(u)) and log(cosh(u)) overflow in value as in
NumPy, but their derivatives are those of the smooth function (symad.rules.partials). sqrt itself has an infinite
slope at 0, and norm(x) none (NaN).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import special

import symad as sa
from tests.support import mixes

# name: (function of one scalar, point, derivatives of order 0, 1, 2, ...)
SCALAR = {
    "sqrt not taken, NaN inside": (lambda x: np.where(x > 0, np.sqrt(x), 0), -3.0, (0, 0, 0, 0, 0)),
    "sqrt not taken at its singular point": (lambda x: np.where(x > 0, np.sqrt(x), 0), 0.0, (0, 0, 0, 0, 0)),
    "log of a negative number not taken": (lambda x: np.where(x < 0, np.log(-x), np.log(x)), 10.0,
                                           (math.log(10), 0.1, -0.01, 0.002, -0.0006)),
    "nested chain not taken": (lambda x: np.where(x > 0, np.exp(1 / np.sqrt(np.log(x))), x), -1.0, (-1, 1, 0, 0, 0)),
    "sqrt of a maximum with 0": (lambda x: np.sqrt(np.maximum(0, x**2 - 4)), 1.0, (0, 0, 0, 0, 0)),
    "norm squared": (lambda x: np.linalg.norm(np.stack([x, 0 * x])) ** 2, 0.0, (0, 0, 2, 0, 0)),
    "absolute value squared": (lambda x: np.abs(x) ** 2, 0.0, (0, 0, 2, 0, 0)),
    "absolute value times itself": (lambda x: np.abs(x) * np.abs(x), 0.0, (0, 0, 2, 0, 0)),
    "absolute value to the fourth": (lambda x: np.abs(x) ** 4, 0.0, (0, 0, 0, 0, 24)),
    "integer power": (lambda x: x**2, 0.0, (0, 0, 2, 0, 0)),
    "float power": (lambda x: x**2.0, 0.0, (0, 0, 2, 0, 0)),
    "array power": (lambda x: (np.stack([x, x]) ** np.array([2.0, 3.0])).sum(), 0.0, (0, 0, 2, 6, 0)),
    "symbolic power": (lambda x: x ** np.where(x > -1, 2.0, 3.0), 0.0, (0, 0, 2, 0, 0)),
    "absolute value": (np.abs, 0.0, (0, 0, 0, 0, 0)),
    "maximum at a tie": (lambda x: np.maximum(x, 0.0), 0.0, (0, 0.5, 0, 0, 0)),
    "minimum at a tie": (lambda x: np.minimum(2 * x, x), 0.0, (0, 1.5, 0, 0, 0)),
    "tanh far out": (np.tanh, 400.0, (1, 0, 0, 0, 0)),
    "logaddexp, right tail": (lambda x: np.logaddexp(0, x), 800.0, (800, 1, 0, 0, 0)),
    "logaddexp, left tail": (lambda x: np.logaddexp(0, x), -800.0, (0, 0, 0, 0, 0)),
    "0 * inf in a branch not taken": (lambda x: np.where(x < 1, 2 * x, 0 * np.exp(1000 * x)), 0.9, (1.8, 2, 0, 0, 0)),
    "softplus as written": (lambda x: np.log(1 + np.exp(x)), 800.0, (math.inf, 1, 0, 0, 0)),
    "softplus through log1p": (lambda x: np.log1p(np.exp(x)), 800.0, (math.inf, 1, 0, 0, 0)),
    "logistic as written, left": (lambda x: 1 / (1 + np.exp(-x)), -800.0, (0, 0, 0, 0, 0)),
    "logistic as written, right": (lambda x: 1 / (1 + np.exp(-x)), 800.0, (1, 0, 0, 0, 0)),
    "expit, left": (special.expit, -800.0, (0, 0, 0, 0, 0)),
    "expit, right": (special.expit, 800.0, (1, 0, 0, 0, 0)),
    "log(cosh(x)) as written": (lambda x: np.log(np.cosh(x)), 1000.0, (math.inf, 1, 0, 0, 0)),
    "log(cosh(x)) at 1": (lambda x: np.log(np.cosh(x)), 1.0,
                          (math.log(math.cosh(1)), math.tanh(1), math.cosh(1) ** -2,
                           -2 * math.tanh(1) / math.cosh(1) ** 2, (4 * math.sinh(1) ** 2 - 2) / math.cosh(1) ** 4)),
    "if: sqrt not taken": (lambda x: math.sqrt(x) if x > 0 else 0.0, -3.0, (0, 0, 0, 0, 0)),
    "if: sqrt not taken at its singular point": (lambda x: np.sqrt(x) if x > 0 else 0.0, 0.0, (0, 0, 0, 0, 0)),
    "if: log of a negative number not taken": (lambda x: math.log(-x) if x < 0 else np.log(x), 10.0,
                                               (math.log(10), 0.1, -0.01, 0.002, -0.0006)),
    "if: nested chain not taken": (lambda x: np.exp(1 / np.sqrt(np.log(x))) if x > 0 else x, -1.0, (-1, 1, 0, 0, 0)),
    "if: 0 * inf not taken": (lambda x: 2 * x if x < 1 else 0 * np.exp(1000 * x), 0.9, (1.8, 2, 0, 0, 0)),
    "if: sqrt of Python's max with 0": (lambda x: math.sqrt(max(0.0, x**2 - 4)), 1.0, (0, 0, 0, 0, 0)),
    "if: x log x at 0": (lambda x: 0.0 if x == 0 else x * np.log(x), 0.0, (0, 0, 0, 0, 0)),
    "infinite slope, used in two branches not taken": (
        lambda x: np.where(x > 0, np.sqrt(x), 0) + np.where(x > 1, np.sqrt(x), 0), 0.0, (0, 0, 0, 0, 0)),
    "infinite slope of two branches not taken": (
        lambda x: np.sqrt(np.where(x > 1, x, 0) + np.where(x > 2, 2 * x, 0)), 0.0, (0, 0, 0, 0, 0)),
    "Mod": (lambda x: np.mod(x, 3.0) ** 2, 7.5, (2.25, 3, 2, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.thinned
def test_conventions_of_one_variable(name, order):
    function, point, expected = SCALAR[name]
    for route, value in mixes.every_value(function, point, order, compiled=order < 4).items():
        assert value == pytest.approx(expected[order], rel=1e-13, abs=1e-300), route


@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize(
    ("function", "exact", "point"),
    [
        (np.tanh, mpmath.tanh, 20.0),
        (np.tanh, mpmath.tanh, -25.0),
        (lambda x: np.logaddexp(0, x), lambda u: mpmath.log1p(mpmath.exp(u)), -40.0),
        (lambda x: np.logaddexp(0, x), lambda u: mpmath.log1p(mpmath.exp(u)), 40.0),
        (np.arcsin, mpmath.asin, 1 - 3e-9),
        (np.arctanh, mpmath.atanh, 1 - 3e-9),
        (lambda x: np.hypot(x, 1e-3), lambda u: mpmath.hypot(u, mpmath.mpf(1e-3)), 1e8),
        (np.arcsinh, mpmath.asinh, 1e6),
        (np.sinc, lambda u: mpmath.sincpi(u), 1e-8),
        (np.sinc, lambda u: mpmath.sincpi(u), 0.0),
    ],
    ids=["tanh 20", "tanh -25", "softplus -40", "softplus 40", "asin", "atanh", "hypot", "asinh", "sinc", "sinc 0"],
)
@pytest.mark.thinned
def test_tails_keep_their_digits(function, exact, point, order):
    with mpmath.workdps(120):
        wanted = float(mpmath.diff(exact, mpmath.mpf(point), order))
    for route, value in mixes.every_value(function, point, order, compiled=order < 3).items():
        assert value == pytest.approx(wanted, rel=1e-13, abs=1e-25), route


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_squared_exponential_kernel_on_the_diagonal(mode):
    length = 0.7

    def kernel(x):
        return np.exp(-(np.linalg.norm((x[:2] - x[2:]) / length) ** 2))

    point = np.array([0.3, -0.2, 0.3, -0.2])
    mixed = sa.hessian(kernel, mode=mode)
    for found in (mixed(point), sa.compile(mixed, point)(point)):
        assert found[:2, 2:] == pytest.approx(2 / length**2 * np.eye(2), rel=1e-15)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_log_sum_exp_hessian(mode):
    def f(x):
        largest = np.max(x)
        return largest + np.log(np.exp(x - largest).sum())

    point = np.array([1.0, 2.0, -0.5])
    p = np.exp(point) / np.exp(point).sum()
    assert sa.hessian(f, mode=mode)(point) == pytest.approx(np.diag(p) - np.outer(p, p), rel=1e-13, abs=1e-16)


@pytest.mark.parametrize("word", ["F", "R"])
def test_undefined_derivatives_are_nan_or_infinite_and_not_a_guess(word):
    assert mixes.nested(word, np.sqrt)(0.0) == math.inf
    gradient = sa.grad(np.linalg.norm) if word == "R" else sa.jacfwd(np.linalg.norm)
    assert np.isnan(gradient(np.zeros(2))).all()


@pytest.mark.parametrize("word", ["F", "R", "FF", "FR", "RF", "RR"])
def test_x_log_x_at_zero_is_what_numpy_gives_and_xlogy_is_zero(word):
    with np.errstate(all="ignore"):
        assert math.isnan(sa.compile(lambda x: x * np.log(x), 1.0)(0.0))
    assert sa.compile(lambda x: special.xlogy(x, x), 1.0)(0.0) == 0.0
    smooth = mixes.nested(word, lambda x: special.xlogy(x, x))
    assert smooth(2.0) == pytest.approx(1 + math.log(2.0) if len(word) == 1 else 0.5, rel=1e-15)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
@pytest.mark.parametrize("swapped", [False, True])  # which operand has the smaller node must not matter
@pytest.mark.thinned
def test_mixed_derivative_of_a_power_at_zero(mode, swapped):
    """d2(u**v)/du dv = u**(v-1) (1 + v log u): -inf at u = 0 for v <= 1, not 0; and 0 for v > 1."""
    hessian = sa.hessian((lambda p: p[1] ** p[0]) if swapped else (lambda p: p[0] ** p[1]), mode=mode)
    for v, right in ((1.0, -math.inf), (1.5, 0.0), (2.0, 0.0), (3.0, 0.0)):
        point = np.array([v, 0.0] if swapped else [0.0, v])
        for found in (hessian(point), sa.compile(hessian, point)(point)):
            assert found[0, 1] == found[1, 0] == right
    point = np.array([0.5, 0.0] if swapped else [0.0, 0.5])
    assert not np.any(np.isfinite(hessian(point)[[0, 1], [1, 0]]))  # -inf, or inf - inf: never a number


def test_gradient_outside_the_domain_is_no_zero():
    """C's pow gives (-inf)**-0.5 = 0, which would look like a derivative."""
    assert math.isnan(sa.grad(np.arcsin)(1e200))
    assert math.isnan(sa.compile(sa.grad(np.arcsin), 0.5)(1e200))


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_second_derivative_at_a_branch_point_is_infinite_in_every_mode(mode):
    second = sa.hessian(np.arcsin, mode=mode)
    assert second(1.0) == sa.compile(second, 0.5)(1.0) == math.inf
    assert second(-1.0) == sa.compile(second, 0.5)(-1.0) == -math.inf


def test_several_equal_maxima_share_pair_by_pair():
    """np.max is a chain of pairs, and each pair halves: the weights add up to one, but are not equal."""
    assert np.array_equal(sa.grad(np.max)(np.ones(3)), [0.25, 0.25, 0.5])


@pytest.mark.parametrize(("x", "slope"), [(0.0, 1.0), (2.0, 0.0), (-2.0, 0.0)])
def test_a_step_passes_on_the_derivative_of_its_value_at_zero(x, slope):
    for gradient in (sa.grad(np.heaviside, argnums=1), sa.jacfwd(np.heaviside, argnums=1)):
        assert gradient(x, 0.3) == sa.compile(gradient, 1.0, 1.0)(x, 0.3) == slope


LOGARITHMS: dict[str, tuple[Callable[[Any], Any], float, float]] = {  # a point outside of the domain, and one inside
    "log": (np.log, -1.0, 2.0),
    "math.log": (lambda x: math.log(x - 1.0), 0.5, 3.0),
    "log10": (np.log10, -1.0, 2.0),
    "log2": (np.log2, -1.0, 2.0),
    "log1p": (np.log1p, -3.0, 2.0),
    "arctanh": (np.arctanh, 1.5, 0.3),
    "logit": (special.logit, 1.5, 0.3),
    "xlogy": (lambda x: special.xlogy(2.0, x), -1.0, 2.0),
    "xlog1py": (lambda x: special.xlog1py(2.0, x), -3.0, 2.0),
    "base 3": (lambda x: math.log(x, 3), -1.0, 2.0),
    "in a sum": (lambda x: sum(np.log(x - k) for k in range(2)), 0.5, 2.0),
    "quotient": (lambda x: x / np.log(x), -1.0, 2.0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", LOGARITHMS)
def test_derivatives_are_nan_where_a_logarithm_is(name: str) -> None:
    f, outside, inside = LOGARITHMS[name]
    for order in (1, 2, 3):
        derivative = sa.derivative(f, order)
        kernel = sa.compile(derivative, inside)
        assert np.isnan(kernel(outside))
        assert kernel(inside) == pytest.approx(float(derivative(inside)), rel=1e-13)
    for gradient in (sa.compile(sa.jacrev(f), inside), sa.compile(sa.jacfwd(f), inside)):
        assert np.isnan(gradient(outside))


OUTSIDE: dict[Any, tuple[float, float, Callable[[Any], Any]]] = {
    sp.acoth: (0.5, 1.7, mpmath.acoth),
    sp.asech: (-0.5, 0.7, mpmath.asech),
    sp.loggamma: (-0.5, 1.3, mpmath.loggamma),
}


@pytest.mark.parametrize("head", OUTSIDE, ids=str)
def test_derivatives_of_functions_of_sympy_are_nan_outside_of_their_domain(head: Any) -> None:
    outside, inside, exact = OUTSIDE[head]
    x = sp.Symbol("x", real=True)
    f = sa.from_sympy([x], head(x))
    for order in (1, 2):
        kernel = sa.compile(sa.derivative(f, order), inside)
        assert np.isnan(kernel(outside))
        assert np.isnan(sa.derivative(f, order)(outside))
        with mpmath.workdps(40):
            assert kernel(inside) == pytest.approx(float(mpmath.diff(exact, inside, order)), rel=1e-12)


def test_a_likelihood_outside_of_its_domain_has_no_slope() -> None:
    def log_likelihood(p: Any) -> Any:
        return -sum(math.log(p - k) for k in (0.0, 1.0, 2.0))

    kernel = sa.compile(sa.grad(log_likelihood), 3.0)
    assert np.isnan(kernel(1.5))
    assert kernel(3.0) == pytest.approx(-(1 / 3 + 1 / 2 + 1))


def test_logarithms_of_expressions_are_written_as_ever() -> None:
    x = sp.Symbol("x", real=True)
    assert sa.derivative(np.log)(x) == 1 / x
    assert sa.derivative(np.log1p, 2)(x) == -1 / (1 + x) ** 2
    assert sa.derivative(lambda t: t * np.log(t))(x) == sp.log(x) + 1
    assert sa.grad(np.log)(0.0) == np.inf
