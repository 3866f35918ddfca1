"""KNOWN_ANSWERS B (derivatives of higher order), C (sparse), F (special functions), A22.

Every mode mix, interpreted and compiled.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from scipy import optimize, special

import symad as sa
from tests.support import mixes
from tests.support.cases import arwhead, hs071, rosenbrock


def six_sines(x, count=6):
    for _ in range(count):
        x = np.sin(x)
    return x


def tower(x, depth=16):
    for _ in range(depth):
        x = np.sin(x) * x
    return x


def hermite_6(x):
    return 64 * x**6 - 480 * x**4 + 720 * x**2 - 120


# name: (function, point, {order: value}); the values are closed forms
FAMILIES = {
    "sin": (np.sin, 0.7, {n: math.sin(0.7 + n * math.pi / 2) for n in range(6)}),
    "1/(1-x)": (lambda x: 1 / (1 - x), 0.3, {n: math.factorial(n) / 0.7 ** (n + 1) for n in range(6)}),
    "log": (np.log, 1.7, {n: (-1) ** (n - 1) * math.factorial(n - 1) / 1.7**n for n in range(1, 6)}),
    "tan at 0": (np.tan, 0.0, {1: 1, 3: 2, 5: 16, 2: 0, 4: 0}),
    "Bell numbers": (lambda x: np.exp(np.exp(x) - 1), 0.0, dict(enumerate([1, 1, 2, 5, 15, 52]))),
    "softplus at 0": (lambda x: np.logaddexp(0, x), 0.0, {1: 1 / 2, 2: 1 / 4, 3: 0, 4: -1 / 8, 5: 0}),
}
HIGH = {
    "exp(-x^2), order 6": (lambda x: np.exp(-(x**2)), 1.0, {6: hermite_6(1.0) * math.exp(-1.0)}),
    "Bell numbers": (lambda x: np.exp(np.exp(x) - 1), 0.0, {6: 203, 7: 877, 8: 4140, 9: 21147, 10: 115975}),
    "tan at 0": (np.tan, 0.0, {7: 272, 9: 7936, 11: 353792}),
    "softplus at 0": (lambda x: np.logaddexp(0, x), 0.0, {6: 1 / 4, 7: 0, 8: -17 / 16}),
    "six sines": (six_sines, 1.0, {1: 0.13877489681259086, 10: 11560.616267596966}),
    "seven sines": (lambda x: six_sines(x, 7), 1.0, {10: 55578.02833128}),
}


@pytest.mark.parametrize(("name", "order"), [(name, order) for name in FAMILIES for order in FAMILIES[name][2]])
@pytest.mark.thinned
def test_derivatives_of_a_family_by_every_mix(name, order):
    function, point, values = FAMILIES[name]
    for route, value in mixes.every_value(function, point, order, compiled=order < 4).items():
        assert value == pytest.approx(values[order], rel=1e-12, abs=1e-13), route


@pytest.mark.parametrize("mode", ["F", "R", "FR", "RF"])
@pytest.mark.parametrize(("name", "order"), [(name, order) for name in HIGH for order in HIGH[name][2]])
@pytest.mark.thinned
def test_derivatives_of_high_order(name, order, mode):
    function, point, values = HIGH[name]
    word = (mode * order)[:order]
    found = mixes.nested(word, function)(point)
    assert found == pytest.approx(values[order], rel=1e-11, abs=1e-9)


@pytest.mark.parametrize("name", ["Bell numbers", "six sines"])
def test_the_tenth_derivative_compiles(name):
    function, point, values = HIGH[name]
    kernel = sa.compile(sa.derivative(function, 10), 1.0)
    assert kernel(point) == pytest.approx(values[10], rel=1e-11)


@pytest.mark.parametrize("word", ["F", "R", "FF", "FR", "RF", "RR"])
def test_the_tower_of_16_levels(word):
    x = sp.Symbol("x")
    steps, values = x, [sp.Float(0.9, 50), 1, 0]  # value, first and second derivative, step by step
    for _ in range(16):
        e, d, dd = values
        values = [sp.sin(e) * e, sp.cos(e) * d * e + sp.sin(e) * d,
                  (sp.cos(e) * dd - sp.sin(e) * d**2) * e + 2 * sp.cos(e) * d * d + sp.sin(e) * dd]  # fmt: skip
    assert steps is x
    found = mixes.nested(word, tower)
    for value in (found(0.9), sa.compile(found, 0.9)(0.9)):
        assert value == pytest.approx(float(values[len(word)]), rel=1e-12)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_speelpenning_product_with_zeros(mode):
    point = np.array([0.0, 2.0, 0.0, 3.0, 4.0])
    wanted = np.zeros((5, 5))
    wanted[0, 2] = wanted[2, 0] = 24
    found = sa.hessian(np.prod, mode=mode)
    assert np.array_equal(found(point), wanted)
    assert np.array_equal(sa.compile(found, point)(point), wanted)


def rosenbrock2(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_rosenbrock_in_two_variables(mode):
    point = np.array([-1.2, 1.0])
    assert sa.grad(rosenbrock2)(point) == pytest.approx([-215.6, -88], rel=1e-14)
    found = sa.hessian(rosenbrock2, mode=mode)
    for matrix in (found(point), sa.compile(found, point)(point)):
        assert matrix == pytest.approx(np.array([[1330.0, 480.0], [480.0, 200.0]]), rel=1e-14)


@pytest.mark.parametrize("third", [sa.jacfwd, sa.jacrev])
@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_rosenbrock_third_and_fourth_derivatives(mode, third):
    point = np.array([-1.2, 1.0])
    tensor = third(sa.hessian(rosenbrock2, mode=mode))
    assert tensor(point)[0, 0, 0] == pytest.approx(-2880, rel=1e-14)
    assert tensor(point)[0, 0, 1] == tensor(point)[1, 0, 0] == pytest.approx(-400, rel=1e-14)
    assert sa.jacfwd(tensor)(point)[0, 0, 0, 0] == pytest.approx(2400, rel=1e-14)
    assert sa.compile(third(tensor), point)(point)[0, 0, 0, 0] == pytest.approx(2400, rel=1e-14)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_hessian_of_a_norm(mode):
    found = sa.hessian(np.linalg.norm, mode=mode)
    point = np.array([3.0, 4.0])
    for matrix in (found(point), sa.compile(found, point)(point)):
        assert matrix == pytest.approx(np.array([[16.0, -12.0], [-12.0, 9.0]]) / 125, rel=1e-14)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_laplacian_and_biharmonic_of_exp_xy(mode):
    def f(x):
        return np.exp(x[0] * x[1])

    def laplacian(g):
        return lambda x: np.trace(sa.hessian(g, mode=mode)(x))

    point = np.array([0.7, 1.3])
    assert laplacian(f)(point) == pytest.approx((0.7**2 + 1.3**2) * math.exp(0.7 * 1.3), rel=1e-14)
    assert laplacian(laplacian(f))(np.ones(2)) == pytest.approx(16 * math.e, rel=1e-13)
    assert sa.compile(laplacian(laplacian(f)), point)(np.ones(2)) == pytest.approx(16 * math.e, rel=1e-13)


def test_sparse_hessians():
    matrix = sa.hessian(rosenbrock, sparse="full")(np.ones(4))
    assert np.array_equal(np.diag(matrix.toarray()), [802, 1002, 1002, 200])
    assert np.array_equal(np.diag(matrix.toarray(), 1), [-400, -400, -400])
    assert matrix.nnz == 10
    arrow = sa.hessian(arwhead, sparse="lower")(np.ones(6))
    assert arrow.nnz == 11
    assert np.array_equal(np.diag(arrow.toarray()), [16, 16, 16, 16, 16, 80])
    assert np.array_equal(arrow.toarray()[-1, :-1], [8, 8, 8, 8, 8])
    assert arwhead(np.ones(6)) == 15


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
@pytest.mark.parametrize("count", [2, 3, 7, 40])
def test_scipys_rosenbrock_function_has_scipys_hessian(mode, count):
    """SciPy's own function is traced; of any length, at a point that is no optimum."""
    point = np.linspace(-1.3, 1.7, count)
    wanted = optimize.rosen_hess(point)
    found = sa.hessian(optimize.rosen, mode=mode)
    for matrix in (found(point), sa.compile(found, point)(point)):
        assert matrix == pytest.approx(wanted, rel=1e-14, abs=1e-11)
    assert sa.grad(optimize.rosen)(point) == pytest.approx(optimize.rosen_der(point), rel=1e-13, abs=1e-11)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_hs071_objective(mode):
    point = np.array([1.0, 5.0, 5.0, 1.0])
    value, gradient = sa.value_and_grad(hs071)(point)
    assert value == 16
    assert np.array_equal(gradient, [12, 1, 2, 11])
    wanted = [[2, 1, 1, 12], [1, 0, 0, 1], [1, 0, 0, 1], [12, 1, 1, 0]]
    assert np.array_equal(sa.hessian(hs071, mode=mode)(point), wanted)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_mixed_derivative_that_vanishes_identically(mode):
    found = sa.hessian(lambda x: np.sin(x[0] - x[1]) * np.sin(x[0] + x[1]), mode=mode)(np.array([0.7, 1.3]))
    assert found[0, 1] == pytest.approx(0, abs=1e-15)


SPECIAL = {
    "erf'''": (special.erf, 0.5, 3, -0.87878257893544479),
    "J0''": (lambda x: special.jv(0, x), 1.0, 2, -0.32514710081303304),
    "digamma": (special.psi, 0.5, 0, -1.9635100260214235),
    "digamma as derivative": (special.gammaln, 0.5, 1, -1.9635100260214235),
    "log gamma''''": (special.gammaln, 1.0, 4, math.pi**4 / 15),
    "I0''": (lambda x: special.iv(0, x), 0.0, 2, 0.5),
    "dK/dm": (special.ellipk, 0.5, 1, 0.84721308479397909),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    function, point, order, wanted = SPECIAL[name]
    for route, value in mixes.every_value(function, point, order, compiled=order < 4).items():
        assert value == pytest.approx(wanted, rel=2e-14), route


@pytest.mark.parametrize("mode", "FR")
def test_the_order_of_a_bessel_function_has_no_derivative(mode):
    with pytest.raises(sa.errors.RuleError, match="besselj has no derivative in its operand 0"):
        mixes.nested(mode, lambda nu: special.jv(nu, 1.0))(0.5)


GRADIENTS = {"rev": sa.grad, "fwd": sa.jacfwd}


def test_a22_gradient_of_a_function_of_a_gradient():
    """Seed 002: h(x) = g(grad f(x)); one forward direction over reverse equals every other mix."""

    def f(x):
        return 1 / np.linalg.norm(x)

    def g(v):
        return np.sum(v) ** 3

    point = np.array([0.3, -0.7, 1.1, 0.2, -0.4])
    found = {}
    for inner, gradient in GRADIENTS.items():
        h = lambda x, gradient=gradient: g(gradient(f)(x))  # noqa: E731
        for outer, differentiate in GRADIENTS.items():
            found[outer + inner] = differentiate(h)(point)
            found[outer + inner + " compiled"] = sa.compile(differentiate(h), point)(point)
        weights = sa.grad(g)(gradient(f)(point))
        found["direction over " + inner] = sa.jvp(gradient(f), (point,), (weights,))[1]
        found["derivative in a scalar over " + inner] = sa.derivative(
            lambda t, gradient=gradient, weights=weights: gradient(f)(point + t * weights)
        )(0.0)
    reference = found["revrev"]
    for route, value in found.items():
        assert value == pytest.approx(reference, rel=1e-13), route
    step = 1e-6
    differences = [(g(sa.grad(f)(point + step * e)) - g(sa.grad(f)(point - step * e))) / (2 * step) for e in np.eye(5)]
    assert reference == pytest.approx(differences, rel=1e-7)
